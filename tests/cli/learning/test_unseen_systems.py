"""`evaluate --leave-one-out`: each system is judged under orders of the other systems, and of nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pilotfish.cli.__main__ import FAILED, USAGE, main
from pilotfish.cli.learning.learning_tasks import SearchTask, search_stages
from pilotfish.cli.learning.staged_training import Stages

COMMAND = ("evaluate", "--leave-one-out", "--no-predictions", "--workers", "1", "--copies", "2", "--generations", "2")


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("systems")
    paths = [str(folder / f"{name}.swf.gz") for name in ("first", "second", "third")]
    for seed, path in enumerate(paths):
        words = ["--jobs", "150", "--procs", "64", "--load", "0.9", "--seed", str(seed), "-o", path]
        assert main(["generate", "lublin", *words]) == 0
    return paths


def verdicts(paths: list[str], capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main([*COMMAND, *paths, "--json", *words]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["results"]
    return rows


def test_no_job_of_the_judged_system_has_a_say_in_its_orders(
    systems: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With another system in the place of the third, the orders that judge it are the same."""
    other = tmp_path / "other.swf.gz"
    assert main(["generate", "lublin", "--jobs", "200", "--procs", "64", "--seed", "9", "-o", str(other)]) == 0
    searches = []
    for name, third in (("a", systems[2]), ("b", str(other))):
        rows = verdicts([*systems[:2], third], capsys, "--seeds", "2", "--resume", str(tmp_path / name))
        assert rows[-1]["trained_on"] == ["first", "second"]
        lines = (tmp_path / name).read_text().splitlines()[1:]
        searches.append({json.dumps(json.loads(line), sort_keys=True) for line in lines})
    without_third = searches[0] & searches[1]
    assert len(without_third) == 2 and len(searches[0]) == 6


def test_holms_correction_is_over_the_systems(systems: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    rows = verdicts(systems, capsys, "--seeds", "2")
    assert {row["trace"] for row in rows} == {"first", "second", "third"} and len(rows) == 12
    for row in rows:
        if row["beats"]:
            alike = [one for one in rows if (one["number"], one["chosen"]) == (row["number"], row["chosen"])]
            smaller = sum(one["against"]["p_value"] < row["against"]["p_value"] for one in alike)
            assert row["against"]["p_value"] <= 0.025 / (3 - smaller)


def test_the_summary_has_each_system_and_fits_80_columns(
    systems: list[str], capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    capsys.readouterr()
    assert main([*COMMAND, *systems, "--seeds", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    summary = lines[next(place for place, line in enumerate(lines) if line.startswith("SYSTEM")) + 1 :]
    assert max(map(len, lines)) <= 80 and [line.split()[0] for line in summary][::4] == ["first", "second", "third"]


def test_a_search_that_did_not_end_is_no_gap_in_the_table(
    systems: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """Such as the last one, when Ctrl-C ends the command before it does."""

    def but_one(tasks: Sequence[SearchTask]) -> Stages[SearchTask]:
        return search_stages(tasks[:-1])

    monkeypatch.setattr("pilotfish.cli.learning.unseen_systems.search_stages", but_one)
    assert main([*COMMAND, *systems, "--seeds", "1"]) == FAILED
    assert "1 search of 3 did not end" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("words", [["--leave-one-out"], ["--as", "irmasim"]])
def test_nodes_are_refused_where_no_model_chooses_rules(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", *words, "--cluster", "c.yaml"]) == USAGE
    assert "--cluster" in capsys.readouterr().err
