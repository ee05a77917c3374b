"""Output of a sweep: legible in 80 columns with long policies."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pilotfish.cli.output.sweep import SweepProgress, show_runs, show_sweep
from pilotfish.cli.output.text import Screen
from pilotfish.formats.text import broken

LONG = "easy:order=sjf+opportunistic:t_idle=300+energybud:budget=90%,begin=86400,end=345600.5+inertial:v_ub=100000"
POLICIES = ["easy", "conservative", LONG, LONG.replace("sjf", "wfp3")]


def rows(policies: list[str]) -> list[dict[str, Any]]:
    """A run of each, on two machines with two seeds; each is the best in something."""
    return [
        {
            "run": f"{i}{machine}{seed}", "workload": "trace.swf.gz", "load": 1.0, "machine": machine, "policy": policy,
            "seed": seed, "status": "done", "error": None, "mean_waiting_time": 123456.5 + i * 1000 + seed,
            "mean_bounded_slowdown": 22.5 + i, "makespan": 3525659.0 - i, "utilisation": 0.5 + i / 100,
            "consumed_joules": 21.6e9 - i * 1e9,
        }
        for i, policy in enumerate(policies) for machine in ("256", "lab.yaml:node") for seed in (0, 1)
    ]  # fmt: skip


def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    screen = Screen()
    assert screen.cells == columns
    show_sweep(screen, rows(POLICIES), ["workload", "load"])
    return capsys.readouterr().out.splitlines()


def test_policies_and_numbers_are_complete_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = printed(capsys, monkeypatch, 80)
    text = re.sub(r"\n {4}(?=\S)", "", "\n".join(lines))
    assert max(map(len, lines)) <= 80 and "…" not in text
    for policy in (LONG, LONG.replace("sjf", "wfp3")):
        assert f"> {policy}, machine 256, seed 0" in text.replace(",machine", ", machine").replace(",seed", ", seed")
    assert any("123,456*" in line and "22.50*" in line and "21.6 GJ" in line for line in lines)


def test_a_run_that_fits_takes_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    show_sweep(Screen(), rows(POLICIES[:2]), ["workload", "load"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[:6] == ["POLICY", "MACHINE", "SEED", "EQUAL", "RUNS", "WAITING"]
    assert lines[3].split()[:6] == [">", "easy", "256", "0", "2", "123,456*"]


def test_the_number_of_equal_runs_is_shown_only_where_there_are_some(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    show_sweep(Screen(), rows(POLICIES[:1])[:1], ["workload", "load"])
    assert "RUNS" not in capsys.readouterr().out


def equal_runs(capsys: pytest.CaptureFixture[str], policies: list[str], columns: str, **fields: Any) -> str:
    """The lines that name equal runs, if all policies have the numbers of the first."""
    case = [row for row in rows(policies) if row["machine"] == "256" and row["seed"] == 0]
    equal = {name: case[0][name] for name in ("mean_waiting_time", "mean_bounded_slowdown", "makespan", "utilisation")}
    show_sweep(Screen(), [{**row, **equal, "consumed_joules": None, **fields} for row in case], ["workload", "load"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= int(columns)
    text = re.sub(r"\n {4}(?=\S)", "", "\n".join(lines))
    return "\n".join(line.strip() for line in text.splitlines() if "equal to" in line)


@pytest.mark.parametrize("columns", ["50", "80", "200"])
def test_the_other_policies_with_equal_numbers_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = equal_runs(capsys, ["easy", "conservative", LONG], columns).replace(" ", "")
    assert text == f"equalto easy:conservative,{LONG}".replace(" ", "")
    policies = ["easy", *(f"strict:order={i}" for i in range(8))]
    text = equal_runs(capsys, policies, columns).replace(" ", "")
    assert "strict:order=5,and2more" in text and "order=6" not in text
    assert equal_runs(capsys, ["easy", "easy"], columns) == ""


@pytest.mark.parametrize("selected", [{}, {"until": 86400.0, "min_size": 2, "load": 1.2}])
def test_the_list_of_runs_shows_complete_policies(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, selected: dict[str, float]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    runs = [{name: row[name] for name in ("run", "workload", "policy", "machine", "seed")} for row in rows(POLICIES)]
    runs = [row | dict.fromkeys(selected) for row in runs[:1]] + [row | selected for row in runs]
    show_runs(Screen(), runs)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)
    begin = next(i for i, line in enumerate(lines) if "order=sjf" in line)
    words = re.findall(r"^(?:trace.swf.gz)? *(\S+)", "\n".join(lines[begin:]), re.MULTILINE)
    assert "".join(words).startswith(LONG) and "86400.0" not in "".join(lines)


def test_a_text_is_broken_after_commas_and_plus_signs() -> None:
    assert broken("a:b=1,c=2+d, machine 5, seed 0", 12) == ["a:b=1,c=2+d,", "machine 5,", "seed 0"]
    assert broken("easy+opportunistic:t_idle=300", 15) == ["easy+", "opportunistic:", "t_idle=300"]
    assert broken("equal: easy, easy:order=random", 18) == ["equal: easy,", "easy:order=random"], "a name stays whole"
    assert broken("short", 12) == ["short"] and broken("x" * 20 + "+y", 9) == ["xxxx…xxx+", "y"]


@pytest.mark.parametrize(("runs", "rate"), [(2, "1 run/s"), (4, "2 runs/s")])
def test_the_rate_of_runs_counts_one_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, runs: int, rate: str
) -> None:
    clock = iter([0.0, 1.6])
    monkeypatch.setattr("pilotfish.cli.output.sweep.time.monotonic", lambda: next(clock))
    with SweepProgress(runs) as progress:
        progress.ended([{"status": "done"}] * runs)
    assert capsys.readouterr().err.strip() == f"pilotfish: {runs} runs in 1.60 s, {rate}"
