"""Forecast errors of groups of jobs as table, JSON and picture, with and without the daemon."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.cli.__main__ import main
from pilotfish.cli.output.status import show_accuracy, show_job_log
from pilotfish.daemon.report.accuracy import (
    ENOUGH_JOBS,
    NOT_RECORDED,
    accuracy,
    by,
    calibration,
    factor,
    known,
    quantile,
    to_csv,
    to_dict,
    turnaround_gain,
)
from pilotfish.daemon.state.profile_labels import profile_of
from pilotfish.daemon.state.recorded_outcome import ForecastOutcome, error_ratio
from pilotfish.daemon.state.users import user_name
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import PredictionInterval
from pilotfish.simulate.model.snapshot import JobState

SPANS = st.floats(0.01, 1e6)


def job(
    actual: float, forecast: float = 10.0, profile: str | None = "align", at: float = 0.0, **told: Any
) -> ForecastOutcome:
    return ForecastOutcome(f"w/{at:g}", at, forecast, actual, profile, **{"model": "max-min", "policy": "mom", **told})


@pytest.mark.parametrize(
    ("forecast", "actual", "size"), [(10, 10, 1), (15, 10, 1.5), (10, 50, 5), (0, 0, 1), (0.002, 0, 2)]
)
def test_the_size_of_an_error_is_a_factor(forecast, actual, size):
    assert factor(error_ratio(forecast, actual)) == pytest.approx(size)


@given(SPANS, SPANS)
def test_too_long_and_too_short_are_errors_of_the_same_size(forecast, actual):
    there, back = error_ratio(forecast, actual), error_ratio(actual, forecast)
    assert there * back == pytest.approx(1.0) and factor(there) == pytest.approx(factor(back)) and factor(there) >= 1.0


def test_the_figures_of_a_group():
    found = accuracy("x", [job(10.0), job(12.5), job(8.0), job(20.0)])
    assert (found.jobs, found.median_factor, found.high_factor) == (4, pytest.approx(1.25), 2.0)
    assert found.bias == pytest.approx(1.125) and found.trend is None


def test_the_trend_is_below_one_if_forecasts_improve():
    worse, better = [job(20.0)] * 5, [job(10.0)] * 5
    assert accuracy("x", worse + better).trend == 0.5 and accuracy("x", better + worse).trend == 2.0


@given(st.lists(SPANS, min_size=1, max_size=60), st.sampled_from([0.5, 0.9, 1.0]))
def test_a_quantile_is_the_least_value_with_enough_values_up_to_it(values, share):
    found = quantile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9
    assert sum(value < found for value in values) < share * len(values)


@given(st.lists(st.builds(job, SPANS, SPANS, st.sampled_from(["a", "b", None, "default"])), max_size=40))
def test_every_job_is_in_one_group_of_each_kind(jobs):
    assert sum(group.jobs for group in by("profile", jobs)) == len(jobs)
    for kind in ("model", "policy"):
        assert sum(group.jobs for group in by(kind, jobs)) == len(known(jobs))
    assert all(group.median_factor <= group.high_factor for group in by("profile", jobs))
    json.dumps(to_dict(jobs), allow_nan=False)


def test_default_profiles_do_not_count_against_a_model():
    jobs = [job(10.0), job(99.0, profile=DEFAULT_PROFILE.name), job(10.0, model=None)]
    assert [(group.name, group.median_factor) for group in by("model", jobs)] == [("max-min", 1.0), (NOT_RECORDED, 1.0)]


def test_the_name_of_a_jobs_profile():
    profile = Profile((ThreadGroup(1, 1.0),))
    assert profile_of(Job("a", DEFAULT_PROFILE, command=("x",))) == "default"
    assert profile_of(Job("a", profile, command=("/bin/x", "1"))) == "cmd: x 1 (given)"
    assert profile_of(Job("a", profile)) == "no command (given)"
    assert profile_of(Job("a", Profile(profile.groups, name="align"))) == "align"


def test_jobs_inside_their_interval_are_counted_if_there_was_one():
    jobs = [job(10.0, shortest_s=9.0, longest_s=11.0), job(12.0, shortest_s=9.0, longest_s=11.0), job(99.0)]
    assert [one.inside for one in jobs] == [True, False, None]
    found = accuracy("x", jobs)
    assert (found.jobs, found.intervals, found.inside) == (3, 2, 0.5)
    assert accuracy("x", jobs[2:]).inside is None
    document = to_dict(jobs)
    assert document["level"] == 0.8 and document["all"]["inside"] == 0.5 and document["jobs"][1]["inside"] is False


def test_intervals_hold_or_not_in_each_group_of_enough_jobs():
    held = [job(12.0 if i % 5 else 99.0, shortest_s=10.0, longest_s=15.0, user=1, source="given") for i in range(40)]
    wide = [replace(one, profile="cmd: x 1", actual_s=12.0, user=2, source="given") for one in held]
    few = [replace(one, profile="cmd: x 2", user=3) for one in held[:29]]
    found = {each.kind: each for each in calibration([*held, *wide, *few])}
    assert [found["source"].groups, found["source"].calibrated, found["source"].above] == [1, 0, 1]
    assert [found["user"].groups, found["user"].calibrated, found["user"].above] == [2, 1, 1]
    assert [found["command"].groups, found["command"].above] == [1, 1] and found["profile"].groups == 2
    assert calibration(few) == []
    assert to_dict([*held, *wide])["calibration"][0]["groups"] == 1
    names = [group.name for group in by("user", [*held, *wide])]
    assert len(names) == 2 and all("uid" in name for name in names)


def test_commands_of_one_program_are_told_apart_in_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"cmd: generate.py {size}00000 --with-many --options *.txt" for size in (2, 6, 12)]
    jobs = [job(99.0, profile=name, shortest_s=1.0, longest_s=1e3) for name in names for _ in range(10)]
    show_accuracy(jobs, everything=False)
    out = capsys.readouterr().out
    assert all(name in " ".join(out.split()) for name in names) and max(map(len, out.splitlines())) <= 80


def test_turnaround_is_compared_with_the_queues_own_order_once_enough_jobs_have_ended():
    times = {"turnaround_s": 40.0, "plain_turnaround_s": 60.0}
    jobs = [job(20.0, 20.0, **times), job(5.0, 5.0, **times | {"plain_turnaround_s": 20.0}), job(5.0, 5.0)]
    gain = turnaround_gain(jobs * (ENOUGH_JOBS // 2))
    assert (gain.jobs, gain.turnaround_s, gain.plain_turnaround_s) == (ENOUGH_JOBS, 40.0, 40.0)
    assert (gain.slowdown, gain.plain_slowdown) == (3.0, 2.5)  # over 20 s, and over the least of 10 s
    assert turnaround_gain(jobs * (ENOUGH_JOBS // 2 - 1)) is None
    assert turnaround_gain([job(5.0, 5.0)] * 2 * ENOUGH_JOBS) is None


def test_the_csv_has_every_job_and_no_control_characters():
    jobs = [job(10.0, profile='a "b",\n\x1b\udc80', shortest_s=9.0, longest_s=11.0, source="measured"), job(5.0)]
    first, second = csv.DictReader(to_csv(jobs).splitlines())
    assert (first["job"], first["source"], first["inside"], float(first["actual_s"])) == ("w/0", "measured", "true", 10)
    assert first["profile"] == 'a "b",\\x0a\\x1b\\udc80'
    assert (second["inside"], second["shortest_s"], float(second["ratio"])) == ("", "", 0.5)


def with_intervals(planner):
    """Return a planner with a prediction interval of a tenth more or less."""

    def plan(problem, cluster, options):
        made = planner(problem, cluster, options)
        jobs = []
        for one in made.jobs:
            length = one.finish_time - one.start_time
            within = PredictionInterval(
                one.finish_time - length / 10, one.finish_time + length / 10, 0.9 * length, 1.1 * length
            )
            jobs.append(replace(one, within=within))
        return replace(made, jobs=tuple(jobs))

    return plan


def test_an_interval_survives_a_restart_and_is_counted_at_the_end(bench, kit, tmp_path, capsys):
    bench.planner = with_intervals(kit.first_fit)
    bench.kill()
    bench.start()
    bench.manager.takes["late"] = 20.0
    workflow = bench.submit(kit.job("fine"), kit.job("late"))
    bench.run(3)
    bench.kill()
    bench.start()
    bench.run(30)
    reply = json.loads(json.dumps(kit.requests(bench)("explain", job=f"{workflow}/late")))
    assert reply["job"]["forecast_run_within"] == pytest.approx([9.0, 11.0])
    show_job_log(reply)
    assert "outside of 9.000 s to 11.00 s" in " ".join(capsys.readouterr().out.split())
    assert bench.value("forecast_intervals_total", source="given", result="inside") == 1
    assert bench.value("forecast_intervals_total", source="given", result="outside") == 1
    assert bench.value("forecast_interval_groups", kind="profile", share="calibrated") == 0
    assert bench.value("forecast_interval_width_ratio_sum", source="given") == pytest.approx(2 * 11 / 9)
    bench.kill()
    assert main(["accuracy", "--journal", str(bench.path), "--out", str(tmp_path / "a.csv")]) == 0
    out = capsys.readouterr().out
    assert "INSIDE" in out and "50 %" in out and all(len(line) <= 80 for line in out.splitlines())
    with (tmp_path / "a.csv").open() as file:
        document = {row["job"].partition("/")[2]: row["inside"] for row in csv.DictReader(file)}
    assert document == {"fine": "true", "late": "false"}


@pytest.fixture
def ran(bench, kit):
    """Run six jobs that take as long as forecast, and one that takes twice as long."""
    bench.manager.takes["late"] = 20.0
    bench.submit(*(kit.job(f"j{i}") for i in range(6)), kit.job("late"))
    bench.run(60)
    return bench


def test_the_journal_returns_every_completed_job(ran, kit):
    ran.manager.exits["bad"] = 1
    ran.submit(kit.job("bad"))
    ran.run(15)
    found = ran.journal.forecasts(100)
    assert {one.key.partition("/")[2] for one in found} == {*(f"j{i}" for i in range(6)), "late"}
    assert [one.time for one in found] == sorted(one.time for one in found)
    assert {(one.profile, one.model, one.policy) for one in found} == {("cmd: true (given)", "max-min", "mom")}
    assert max(found, key=lambda one: one.error).error == pytest.approx(2.0)
    assert ran.journal.forecasts(2) == found[-2:]


def test_it_reads_a_journal_in_use_by_a_daemon(ran, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["accuracy", "--journal", str(ran.path)]) == 0
    out = capsys.readouterr().out
    assert "7 jobs completed with a forecast" in out and "max-min" in out and "cmd: true" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert main(["accuracy", "--journal", str(ran.path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "pilotfish/accuracy/v1" and len(document["jobs"]) == 7
    assert document["all"]["jobs"] == 7 and document["profile"][0]["high_factor"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    "data", ["{", "[1]", '{"run_within": [1, "b"]}', '{"run_within": [1]}', '{"model": {}}', '{"user": []}']
)
def test_an_unreadable_record_is_left_out_and_reported(ran, capsys, data):
    ran.kill()
    with closing(sqlite3.connect(ran.path, isolation_level=None)) as database:
        database.execute("UPDATE story SET data = ? WHERE kind = 'chosen'", (data,))
    assert main(["accuracy", "--journal", str(ran.path)]) == 0
    err = capsys.readouterr().err
    assert "left out 7 rows of the table story that cannot be read" in err and "unexpected" not in err


@pytest.mark.parametrize("data", ["{", '{"model": {}}'])
def test_an_unreadable_forecast_does_not_stop_a_daemon_that_starts(ran, kit, caplog, data):
    ran.kill()
    with closing(sqlite3.connect(ran.path, isolation_level=None)) as database:
        database.execute("UPDATE story SET data = ? WHERE kind = 'chosen'", (data,))
    ran.start()
    assert "cannot be read and is left out" in caplog.text
    workflow = ran.submit(kit.job("next"))
    ran.run(15)
    assert ran.states(workflow) == {"next": "completed"}


def test_the_intervals_of_a_daemon_are_those_of_the_errors_before_its_restart(bench, kit):
    """Ten jobs take twice as long as forecast; the eleventh is said to do so, too."""
    for i in range(11):
        if i == 10:
            bench.restart()
        bench.manager.takes[f"j{i}"] = 20.0
        workflow = bench.submit(kit.job(f"j{i}"))
        bench.run(25)
    last = next(one for one in bench.journal.forecasts(20) if one.key == f"{workflow}/j10")
    assert last.shortest_s is not None and last.longest_s == pytest.approx(20.0, rel=0.15)
    assert last.shortest_s < 10.0 and last.inside


def test_a_job_that_ended_before_it_began_has_no_error(bench, kit):
    """The clock is set back by an hour while the job runs."""
    workflow = bench.submit(kit.job("fine"))
    bench.run(12)
    bench.submit(kit.job("back"))
    bench.cycle.run()
    bench.manager.time -= 3600.0
    bench.manager.takes["back"] = -3600.0
    bench.run(3)
    found = bench.journal.find("w.2").entries["back"]
    assert found.state is JobState.COMPLETED and found.finish_time < found.start_time
    assert [one.key for one in bench.journal.forecasts(9)] == [f"{workflow}/fine"]
    assert bench.value("forecast_error_factor_count", kind="run_time", direction="longer") == 1


def test_out_draws_what_it_would_list(ran, capsys, tmp_path):
    page, table = tmp_path / "a.html", tmp_path / "a.csv"
    assert main(["accuracy", "--journal", str(ran.path), "--out", str(page), "--plot", str(tmp_path / "a.svg")]) == 0
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>") and "the latest 7 jobs" in text and (tmp_path / "a.svg").exists()
    assert not table.exists() and str(page) in " ".join(capsys.readouterr().err.split())


def test_only_the_jobs_of_one_user(bench, kit, capsys):
    bench.submit(replace(kit.job("mine"), owner=os.getuid()), replace(kit.job("theirs"), owner=os.getuid() + 12345))
    bench.run(30)
    mine = user_name(os.getuid())
    for name, jobs in (mine, 1), (mine.partition(" (")[0], 1), ("nobody-else", 0):
        assert main(["accuracy", "--journal", str(bench.path), "--user", name, "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["jobs"]) == jobs


def test_the_daemon_gives_the_same_answer(ran, kit):
    answer = json.loads(json.dumps(kit.requests(ran)("accuracy")))
    assert [ForecastOutcome(*one) for one in answer["jobs"]] == ran.journal.forecasts(100)


def test_a_journal_without_forecasts_is_reported(bench, capsys, tmp_path):
    assert main(["accuracy", "--journal", str(bench.path), "--plot", str(tmp_path / "a.svg")]) == 0
    assert "No job with a forecast has completed" in capsys.readouterr().out
    ElementTree.parse(tmp_path / "a.svg")


@pytest.mark.real
@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--plot", "x.gif"], 64, "no known ending"),
        (["--out", "x.txt"], 64, "no known ending (allowed: .csv, .svg, .png, .pdf, .html)"),
        (["--journal", "x", "--socket", "y"], 64, "not with --journal"),
        (["--journal", "/no/such"], 1, "no such file"),
        (["--plot", "/no/such/a.svg"], 1, "no such folder"),
        (["--out", "/no/such/a.csv"], 1, "no such folder"),
        (["--socket", "/no/such"], 1, "/no/such"),
    ],
)
def test_an_impossible_request_is_one_line(capsys, argv, code, said):
    assert main(["accuracy", *argv]) == code
    err = capsys.readouterr().err
    assert said in " ".join(err.split()) and "Traceback" not in err


def test_a_file_that_is_not_a_journal_is_one_line(capsys, tmp_path):
    (tmp_path / "j").write_text("no journal at all, but long enough to be taken for one" * 10)
    assert main(["accuracy", "--journal", str(tmp_path / "j")]) == 1
    assert "damaged" in capsys.readouterr().err
