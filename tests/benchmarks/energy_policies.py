"""What less energy does: chapter 6 of Poquet's thesis, a week with a limit for three days in its middle.

Rule: every row is beside plain EASY on the same jobs. Without traces from outside the jobs are made up.
The mean slowdown is that of the many small jobs: a cap lets them by while wide ones wait for its end, a budget saves
for each job in its turn. So where idle machines take most of the energy the cap may have the lower mean, and the budget
the higher use, and the lower slowdown once jobs count by what they compute, their area. More than a budget is
taken only by what runs already when it begins, and by idle machines where they alone take more.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from pilotfish.simulate.batch.energy import limited, track
from pilotfish.simulate.batch.metrics import TAU_S, summarise
from pilotfish.simulate.batch.powers import TAURUS
from pilotfish.simulate.batch.replay import Replayed, replay
from pilotfish.simulate.batch.select import Select
from pilotfish.simulate.batch.spec import parse
from pilotfish.simulate.formats.swf import read_swf
from pilotfish.simulate.generate.lublin import lublin
from pilotfish.simulate.workload import Workload

from .show import heading, number, table

DAY_S = 86400.0
LIMITS = ("powercap:cap", "reducepc:budget", "energybud:budget")


def weeks(traces: Path | None) -> list[Workload]:
    """Weeks of traces: seven days from a day on at which they are well under way."""
    if traces is None:
        made = lublin(12_000, 1024, kind="untyped", load=0.95)
        return [_week(replace(made, name="lublin-1024", machine=1024))]
    found = [read_swf(path) for path in sorted(traces.glob("*.swf*"))]
    return [_week(jobs) for jobs in found if jobs.machine]


def _week(jobs: Workload) -> Workload:
    begin, end = float(jobs.submit_time[0]), float(jobs.submit_time[-1])
    if end - begin > 8 * DAY_S:
        begin += min(20 * DAY_S, (end - begin) / 4)
    return Select(begin=begin, end=begin + 7 * DAY_S).of(jobs)


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the tables."""
    for jobs in weeks(traces):
        _budgets(jobs, quick)


def _budgets(jobs: Workload, quick: bool) -> None:
    machine = jobs.machine or int(jobs.size.max())
    begin = float(jobs.submit_time[0]) + 2 * DAY_S
    end = begin + 3 * DAY_S
    heading(f"{jobs.name}: a week of {len(jobs):,} jobs on {machine:,} processors, less energy for three days in it")
    plain = _replay(jobs, machine, "easy")
    used = _used(plain, begin, end)
    print(f"easy: used in the window {used:.1%}, slowdown {summarise(plain).mean_bounded_slowdown:,.1f}\n")
    rows = []
    for share in (100, 70, 50) if quick else (100, 90, 80, 70, 60, 50, 30):
        for off in ("", "+opportunistic") if share >= 50 else ("+opportunistic",):
            for limit in LIMITS:
                text = f"easy+{limit}={share}%,begin={begin},end={end}{off}"
                done = _replay(jobs, machine, text)
                told = limited(done, parse(text), TAURUS, track(done, TAURUS))
                assert told is not None
                slowdown, by_area = summarise(done).mean_bounded_slowdown or 0.0, _slowdown_by_area(done)
                ratio = done.simulation_time / plain.simulation_time
                used, consumed = _used(done, begin, end), told.consumed / told.allowed
                name = f"{limit.partition(':')[0]}{off}"
                slow = number(slowdown), number(by_area)
                rows.append([name, f"{share} %", f"{used:.1%}", *slow, f"{consumed:.1%}", f"{ratio:.1f}"])
    exact = _replay(jobs, machine, f"easy+energybud:budget=1000%,begin={begin},end={end}")
    table(("policy", "budget", "used in window", "slowdown", "by area", "of the budget", "time / easy's"), rows)
    same = np.array_equal(exact.start_time, plain.start_time, equal_nan=True)
    print(f"\nwith ten times what all could take the schedule is easy's: {'yes' if same else 'NO'}")


def _replay(jobs: Workload, machine: int, text: str) -> Replayed:
    """The fastest of three."""
    results = [replay(jobs, machine, parse(text), clock=time.perf_counter) for _ in range(3)]
    return min(results, key=lambda result: result.simulation_time)


def _slowdown_by_area(done: Replayed) -> float:
    """Mean of the bounded slowdowns, jobs weighted by processors x run time."""
    run, turnaround = done.finish_time - done.start_time, done.finish_time - done.workload.submit_time
    bounded, area = np.maximum(1.0, turnaround / np.maximum(run, TAU_S)), run * done.workload.size
    return float(np.nansum(bounded * area) / np.nansum(area))


def _used(done: Replayed, begin: float, end: float) -> float:
    start, finish = np.clip(done.start_time, begin, end), np.clip(done.finish_time, begin, end)
    return float(np.nansum((finish - start) * done.workload.size) / (done.machine * (end - begin)))
