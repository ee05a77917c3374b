"""Reproduce chapter 6 of Poquet's thesis (2017): energy and power limits for three days of a week.

Rule: as in section 6.5: weeks of traces on Taurus nodes, budgets as shares of the energy of all processors computing,
means over the weeks of a trace, then over traces. Up to ten weeks of a trace are replayed, with the limit in the middle
three days; a trace of a single week is replayed five times with the limit on different days.
Utilisation is that of the three days. Bounded slowdowns are those of all jobs of the week: the plain mean is dominated
by the many small jobs; the mean by area weights jobs by processors x run time. A policy wins a week if its value is
better by more than a thousandth. Run times are sums over weeks, each the fastest of three, relative to plain EASY.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pilotfish.benchmarks.show import heading, number, simple_policy, table
from pilotfish.formats.replays.swf import read_swf
from pilotfish.simulate.generate.models import lublin
from pilotfish.simulate.model.machine import TAURUS_POWERS
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.replay.energy import limited, track
from pilotfish.simulate.replay.metrics import TAU_S, summarise
from pilotfish.simulate.replay.replay import Replayed, replay
from pilotfish.simulate.replay.select import Select

DAY_S = 86400.0
LIMITS = {"energybud": "budget", "powercap": "cap", "reducepc": "budget"}
OFF = ("", "+opportunistic")
#: Budgets in percent of the maximum, without and with switching machines off.
SHARES = ((100, 90, 80, 70, 60, 50), (100, 90, 80, 70, 60, 50, 40, 30))
FEW = ((100, 70, 50), (100, 70, 50, 30))
#: Relative difference above which a policy wins a week.
MARGIN = 1e-3


@dataclass(frozen=True, slots=True)
class Week:
    """Jobs of a week, and the begin of the three days in seconds."""

    trace: str
    jobs: Workload
    machine: int
    begin: float

    def window(self) -> str:
        return f"begin={self.begin},end={self.begin + 3 * DAY_S}"


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a policy in a week.

    Args:
        use: utilisation in the three days.
        slowdown, by_area: mean bounded slowdowns of the week's jobs.
        taken: consumed share of the budget.
        bound: share of the budget that jobs running at its begin and otherwise idle or switched-off machines consume.
        hopeless: idle machines alone exceed the budget.
        seconds: run time of the replay, and of EASY's.
    """

    use: float
    slowdown: float
    by_area: float
    taken: float
    bound: float
    hopeless: bool
    seconds: tuple[float, float]


def weeks(traces: Path | None, quick: bool) -> Iterator[Week]:
    """Yield the weeks to replay."""
    drawn = [replace(lublin(12_000, 1024, kind="untyped", load=0.95), name="lublin-1024", machine=1024)]
    for jobs in drawn if traces is None else map(read_swf, sorted(traces.glob("*.swf*"))):
        if jobs.machine and len(jobs):
            trace_weeks = list(_weeks(jobs, jobs.machine))
            yield from trace_weeks[:: len(trace_weeks) - 1] if quick and len(trace_weeks) > 1 else trace_weeks


