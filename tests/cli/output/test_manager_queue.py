"""Output on the resource manager's own queue."""

from __future__ import annotations

import pytest

from pilotfish.cli.output.manager_queue import put_queue, put_starts
from pilotfish.cli.output.status import show_job_log
from pilotfish.cli.output.text import Screen
from pilotfish.daemon.state.recorded_outcome import QueueRecord
from pilotfish.formats.text import width

PLAN = {
    "nodes": [], "start_time": 130.0, "start_within": [120.0, 150.0], "finish_time": 160.0, "run_time": 30.0,
    "finish_within": [150.0, 190.0], "forecast_by": None, "next_best": None,
}  # fmt: skip
JOB = {"id": "7", "key": "slurm/7", "name": "align", "owner": "games", "state": "pending", "nodes": [], "plan": PLAN,
       "manager_start_time": 700.0, "unknown": "", "walltime": 60.0, "tasks": 1}  # fmt: skip
HELD = JOB | {"id": "8", "name": "held", "plan": None, "manager_start_time": None, "unknown": "it is held"}


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_each_job_shows_when_it_starts_or_why_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    put_queue(Screen(), {"queue": [JOB, HELD], "queue_left_out": 2, "time": 100.0}, everything=False)
    _, head, columns, first, second, why = capsys.readouterr().out.splitlines()
    assert head == "4 jobs not handed over, in the resource manager's order"
    assert all(name in columns for name in ("STARTS IN", "SOONEST", "LATEST", "RJMS SAYS", "ENDS IN"))
    assert first.split() == [
        "7",
        "align",
        "games",
        *["30.00", "s", "20.00", "s", "50.00", "s", "600.0", "s", "60.00", "s"],
    ]
    assert second.split() == ["8", "held", "games", "?"] and why == "?  it is held: 8"
    assert max(map(width, (head, columns, first, second, why))) <= 80


def test_a_queue_forecast_long_ago_shows_its_age_and_starts_that_count_from_now(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reply = {"queue": [JOB], "queue_left_out": 1_233, "time": 125.0, "forecast_time": 100.0}
    put_queue(Screen(), reply, everything=False)
    _, head, _, row = capsys.readouterr().out.splitlines()
    assert head.endswith("resource manager's order, forecast 25 s ago") and width(head) <= 80
    assert row.split()[3:5] == ["5.000", "s"]


@pytest.mark.parametrize(
    ("forecasts", "words"),
    [
        (
            {"by": "EASY", "why_not": "twin is false", "unfollowed": [], "jobs": 0},
            "replay under EASY, not by the resource",
        ),
        ({"by": "its own rules", "why_not": "", "unfollowed": ["x"], "jobs": 1}, "(1 of 2, the others as in a replay"),
        ({"by": "EASY", "why_not": "", "unfollowed": [], "jobs": 0}, ""),
    ],
)
def test_where_the_starts_come_from(
    forecasts: dict[str, object], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = {"queue": [JOB, HELD], "queue_left_out": 0, "time": 100.0, "forecasts": forecasts}
    put_queue(Screen(), reply, everything=False)
    lines = [line for line in capsys.readouterr().out.splitlines()[5:] if not line.startswith("?")]
    assert " ".join(" ".join(lines).split()).startswith("starts ") == bool(words)
    assert words in " ".join(" ".join(lines).split()) and max(map(width, lines), default=0) <= 80


def test_an_array_says_how_many_of_its_tasks_wait(capsys: pytest.CaptureFixture[str]) -> None:
    put_queue(Screen(), {"queue": [JOB, HELD | {"tasks": 1200}], "queue_left_out": 0, "time": 100.0}, everything=False)
    *_, array, why, legend = capsys.readouterr().out.splitlines()
    assert array.split()[0] == "8[1,200]" and why == "?  it is held: 8[1,200]"
    assert legend == "8[1,200]: 1,200 tasks wait; the first starts, and the last ends, as shown"
    assert max(map(width, (array, legend))) <= 80


def test_nothing_but_names_is_cut_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Ids are typed again, headings explain the numbers, and a reason is read to its end."""
    named = {"name": "a_very_long_name_of_a_job", "owner": "somebody.with.a.long.name", "manager_start_time": 90000.0}
    reason = "it may run only on some of the nodes that other jobs use, and this goes on for some words more"
    late = PLAN | {"start_time": 9e4, "start_within": [8e4, 2e6], "finish_time": 3e6}
    jobs = [JOB | named | {"id": f"4711123{i}", "plan": late} for i in range(3)]
    jobs += [HELD | named | {"id": f"4711124{i}", "unknown": reason} for i in range(7)]
    put_queue(Screen(), {"queue": jobs, "queue_left_out": 0, "time": 100.0}, everything=False)
    stdout = capsys.readouterr().out
    lines = stdout.splitlines()
    assert all(width(line) <= 80 for line in lines) and all(name in lines[2] for name in ("SOONEST", "RJMS SAYS"))
    assert all(job["id"] in line for job, line in zip(jobs, lines[3:], strict=False))
    assert f"{reason}: 47111240, 47111241, 47111242, 47111243, 47111244 and 2 more" in " ".join(stdout.split())


def test_a_long_queue_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    reply = {"queue": [JOB] * 40, "queue_left_out": 0, "time": 100.0}
    put_queue(Screen(), reply, everything=False)
    assert capsys.readouterr().out.splitlines()[-1] == "10 more: --all"
    put_queue(Screen(), reply, everything=True)
    assert len(capsys.readouterr().out.splitlines()) == 43
    put_queue(Screen(), {"queue": [], "queue_left_out": 0, "time": 100.0}, everything=True)
    assert capsys.readouterr().out == ""


def test_both_forecasts_stand_next_to_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    record = QueueRecord(
        "slurm/7", said_time=100.0, said_start=130.0, said_early=120.0, said_late=150.0, compared_start=130.0, manager_start=9000.0,
        start_time=135.0,
    )  # fmt: skip
    put_starts(Screen(), [record])
    lines = capsys.readouterr().out.splitlines()
    ours, both, theirs = (line.split() for line in lines[3:6])
    assert ours == ["pilotfish", "1", "100", "%", "100", "%", "5.000", "s", "5.000", "s", "late", "100", "%"]
    assert max(map(len, lines)) <= 80
    assert "inside    intervals that were 0.86x as wide as the wait was long, in the median" in lines
    assert both[:2] == ["pilotfish,", "compared"] and theirs[:3] == ["resource", "manager,", "compared"]
    assert theirs[4:8] == ["0", "%", "0", "%"] and "early" in theirs


def test_explain_says_when_and_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    none = dict.fromkeys(("start_time", "finish_time", "exit_code", "signal", "forecast_run_time", "stdout", "stderr"))
    for job, text in ((JOB, "80 % between 20.00 s and 50.00 s"), (HELD, "it is not known when: it is held")):
        reply = {
            "job": {**none, "reason": "", **job},
            "submit_time": 90.0,
            "after": [],
            "time": 100.0,
            "waits": "",
            "story": [],
        }
        show_job_log(reply)
        assert text in " ".join(capsys.readouterr().out.split())
