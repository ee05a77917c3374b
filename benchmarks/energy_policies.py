"""What less energy does: chapter 6 of Poquet's thesis (2017), weeks with a limit for three days in them.

Rule: as in the thesis, 6.5: weeks of traces, budgets as shares of what all processors take when they compute, its
Taurus nodes; means over the weeks of a trace, then over traces. Of a trace of several weeks each is replayed, ten at
most, with the three days in its middle; of a single week five times, with the three days at another place. The use is
that in the three days, slowdowns are bounded, of all jobs of the week: the plain mean is that of the many small jobs,
by area they count by what they compute. A week is won by who has the higher use, or the lower slowdown, by more than a
thousandth. Times are sums over weeks, each the fastest of three, beside plain EASY's of the same minute.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
LIMITS = {"energybud": "budget", "powercap": "cap", "reducepc": "budget"}
OFF = ("", "+opportunistic")
#: Shares of the budget in percent, without and with machines that are switched off.
SHARES = ((100, 90, 80, 70, 60, 50), (100, 90, 80, 70, 60, 50, 40, 30))
FEW = ((100, 70, 50), (100, 70, 50, 30))
#: A win is by more than that.
MARGIN = 1e-3


@dataclass(frozen=True, slots=True)
class Week:
    """Jobs of a week, and when the three days begin."""

    trace: str
    jobs: Workload
    machine: int
    begin: float

    def window(self) -> str:
        return f"begin={self.begin},end={self.begin + 3 * DAY_S}"


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a policy in a week.

    Args:
        use: of all processors in the three days; slowdown, by_area: means over the week's jobs.
        taken: of the budget; bound: by the jobs that ran when it began, and machines that wait or are off, alone.
        seconds: its own, and EASY's.
    """

    use: float
    slowdown: float
    by_area: float
    taken: float
    bound: float
    hopeless: bool
    seconds: tuple[float, float]


def weeks(traces: Path | None, quick: bool) -> Iterator[Week]:
    """All that are replayed."""
    made = [replace(lublin(12_000, 1024, kind="untyped", load=0.95), name="lublin-1024", machine=1024)]
    for jobs in made if traces is None else map(read_swf, sorted(traces.glob("*.swf*"))):
        if jobs.machine and len(jobs):
            found = list(_weeks(jobs, jobs.machine))
            yield from found[:: len(found) - 1] if quick and len(found) > 1 else found


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
    heading(f"Less energy for three days: {len(every)} weeks")
    shares = [(off, share) for off, some in zip(OFF, FEW if quick else SHARES, strict=True) for share in some]
    runs = {
        (limit, off, share): [_run(week, f"{limit}:{LIMITS[limit]}={share}%,{week.window()}{off}") for week in every]
        for off, share in shares
        for limit in LIMITS
    }
    names = [week.trace for week in every]
    print(f"columns: {', '.join(LIMITS)}; won: weeks by energybud, by powercap\n")
    for title, what, best in (("use", "use", 1), ("slowdown", "slowdown", -1), ("slowdown by area", "by_area", -1)):
        rows = []
        for off, share in shares:
            values = {limit: [getattr(run, what) for run in runs[limit, off, share]] for limit in LIMITS}
            means = (_shown(_mean(names, each), what) for each in values.values())
            rows.append([f"{share} %{off}", *means, _won(values["energybud"], values["powercap"], best)])
        table((title, *LIMITS, "won"), rows)
    _show_times(names, runs, shares)
    _show_laws(every, runs)


def _run(week: Week, limit: str) -> Run:
    texts, seconds = (f"easy+{limit}", "easy"), (np.inf, np.inf)
    for _ in range(3):
        both = [replay(week.jobs, week.machine, parse(text), clock=time.perf_counter) for text in texts]
        seconds = min(seconds[0], both[0].simulation_time), min(seconds[1], both[1].simulation_time)
    done = both[0]
    told = limited(done, parse(texts[0]), TAURUS, track(done, TAURUS))
    assert told is not None
    slowdown, by_area = summarise(done).mean_bounded_slowdown or 0.0, _slowdown_by_area(done)
    use = _used(done, told.begin, told.end)
    taken, bound = told.consumed / told.allowed, _bound(done, told.begin, told.end, OFF[1] in limit) / told.allowed
    return Run(use, slowdown, by_area, taken, bound, told.hopeless, seconds)