def _weeks(jobs: Workload, machine: int) -> Iterator[Week]:
    first = float(jobs.submit_time[0])
    count = min(10, int((float(jobs.submit_time[-1]) - first) // (7 * DAY_S)))
    if count < 2:
        for day in range(5):
            yield Week(jobs.name, jobs, machine, first + day * DAY_S)
        return
    for week in range(count):
        begin = first + 7 * DAY_S * week
        yield Week(jobs.name, Select(begin=begin, end=begin + 7 * DAY_S).of(jobs), machine, begin + 2 * DAY_S)


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the tables."""
    every = list(weeks(traces, quick))
    heading(f"Limited energy for three days: {len(every)} weeks")
    shares = [
        (off, share) for off, percentages in zip(OFF, FEW if quick else SHARES, strict=True) for share in percentages
    ]
    runs = {
        (limit, off, share): [_run(week, f"{limit}:{LIMITS[limit]}={share}%,{week.window()}{off}") for week in every]
        for off, share in shares
        for limit in LIMITS
    }
    names = [week.trace for week in every]
    print(f"columns: {', '.join(LIMITS)}; won: weeks by energybud, by powercap\n")
    for title, key, best in (("use", "use", 1), ("slowdown", "slowdown", -1), ("slowdown by area", "by_area", -1)):
        rows = []
        for off, share in shares:
            values = {limit: [getattr(run, key) for run in runs[limit, off, share]] for limit in LIMITS}
            means = (_shown(_mean(names, limit_values), key) for limit_values in values.values())
            rows.append([f"{share} %{off}", *means, _won(values["energybud"], values["powercap"], best)])
        table((title, *LIMITS, "won"), rows)
    _show_times(names, runs, shares)
    _show_laws(every, runs)


def _run(week: Week, limit: str) -> Run:
    texts, seconds = (f"easy+{limit}", "easy"), (np.inf, np.inf)
    for _ in range(3):
        replays = [replay(week.jobs, week.machine, simple_policy(text), clock=time.perf_counter) for text in texts]
        seconds = min(seconds[0], replays[0].simulation_time), min(seconds[1], replays[1].simulation_time)
    replayed = replays[0]
    outcome = limited(replayed, parse(texts[0]), TAURUS_POWERS, track(replayed, TAURUS_POWERS))
    assert outcome is not None
    slowdown, by_area = summarise(replayed).mean_bounded_slowdown or 0.0, _slowdown_by_area(replayed)
    use = _used(replayed, outcome.begin, outcome.end)
    bound = _bound(replayed, outcome.begin, outcome.end, OFF[1] in limit) / outcome.allowed
    return Run(use, slowdown, by_area, outcome.consumed / outcome.allowed, bound, outcome.hopeless, seconds)


def _bound(replayed: Replayed, begin: float, end: float, off: bool) -> float:
    """Return the joules in a window of the jobs running at its begin, all other machines being idle or off."""
    least = TAURUS_POWERS.off if off and TAURUS_POWERS.off is not None else TAURUS_POWERS.idle
    lasts = np.where(replayed.taken_time < begin, np.clip(replayed.finish_time, begin, end) - begin, 0.0)
    running = float(np.nansum(lasts * replayed.workload.size))
    return running * (TAURUS_POWERS.computing - least) + replayed.machine * (end - begin) * least


def _slowdown_by_area(replayed: Replayed) -> float:
    """Return the mean bounded slowdown, jobs weighted by processors x run time."""
    run, turnaround = replayed.finish_time - replayed.start_time, replayed.finish_time - replayed.workload.submit_time
    bounded, area = np.maximum(1.0, turnaround / np.maximum(run, TAU_S)), run * replayed.workload.size
    return float(np.nansum(bounded * area) / np.nansum(area))


def _used(replayed: Replayed, begin: float, end: float) -> float:
    start, finish = np.clip(replayed.start_time, begin, end), np.clip(replayed.finish_time, begin, end)
    return float(np.nansum((finish - start) * replayed.workload.size) / (replayed.machine * (end - begin)))


def _mean(names: list[str], values: list[float]) -> float:
    """Return the mean over the weeks of each trace, then over traces."""
    array = np.array(values)
    return float(np.mean([array[np.array(names) == name].mean() for name in sorted(set(names))]))


def _shown(value: float, key: str) -> str:
    return f"{value:.1%}" if key == "use" else number(value)


def _won(values: list[float], references: list[float], best: int) -> str:
    by, margin = best * np.subtract(values, references), MARGIN * np.abs(references)
    return f"{int((by > margin).sum())}, {int((by < -margin).sum())}"


def _show_times(names: list[str], runs: dict[tuple[str, str, int], list[Run]], shares: list[tuple[str, int]]) -> None:
    rows = []
    for off in OFF:
        for limit in LIMITS:
            ratios = [_ratios(names, runs[limit, off, share]) for kind, share in shares if kind == off]
            columns = [[ratio[name] for ratio in ratios] for name in ratios[0]]
            rows.append([limit + off, *(f"{np.mean(column):.1f} ({max(column):.1f})" for column in columns),
                         f"{np.mean(columns):.1f}"])  # fmt: skip
    table(("time over EASY's: mean of budgets (most)", *dict.fromkeys(names), "mean"), rows)


def _ratios(names: list[str], runs: list[Run]) -> dict[str, float]:
    """Return the ratio of run times for each trace."""
    ratios = {}
    for name in dict.fromkeys(names):
        seconds = np.array([run.seconds for run, trace_name in zip(runs, names, strict=True) if trace_name == name])
        ratios[name] = float(seconds[:, 0].sum() / seconds[:, 1].sum())
    return ratios


def _show_laws(every: list[Week], runs: dict[tuple[str, str, int], list[Run]]) -> None:
    """Print how often the budget holds, an unlimited budget equals EASY, and a hopeless one is reported."""
    budget_runs = [run for (limit, _, _), of_limit in runs.items() if limit != "powercap" for run in of_limit]
    over = [run for run in budget_runs if run.taken > 1.0 + 1e-9]
    had_to = [run for run in over if run.bound > 1.0]
    most = max(run.taken for run in budget_runs)
    print(f"replays that exceed the budget: {len(over)} of {len(budget_runs)}, at most {most:.0%} of it;")
    print(f"of these, exceeded by jobs running at its begin and idle or switched-off machines alone: {len(had_to)}")
    same, hopeless = 0, 0
    for week in every:
        plain = replay(week.jobs, week.machine, simple_policy("easy"))
        free = replay(week.jobs, week.machine, simple_policy(f"easy+energybud:budget=1000%,{week.window()}"))
        same += np.array_equal(plain.start_time, free.start_time, equal_nan=True)
        hopeless += _run(week, f"energybud:budget=45%,{week.window()}").hopeless
    print(f"a budget of 1000 % gives EASY's schedule, job by job: {same} of {len(every)}")
    print(f"a budget of 45 %, below the idle power, is reported as hopeless: {hopeless} of {len(every)}")
