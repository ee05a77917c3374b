"""Plans, replays and figures for the tests of charts."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pilotfish.cli.charts import calibration_figure, compare_figure, forecast_figure, replay_figures
from pilotfish.cli.charts.figure import Figure
from pilotfish.cli.charts.plan_gantt import plan_gantt
from pilotfish.cli.charts.replay_figures import FigureView, view
from pilotfish.daemon.report.accuracy import JobOutcome, RunOutcome
from pilotfish.daemon.state.recorded_outcome import ForecastOutcome
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import Plan, PlannedJob, PredictionInterval, RunnerUp
from pilotfish.simulate.model.snapshot import JobState
from pilotfish.simulate.results.recorded_run import DONE, WALLTIME, Energy, Jobs, RecordedRun, StateCounts
from tests.profiles.calibration.calibrations import FULL

DAY = 86400.0
NAMES = ("plain", "作業" * 30, "\x1b[2J\x1b[31m", "[red]x[/red]", "<script>&\"'", "a\nb", "\u202e" + "x" * 200)


class Planned(NamedTuple):
    """A plan with what it was made for."""

    plan: Plan
    workflow: Workflow
    cluster: Cluster

    def chart(self, about: str = "") -> Figure:
        """Its Gantt chart."""
        return plan_gantt(*self, about)


def planned(jobs: list[tuple[Any, ...]], nodes: tuple[str, ...]) -> Planned:
    """A plan of (id, nodes, start, finish, slowdown, after)."""
    kind = NodeType("half", 8, 2**34, 8e10)
    cluster = Cluster("lab", tuple(Node(name, kind) for name in nodes))
    planned_jobs = tuple(
        PlannedJob(name, on, start, finish, 1.0, slow, why=RunnerUp((nodes[-1],), 3.4))
        for name, on, start, finish, slow, _ in jobs
    )
    makespan = max((job.finish_time for job in planned_jobs), default=0.0)
    plan = Plan("dag-1", "lab", "mom", 0, makespan, None, makespan * 0.9, 0.002, False, 7, planned_jobs)
    profile = Profile((ThreadGroup(1, 1.0),))
    return Planned(plan, Workflow("dag-1", tuple(Job(job[0], profile, after=job[5]) for job in jobs)), cluster)


def random_plan(count: int, nodes: int, seed: int = 1) -> Planned:
    """Jobs with hostile names, at random times."""
    draw = random.Random(seed)
    names = tuple(f"s{i}" for i in range(1, nodes + 1))
    jobs = []
    for i in range(count):
        start, on = draw.uniform(0, 900), draw.choice(names)
        name = f"{NAMES[i % len(NAMES)]}{i}"
        jobs.append((name, (on,), start, start + draw.expovariate(1 / 40), draw.uniform(1, 4), ()))
    return planned(jobs, names)


def run_of(count: int, machine: int = 1000, *, policy: str = "easy", days: float = 30.0) -> RecordedRun:
    """A replay of jobs with one resource each, none on the resources of another."""
    draw = np.random.default_rng(count)
    first = np.arange(count) % machine
    submit = np.sort(draw.uniform(0.0, days * DAY, count))
    start = submit + draw.exponential(3600.0, count)
    finish = start + draw.exponential(600.0, count)
    ending = np.where(np.arange(count) % 50 == 7, WALLTIME, DONE).astype(np.int8)
    jobs = Jobs(
        np.array([f"j{i}" for i in range(count)], object), submit, start, finish, np.ones(count, np.int64), ending,
        np.stack([first, first], axis=1), np.arange(count),
    )  # fmt: skip
    return RecordedRun("trace", policy, machine, True, jobs)


def powered(run: RecordedRun, *, asleep: bool) -> RecordedRun:
    """The same replay, with energy and machine states."""
    time = np.array([0.0, 0.0, DAY, 2 * DAY])
    counts = np.array([[0, 0, 0, 9, 0], [4 * asleep, 0, 0, 9 - 4 * asleep, 0], [0, 0, 0, 1, 8], [0, 0, 0, 9, 0]])
    energy = Energy(time, np.array([0.0, 0.0, 1e9, 4e9]))
    return replace(run, states=StateCounts(time, counts), energy=energy, joules=4e9)


def seen(
    *runs: RecordedRun,
    begin: float | None = None,
    end: float | None = None,
    columns: int = 500,
    labels: tuple[str, ...] = (),
) -> FigureView:
    """A view of some runs from folders run0, run1, ..."""
    return view(list(runs), [Path(f"run{i}") for i in range(len(runs))], begin, end, columns, labels)


def forecasts(count: int = 60) -> list[ForecastOutcome]:
    """Completed jobs of two models and five profiles."""
    draw = random.Random(count)
    return [
        ForecastOutcome(f"k{i}", 1.77e9 + 700 * i, 100.0, 100 * draw.lognormvariate(0.05, 0.3), f"p{i % 5}\x1b",
                 ("max-min", "equal-share")[i % 2], "easy", "measured", None, 80.0, 125.0)
        for i in range(count)
    ]  # fmt: skip


def ran(plan: Planned) -> RunOutcome:
    """What became of a plan: some jobs took as long as planned, longer or shorter, some failed, some never started."""
    jobs = []
    for i, job in enumerate(plan.plan.jobs):
        began, run_time = job.start_time + 1.0, (job.finish_time - job.start_time) * (1.0, 2.0, 0.5)[i % 3]
        length = job.finish_time - job.start_time
        within = PredictionInterval(job.start_time, job.finish_time, 0.9 * length, 1.1 * length) if i % 2 else None
        ended = (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)[i % 7 - 4 if i % 7 > 4 else 0]
        times = (None, None) if ended is JobState.CANCELLED else (began, began + run_time)
        jobs.append(JobOutcome(replace(job, within=within), ended, job.nodes, *times, 0, None, ""))
    return RunOutcome("dag-1.7", plan.plan, JobState.FAILED, tuple(jobs))


@cache
def pictures(count: int = 40) -> dict[str, Figure]:
    """Every picture that the commands draw, with about so many jobs."""
    both = seen(powered(run_of(count), asleep=True), powered(run_of(count, 7, policy="a$b$ <i>"), asleep=False))
    return {
        "plan": random_plan(count, 4).chart("policy <mom> & \x1b"),
        "gantt": replay_figures.replay_gantt(both, labelled=True),
        "utilisation": replay_figures.utilisation(both),
        "queue": replay_figures.queue(both),
        "energy": replay_figures.energy(both, ["a", "b"]),
        "compare": compare_figure.compare(both),
        "run": forecast_figure.run_report(ran(random_plan(count, 4)), *random_plan(count, 4)[1:]),
        "accuracy": forecast_figure.forecast_accuracy(forecasts(count)),
        "calibration": calibration_figure.calibration(FULL),
    }
