"""What saving energy does: the thesis's chapters 6 (budgets) and 7 (machines that are off), and what it costs.

Rule: every row is beside plain EASY on the same jobs; a week with a limit for three days in its middle, and a trace of
moderate load. Without traces from outside the jobs are made up.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from pilotfish.simulate.batch.energy import limited, track
from pilotfish.simulate.batch.metrics import summarise
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
SHUTDOWNS = (
    "", "+opportunistic", "+opportunistic:t_idle=300", "+opportunistic:t_idle=6000", "+proportional:rho=0.9",
    "+inertial", "+inertial:growth=plus-one", "+inertial+opportunistic:t_idle=300",
)  # fmt: skip


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
    _shutdown(quick)


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
                slowdown = summarise(done).mean_bounded_slowdown or 0.0
                ratio = done.simulation_time / plain.simulation_time
                used, consumed = _used(done, begin, end), told.consumed / told.allowed
                name = f"{limit.partition(':')[0]}{off}"
                rows.append([name, f"{share} %", f"{used:.1%}", number(slowdown), f"{consumed:.1%}", f"{ratio:.1f}"])
    exact = _replay(jobs, machine, f"easy+energybud:budget=1000%,begin={begin},end={end}")
    table(("policy", "budget", "used in window", "slowdown", "of the budget", "time / easy's"), rows)
    same = np.array_equal(exact.start_time, plain.start_time, equal_nan=True)
    print(f"\nwith ten times what all could take the schedule is easy's: {'yes' if same else 'NO'}")


def _shutdown(quick: bool) -> None:
    jobs = lublin(3_000 if quick else 30_000, 128, kind="untyped", load=0.65)
    heading(f"Machines that are off: {len(jobs):,} jobs of Lublin's on 128 processors, load 0.65")
    rows, plain = [], None
    for off in SHUTDOWNS:
        done = _replay(jobs, 128, f"easy{off}")
        found = summarise(done, TAURUS)
        plain = plain or (found, done)
        saved = 1 - (found.consumed_joules or 0.0) / (plain[0].consumed_joules or 1.0)
        times = f"{done.simulation_time / plain[1].simulation_time:.1f}"
        waits = number(found.mean_waiting_time or 0.0), number(found.max_waiting_time or 0.0)
        rows.append([f"easy{off}", f"{saved:.1%}", *waits, f"{found.nb_machine_switches:,}", times])
    table(("policy", "energy saved", "mean wait s", "most s", "switches", "time / easy's"), rows)


def _replay(jobs: Workload, machine: int, text: str) -> Replayed:
    """The fastest of three."""
    results = [replay(jobs, machine, parse(text), clock=time.perf_counter) for _ in range(3)]
    return min(results, key=lambda result: result.simulation_time)


def _used(done: Replayed, begin: float, end: float) -> float:
    start, finish = np.clip(done.start_time, begin, end), np.clip(done.finish_time, begin, end)
    return float(np.nansum((finish - start) * done.workload.size) / (done.machine * (end - begin)))
