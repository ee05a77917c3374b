"""Tables and summaries of plans and runs, in 80 columns."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from pilotfish.cli.output.tables import (
    bound,
    busy_hint,
    comparison,
    comparison_notes,
    energy,
    failures,
    header,
    known_to,
    left_out,
    off,
    outcome_summary,
    outcome_table,
    plan_table,
    sharing_note,
    summary,
)
from pilotfish.cli.output.text import Screen, TextColumn, grid
from pilotfish.daemon.report.accuracy import JobOutcome, RunOutcome
from pilotfish.daemon.state.recorded_outcome import error_ratio
from pilotfish.formats.text import width
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import Plan, PlannedJob, PredictionInterval, RunnerUp
from pilotfish.simulate.model.snapshot import JobState
from pilotfish.simulate.planning.planner import plan as planned

HOSTILE = ("作業" * 40, "\x1b[2Jboo", "[red]x[/red]", "a\nb", "x" * 300, "y" * 12)
NODES = tuple(f"s{i}" for i in range(1, 9))


@pytest.fixture
def shown(monkeypatch, capsys):
    """Return the lines of renderables on an 80-column stdout that is not a terminal."""
    monkeypatch.setenv("COLUMNS", "80")

    def show(*renderables) -> list[str]:
        Screen().put(*renderables)
        return capsys.readouterr().out.splitlines()

    return show


def screen(cells: int = 80, *, ascii_only: bool = False) -> Screen:
    console = Screen()
    console.cells, console.ascii_only = cells, ascii_only
    return console


@pytest.mark.parametrize(("columns", "cells"), [("0", 80), ("1", 30), ("80", 80), ("500", 120)])
def test_no_width_is_too_small_to_print(monkeypatch, capsys, columns, cells):
    monkeypatch.setenv("COLUMNS", columns)
    Screen().put("word " * 100)
    assert cells - 5 <= max(map(width, capsys.readouterr().out.splitlines())) <= cells


@pytest.mark.parametrize(
    ("within", "text"),
    [
        ((9.0, 12.0), "-10 +20 %"),
        ((9.99, 10.05), "-0.1 +0.5 %"),
        ((0.0, 1e9), "-100 >999 %"),
        ((10, 10), "-0.0 +0.0 %"),
    ],
)
def test_a_prediction_interval_is_in_percent_of_the_forecast(within, text):
    assert known_to(within, 10.0) == text


def test_a_summary_says_what_the_interval_means(shown):
    assert not any("known to" in line for line in summary(make_plan(), cluster()))
    lines = summary(make_plan(makespan_within=(120.0, 130.0)), cluster())
    assert lines[1] == "known to  120.0 s to 130.0 s with 80 %, as far as the jobs' needs are known"
    job = dataclasses.replace(make_plan().jobs[0], within=PredictionInterval(1.0, 2.0, 1.0, 2.0))
    assert "80 % of the jobs end" in summary(dataclasses.replace(make_plan(), jobs=(job,)), cluster())[1]


def make_plan(jobs: int = 6, makespan: float = 123.4, **changes) -> Plan:
    planned = tuple(
        PlannedJob(
            f"{HOSTILE[i % 6]}{i}",
            NODES[: 1 + i % 8],
            float(i),
            makespan,
            makespan - i,
            1.32,
            why=RunnerUp(("s2",), 3.4),
        )
        for i in range(jobs)
    )
    sample_plan = Plan("dag-1", "lab", "mom", 0, makespan, None, makespan / 1.07, 0.0021, False, 412, planned)
    return dataclasses.replace(sample_plan, **changes)


def cluster(power: Power | None = None) -> Cluster:
    kind = NodeType("xeon", 8, 2**34, 8e10, power=power)
    return Cluster("lab", tuple(Node(name, kind) for name in NODES))


@pytest.mark.parametrize("jobs", [0, 1, 6, 40, 41, 1000])
@pytest.mark.parametrize("makespan", [0.5, 123.4, 98_765_432.1])
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("factor", [None, 1.2, 1e4])
def test_the_plan_table_fits_80_cells(jobs, makespan, ascii_only, factor, shown):
    plan = make_plan(jobs, makespan)
    if factor:
        within = PredictionInterval(0.0, makespan * factor, 0.0, makespan * factor)
        plan = dataclasses.replace(plan, jobs=tuple(dataclasses.replace(job, within=within) for job in plan.jobs))
    lines = shown(plan_table(plan, screen(ascii_only=ascii_only)))
    assert ("KNOWN TO" in lines[0]) is (bool(factor) and jobs > 0)
    assert max(map(width, lines)) <= 80
    assert len(lines) == (jobs + 1 if jobs <= 40 else 32)
    assert all(line == line.rstrip() and "\x1b" not in line for line in lines)
    assert not ascii_only or all(line.isascii() for line in lines)


def test_the_plan_table_shows_the_next_best_nodes(shown):
    plan = make_plan(1)
    plan = dataclasses.replace(plan, jobs=(dataclasses.replace(plan.jobs[0], id="prepare"),))
    head, row = shown(plan_table(plan, screen()))
    assert head.split() == ["JOB", "NODES", "START", "s", "FINISH", "s", "SLOWDOWN", "NEXT", "BEST"]
    assert row.split() == ["prepare", "s1", "0.0", "123.4", "1.32", "s2", "+3.4", "s"]
    untimed = dataclasses.replace(plan.jobs[0], why=RunnerUp(("s2",), None))
    assert shown(plan_table(dataclasses.replace(plan, jobs=(untimed,)), screen()))[1].split()[-2:] == ["1.32", "s2"]


def test_hidden_rows_are_reported_and_can_be_shown(shown):
    assert left_out(40) == "" and left_out(1000).startswith("970 jobs left out: --all")
    assert len(shown(plan_table(make_plan(1000), screen(), everything=True))) == 1001


def test_the_header_names_what_was_planned():
    workflow = Workflow("dag-1", (Job("a", Profile((ThreadGroup(1, 1.0),))),))
    assert header(make_plan(), workflow, cluster()) == "dag-1 on lab: 1 job, 8 nodes, policy mom"
    long = dataclasses.replace(workflow, name="\x1b" + "n" * 300)
    assert width(header(make_plan(), long, cluster())) <= 80


def test_the_summary_has_bound_energy_and_effort():
    lines = summary(make_plan(truncated=True), cluster())
    assert lines == [
        "makespan  123.4 s, within 7.0 % of the proven lower bound of 115.3 s",
        "energy    unknown: node type xeon gives no power",
        "decided   in 2.1 ms, 412 simulations, cut short by the time limit",
    ]
    for makespan in (3600.5, 123_456.7, 98_765_432.1):
        assert all(width(line) <= 80 for line in summary(make_plan(makespan=makespan), cluster()))
    assert energy(make_plan(energy_j=56789.0), cluster(Power(95.0))) == "56.8 kJ"
    assert bound(make_plan(lower_bound=123.4)).startswith("optimal")
    assert bound(make_plan(lower_bound=0.0)) == "no lower bound"


@pytest.mark.parametrize(
    ("others", "says"),
    [([], "xeon gives"), (["epyc"], "xeon and 1 other give"), (["epyc", "arm"], "xeon and 2 others give")],
)
def test_the_node_types_without_power_are_counted_but_not_their_variants(others, says):
    xeon = cluster().nodes[0].type
    kinds = [xeon, xeon.at_pace(0.9), *(replace(xeon, name=name) for name in others)]
    mixed = Cluster("lab", tuple(Node(f"n{i}", kind) for i, kind in enumerate(kinds)))
    assert energy(make_plan(), mixed) == f"unknown: node type {says} no power"


def test_the_comparison_marks_the_best_by_the_objective(shown):
    plans = [make_plan(1, policy="slf", energy_j=1000.0), make_plan(1, 246.8, policy="mom", energy_j=10.0)]
    lines = shown(comparison(plans, [1000.0, 10.0], screen()))
    assert max(map(width, lines)) <= 80
    assert lines[1].split() == ["slf", "123.4", "s", "best", "1.00", "kJ", "+7.0", "%", "2.1", "ms"]
    assert lines[2].startswith("> mom") and "+100 %" in lines[2] and "10.0 J" in lines[2]
    notes = comparison_notes(plans, [1000.0, 10.0], cluster(), "energy")
    assert notes[0] == "best      mom, by energy" and "230.7 s" in notes[1] and len(notes) == 2


def outcome(*changes: dict) -> RunOutcome:
    planned = make_plan(len(changes) or 1, 10.0)
    base = {"state": JobState.COMPLETED, "nodes": ("s1",), "start_time": 0.0, "finish_time": 12.5}
    base |= {"exit_code": 0, "signal": None, "reason": ""}
    jobs = tuple(
        JobOutcome(**{**base, **change, "planned": job}) for job, change in zip(planned.jobs, changes, strict=True)
    )
    failed = any(job.state is not JobState.COMPLETED for job in jobs)
    return RunOutcome("r.1", planned, JobState.FAILED if failed else JobState.COMPLETED, jobs)


def test_a_run_that_took_longer_has_positive_errors(shown):
    went = outcome({}, {"start_time": 1.0, "finish_time": 6.0})
    assert went.exit_code == 0 and went.makespan == 12.5
    assert went.jobs[0].error == pytest.approx(1.25) and went.jobs[1].error == pytest.approx(5 / 9)
    assert went.median_factor == pytest.approx((1.25 + 9 / 5) / 2) and went.worst is went.jobs[1]
    assert went.makespan_error == pytest.approx(1.25)
    lines = shown(outcome_table(went, screen()), *outcome_summary(went))
    assert "1.25x longer" in lines[1] and "1.80x shorter" in lines[2] and lines[1].endswith("ok")
    assert lines[3] == "makespan  12.50 s, planned 10.00 s, 1.25x longer"
    assert lines[-1] == "jobs      2 of 2 completed"
    assert max(map(width, lines)) <= 80


@pytest.mark.parametrize(
    ("actual", "shown"),
    [(12.5, "1.25x longer"), (8.0, "1.25x shorter"), (50.0, "5.0x longer"), (0.1, "100x shorter"), (10.01, "1.00x")],
)
def test_errors_are_factors_with_their_direction(actual, shown):
    assert off(error_ratio(10.0, actual)) == shown


def test_other_processes_are_mentioned_only_if_they_ran_and_forecasts_missed():
    late, good = outcome({}), outcome({"finish_time": 10.0})
    assert busy_hint(late, 0.48) == (
        "other processes used 48 % of these CPUs' time: forecasts assume the share that was left at the start"
    )
    assert busy_hint(late, 0.01) == "" and busy_hint(good, 0.48) == ""
    assert busy_hint(outcome({"finish_time": 0.01}), 0.48) == ""
    punctual = outcome({"start_time": 0.0, "finish_time": 5.0}, {"start_time": 5.0, "finish_time": 10.0})
    assert punctual.makespan_error == 1.0 and busy_hint(punctual, 0.48), "the run times were off, not the makespan"


def test_a_median_error_of_thousands_of_percent_is_a_factor():
    line = outcome_summary(outcome({"finish_time": 0.01}))[1]
    assert line.startswith("run time  off by 1,000x in the median, at worst 1,000x shorter")


def test_the_worst_run_time_is_off_by_the_largest_factor():
    went = outcome({"finish_time": 60.0}, {"finish_time": 4.0})  # 6x longer, 2.5x shorter
    assert went.worst is went.jobs[0] and "at worst 6.0x longer" in outcome_summary(went)[1]


def test_failed_jobs_are_listed_with_their_stderr(shown):
    never = {
        "state": JobState.CANCELLED,
        "nodes": (),
        "start_time": None,
        "finish_time": None,
        "exit_code": None,
    }
    went = outcome({"state": JobState.FAILED, "exit_code": 3}, never, {"state": JobState.FAILED, "signal": 9})
    assert went.exit_code == 1 and went.makespan_error is None and went.worst is None
    lines = shown(outcome_table(went, screen()), *outcome_summary(went))
    assert lines[1].endswith("exit 3") and lines[3].endswith("cancelled")
    assert "SIGKILL" in "\n".join(lines) and lines[-1] == "jobs      0 of 3 completed, 2 failed, 1 cancelled"
    messages = failures(went, {went.jobs[0].planned.id: ("/x/out", "/x/err")})
    assert len(messages) == 2 and messages[0].endswith("failed: exit code 3; stderr: /x/err")


def test_only_shared_cores_are_explained():
    job = Job("a", Profile((ThreadGroup(1, 1.0),)))
    flow = Workflow("f", (job, replace(job, id="b")))
    kind = NodeType("t", 1, 1e9, 1e9)

    def site(oversubscription):
        return Cluster("c", (Node("n", kind),), oversubscription)

    sharing = planned(flow, site(2.0), policy="loadavg")
    assert sharing_note(sharing, flow, site(2.0)) == [
        "slowdown  2 jobs share cores: oversubscription allows 2 threads a core"
    ]
    assert sharing_note(planned(flow, site(1.0), policy="loadavg"), flow, site(1.0)) == []


def test_a_wide_table_shortens_names_but_no_heading_or_number():
    columns = (
        TextColumn("WORKLOAD"),
        TextColumn("POLICY"),
        TextColumn("LOAD", right=True),
        TextColumn("SEED", right=True),
    )
    narrow = screen(60, ascii_only=True)
    rows = [("w" * 60, "p" * 60, "1.25", "4711")]
    table = grid(columns, rows, narrow)
    assert [column.header for column in table.columns] == ["WORKLOAD", "POLICY", "LOAD", "SEED"]
    texts = [str(next(iter(column.cells))) for column in table.columns]
    assert texts[2:] == ["1.25", "4711"] and sum(map(len, texts)) + 6 <= 60


def test_guesses_are_marked_and_never_optimal(shown) -> None:
    plan = make_plan(3)
    one, all_ = {plan.jobs[0].id}, {job.id for job in plan.jobs}
    marked = [line for line in shown(plan_table(plan, screen(), guessed=one)) if "?" in line]
    assert len(marked) == 1 and "123.4?" in marked[0]
    assert summary(plan, cluster(), all_)[0].endswith("s?, a guess: nothing is known of 3 of 3 jobs")
    assert summary(plan, cluster(), one)[0].endswith("s, with guesses for 1 of 3 jobs")
    assert "optimal" not in "".join((*summary(plan, cluster(), one), *summary(plan, cluster(), all_)))