def _bound(done: Replayed, begin: float, end: float, off: bool) -> float:
    """Joules that the jobs which run at its beginning take in a window, with machines that else wait or are off."""
    least = TAURUS.off if off and TAURUS.off is not None else TAURUS.idle
    lasts = np.where(done.taken_time < begin, np.clip(done.finish_time, begin, end) - begin, 0.0)
    running = float(np.nansum(lasts * done.workload.size))
    return running * (TAURUS.computing - least) + done.machine * (end - begin) * least


def _slowdown_by_area(done: Replayed) -> float:
    """Mean of the bounded slowdowns, jobs weighted by processors x run time."""
    run, turnaround = done.finish_time - done.start_time, done.finish_time - done.workload.submit_time
    bounded, area = np.maximum(1.0, turnaround / np.maximum(run, TAU_S)), run * done.workload.size
    return float(np.nansum(bounded * area) / np.nansum(area))


def _used(done: Replayed, begin: float, end: float) -> float:
    start, finish = np.clip(done.start_time, begin, end), np.clip(done.finish_time, begin, end)
    return float(np.nansum((finish - start) * done.workload.size) / (done.machine * (end - begin)))


def _mean(names: list[str], values: list[float]) -> float:
    """Over the weeks of each trace, then over traces."""
    each = np.array(values)
    return float(np.mean([each[np.array(names) == name].mean() for name in sorted(set(names))]))


def _shown(value: float, what: str) -> str:
    return f"{value:.1%}" if what == "use" else number(value)


def _won(ours: list[float], theirs: list[float], best: int) -> str:
    by, margin = best * np.subtract(ours, theirs), MARGIN * np.abs(theirs)
    return f"{int((by > margin).sum())}, {int((by < -margin).sum())}"


def _show_times(names: list[str], runs: dict[tuple[str, str, int], list[Run]], shares: list[tuple[str, int]]) -> None:
    rows = []
    for off in OFF:
        for limit in LIMITS:
            each = [_ratios(names, runs[limit, off, share]) for kind, share in shares if kind == off]
            columns = [[ratio[name] for ratio in each] for name in each[0]]
            rows.append([limit + off, *(f"{np.mean(column):.1f} ({max(column):.1f})" for column in columns),
                         f"{np.mean(columns):.1f}"])  # fmt: skip
    table(("time over EASY's: mean of budgets (most)", *dict.fromkeys(names), "mean"), rows)


def _ratios(names: list[str], runs: list[Run]) -> dict[str, float]:
    """For each trace."""
    found = {}
    for name in dict.fromkeys(names):
        taken = np.array([run.seconds for run, mine in zip(runs, names, strict=True) if mine == name])
        found[name] = float(taken[:, 0].sum() / taken[:, 1].sum())
    return found


def _show_laws(every: list[Week], runs: dict[tuple[str, str, int], list[Run]]) -> None:
    """The budget holds, without a limit it is EASY, and below the idle draw that is said."""
    some = [run for (limit, _, _), each in runs.items() if limit != "powercap" for run in each]
    over = [run for run in some if run.taken > 1.0 + 1e-9]
    had_to = [run for run in over if run.bound > 1.0]
    most = max(run.taken for run in some)
    print(f"more than the budget: {len(over)} of {len(some)} replays, at most {most:.0%} of it;")
    print(f"of these, where what ran when it began and machines that wait or are off alone take more: {len(had_to)}")
    same, told = 0, 0
    for week in every:
        plain = replay(week.jobs, week.machine, parse("easy"))
        free = replay(week.jobs, week.machine, parse(f"easy+energybud:budget=1000%,{week.window()}"))
        same += np.array_equal(plain.start_time, free.start_time, equal_nan=True)
        told += _run(week, f"energybud:budget=45%,{week.window()}").hopeless
    print(f"ten times what all could take is EASY, job by job: {same} of {len(every)}")
    print(f"45 %, less than idle machines take, is said to be hopeless: {told} of {len(every)}")
