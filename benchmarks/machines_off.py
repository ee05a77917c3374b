"""Savings and costs of switching machines off: chapter 7 of Poquet's thesis (2017) with its parameters (table 7.1).

Rule: every row is compared with plain EASY on the same jobs. Saved energy is given as a share of EASY's energy, and of
the energy of its idle machines, which is the most that can be saved and does not depend on the computing power. (The
thesis reports 7.66e11 J for EASY in 24 months on 128 machines of 95 W idle power, as if computing drew no more.)
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import product

from pilotfish.benchmarks.show import heading, number, simple_policy, table
from pilotfish.simulate.generate.models import lublin
from pilotfish.simulate.model.machine import TAURUS_POWERS
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.replay.energy import STATES, track
from pilotfish.simulate.replay.metrics import summarise
from pilotfish.simulate.replay.replay import replay

MACHINES, LOAD = 128, 0.65
NAMED = (
    "", "+opportunistic", "+opportunistic:t_idle=300", "+opportunistic:t_idle=6000", "+proportional:rho=0.9",
    "+inertial", "+inertial:growth=plus-one", "+inertial+opportunistic:t_idle=300",
)  # fmt: skip
PERIODS, BOUNDS, IDLE = (60, 120, 300, 600), ("1e4", "1e5", "2e5"), (0, 300, 600, 6000)


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one replay."""

    policy: str
    joules: float
    mean_wait: float
    max_wait: float
    switches: int
    seconds: float


def measure(quick: bool) -> None:
    """Print the tables: for small jobs, as on KTH-SP2 and SDSC-SP2, and for wide ones."""
    count = 3_000 if quick else 20_000
    small = lublin(count, MACHINES // 4, kind="untyped", load=4 * LOAD)
    _compare(small, f"{count:,} jobs of {MACHINES // 4} processors at most", quick)
    _compare(lublin(count, MACHINES, kind="untyped", load=LOAD), f"{count:,} jobs, some of all processors", quick)


def _compare(jobs: Workload, name: str, quick: bool) -> None:
    heading(f"Switching machines off: {name}, {MACHINES} processors, load {LOAD}")
    drawn = track(replay(jobs, MACHINES, simple_policy("easy")), TAURUS_POWERS)
    idle = float(drawn.counts[:-1, STATES.index("idle")] @ (drawn.time[1:] - drawn.time[:-1]))
    named = [_run(jobs, text) for text in NAMED]
    _show(named, named[0], idle * TAURUS_POWERS.idle)
    runs = [*named, *(_run(jobs, text) for text in _grid(quick))]
    for title, selection in (
        ("all", runs),
        ("inertial alone", [run for run in runs if "opportunistic" not in run.policy]),
    ):
        print(f"Pareto set of energy and mean waiting time, {title}:\n")
        _show(_pareto(selection), named[0], idle * TAURUS_POWERS.idle)


def _grid(quick: bool) -> list[str]:
    """Return the policies of table 7.1, without parameters that the thesis found negligible."""
    periods, bounds = (PERIODS[:2], BOUNDS[:2]) if quick else (PERIODS, BOUNDS)
    opportunistic = ["", *(f"+opportunistic:t_idle={wait}" for wait in IDLE)]
    inertial = [
        f"+inertial:period={period},v_ub={bound},growth={growth}"
        for period, bound, growth in product(periods, bounds, ("double", "plus-one"))
    ]
    return [*opportunistic[1:], *("".join(parts) for parts in product(inertial, opportunistic))]


def _run(jobs: Workload, text: str) -> Run:
    replayed = replay(jobs, MACHINES, simple_policy(f"easy{text}"), clock=time.perf_counter)
    summary = summarise(replayed, TAURUS_POWERS)
    waits = summary.mean_waiting_time or 0.0, summary.max_waiting_time or 0.0
    return Run(
        f"easy{text}", summary.consumed_joules or 0.0, *waits, summary.nb_machine_switches, replayed.simulation_time
    )


def _pareto(runs: list[Run]) -> list[Run]:
    """Return the Pareto set of energy and mean wait, the least energy first."""
    front: list[Run] = []
    for run in sorted(runs, key=lambda run: (run.joules, run.mean_wait)):
        if not front or run.mean_wait < front[-1].mean_wait:
            front.append(run)
    return front


def _show(runs: list[Run], plain: Run, idle: float) -> None:
    rows = [
        (
            run.policy, f"{1 - run.joules / plain.joules:.1%}", f"{(plain.joules - run.joules) / idle:.0%}",
            number(run.mean_wait), number(run.max_wait), f"{run.switches:,}", f"{run.seconds / plain.seconds:.1f}",
        )
        for run in runs
    ]  # fmt: skip
    table(("policy", "saved", "of idle draw", "mean wait s", "most s", "switches", "time / easy's"), rows)
