"""What switching machines off saves, and what it costs: chapter 7 of Poquet's thesis with its parameters (table 7.1).

Rule: every row is beside plain EASY on the same jobs. Energy is told as a share of all that EASY takes, and of what its
idle machines draw, which is all that can be saved and does not depend on what computing draws. (The thesis's EASY takes
7.66e11 J in 24 months on 128 machines of 95 W when idle: as if computing drew no more than that.)
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import product

from pilotfish.simulate.batch.energy import STATES, track
from pilotfish.simulate.batch.metrics import summarise
from pilotfish.simulate.batch.powers import TAURUS
from pilotfish.simulate.batch.replay import replay
from pilotfish.simulate.batch.spec import parse
from pilotfish.simulate.generate.lublin import lublin
from pilotfish.simulate.workload import Workload

from .show import heading, number, table

MACHINES, LOAD = 128, 0.65
NAMED = (
    "", "+opportunistic", "+opportunistic:t_idle=300", "+opportunistic:t_idle=6000", "+proportional:rho=0.9",
    "+inertial", "+inertial:growth=plus-one", "+inertial+opportunistic:t_idle=300",
)  # fmt: skip
PERIODS, BOUNDS, IDLE = (60, 120, 300, 600), ("1e4", "1e5", "2e5"), (0, 300, 600, 6000)


@dataclass(frozen=True, slots=True)
class Run:
    """One replay, beside plain EASY."""

    policy: str
    joules: float
    mean_wait: float
    max_wait: float
    switches: int
    seconds: float


def measure(quick: bool) -> None:
    """Print the tables: of jobs that are small against the machine, as on KTH-SP2 and SDSC-SP2, and of wide ones."""
    count = 3_000 if quick else 20_000
    small = lublin(count, MACHINES // 4, kind="untyped", load=4 * LOAD)
    _compare(small, f"{count:,} jobs of {MACHINES // 4} processors at most", quick)
    _compare(lublin(count, MACHINES, kind="untyped", load=LOAD), f"{count:,} jobs, some of all processors", quick)


def _compare(jobs: Workload, name: str, quick: bool) -> None:
    heading(f"Machines that are off: {name}, {MACHINES} processors, load {LOAD}")
    drawn = track(replay(jobs, MACHINES, parse("easy")), TAURUS)
    idle = float(drawn.counts[:-1, STATES.index("idle")] @ (drawn.time[1:] - drawn.time[:-1]))
    named = [_run(jobs, text) for text in NAMED]
    _show(named, named[0], idle * TAURUS.idle)
    runs = [*named, *(_run(jobs, text) for text in _grid(quick))]
    for title, kept in (("all", runs), ("inertial alone", [run for run in runs if "opportunistic" not in run.policy])):
        print(f"Pareto set of energy and mean waiting time, {title}:\n")
        _show(_pareto(kept), named[0], idle * TAURUS.idle)


def _grid(quick: bool) -> list[str]:
    """Table 7.1, but for what the thesis found to be negligible."""
    periods, bounds = (PERIODS[:2], BOUNDS[:2]) if quick else (PERIODS, BOUNDS)
    opportunistic = ["", *(f"+opportunistic:t_idle={wait}" for wait in IDLE)]
    inertial = [
        f"+inertial:period={period},v_ub={bound},growth={growth}"
        for period, bound, growth in product(periods, bounds, ("double", "plus-one"))
    ]
    return [*opportunistic[1:], *("".join(parts) for parts in product(inertial, opportunistic))]


def _run(jobs: Workload, text: str) -> Run:
    done = replay(jobs, MACHINES, parse(f"easy{text}"), clock=time.perf_counter)
    found = summarise(done, TAURUS)
    waits = found.mean_waiting_time or 0.0, found.max_waiting_time or 0.0
    return Run(
        f"easy{text}", found.consumed_joules or 0.0, *waits, found.nb_machine_switches, done.simulation_time
    )


def _pareto(runs: list[Run]) -> list[Run]:
    """Those that no other beats in both, the one that takes least first."""
    found: list[Run] = []
    for run in sorted(runs, key=lambda run: (run.joules, run.mean_wait)):
        if not found or run.mean_wait < found[-1].mean_wait:
            found.append(run)
    return found


def _show(runs: list[Run], plain: Run, idle: float) -> None:
    rows = [
        (
            run.policy, f"{1 - run.joules / plain.joules:.1%}", f"{(plain.joules - run.joules) / idle:.0%}",
            number(run.mean_wait), number(run.max_wait), f"{run.switches:,}", f"{run.seconds / plain.seconds:.1f}",
        )
        for run in runs
    ]  # fmt: skip
    table(("policy", "saved", "of idle draw", "mean wait s", "most s", "switches", "time / easy's"), rows)
