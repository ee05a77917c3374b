"""Group the threads of a job into thread groups: pure arithmetic.

Rule: no CPU second is lost. Time that ended threads used between two readings is made up from the kernel's total for
the whole tree. Threads and processes that ran one after another form one lane; similar lanes form a group. Time of
threads that were too short or too small to count is spread over the lanes with free time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...simulate.model.job import ThreadGroup
from ..probes.thread_history import ThreadHistory
from ..probes.thread_record import RunningVariance, ThreadRecord

#: A thread with a smaller share of the job's CPU time is a helper: its time counts, the thread does not.
HELPER_SHARE = 0.01
#: A thread at work in fewer readings, or a smaller share of them, is short-lived: its time counts, the thread does not.
FEWEST_READINGS, LEAST_AT_WORK = 3, 0.25
#: Lanes form a group if their demands differ by less than this share, and their utilisations by less than this.
ALIKE_DEMAND, ALIKE_UTILISATION = 0.10, 0.10
#: A lane that ends within this share of the job's end is extended to it.
TO_THE_END = 0.02
#: Measurement error of the number of concurrent threads.
SLACK = 0.15
TINY = 1e-6


@dataclass(slots=True)
class Lane:
    """Work done one after another, by one thread or several."""

    begin: float
    end: float
    on_s: float
    wait_s: float
    steps: list[RunningVariance]
    histories: list[ThreadHistory] = field(default_factory=list)

    @property
    def isolated_s(self) -> float:
        """Duration without waiting for a core."""
        return max(self.end - self.begin - self.wait_s, self.on_s)


@dataclass(frozen=True, slots=True)
class JobThreads:
    """A job's thread groups, its isolated time, and the share of time spent waiting."""

    groups: tuple[ThreadGroup, ...]
    isolated_s: float
    waiting: float


def group_threads(
    records: Iterable[ThreadRecord],
    wall_s: float,
    cpu_s: float | None = None,
    *,
    step_s: float = 0.1,
    peak: float = 0.0,
    stolen: float = 0.0,
    traffic: ThreadHistory | None = None,
) -> JobThreads:
    """Group a job's threads. O(threads * lanes).

    Args:
        records: every observed thread; changed in place where time is made up.
        wall_s: duration of the job, seconds, > 0.
        cpu_s: the kernel's CPU seconds of the whole tree; None = the sum over the threads.
        step_s: time between readings: threads that overlap by less may have run one after another.
        peak: most threads at work at once, real-valued: core time and waiting per time.
        stolen: share of busy time that the host of a virtual machine gave to others, [0, 1); it counts as waiting.
        traffic: bytes that the job had moved, see `phases`; None = unknown.
    """
    threads = list(records)
    counted_s = sum(thread.on_s for thread in threads)
    total = max(counted_s, cpu_s or 0.0, TINY)
    waited = sum(thread.wait_s for thread in threads)
    _fill_gaps(threads, total - counted_s)
    made_up = sum(thread.wait_s for thread in threads) - waited
    lanes = _lanes([thread for thread in threads if _is_worker(thread, total)], step_s)
    _fit_totals(lanes, total, waited, made_up, wall_s, peak)
    last = max(lane.end for lane in lanes)
    for lane in lanes:
        if lane.end >= last - TO_THE_END * wall_s:
            lane.begin, lane.end = 0.0, wall_s
        idle = max(0.0, lane.end - lane.begin - lane.on_s - lane.wait_s)
        lane.wait_s += min(idle, lane.on_s * stolen / (1 - stolen))
    histories = [thread.history for thread in threads]
    groups = tuple(_group(members, step_s, traffic, histories) for members in _similar(lanes))
    span = sum(lane.end - lane.begin for lane in lanes)
    waiting = min(1.0, sum(lane.wait_s for lane in lanes) / span) if span > 0 else 0.0
    return JobThreads(groups, max(group.isolated_time for group in groups), waiting)


def _is_worker(thread: ThreadRecord, total_s: float) -> bool:
    """Return whether a thread shares the job's work, and is not a helper."""
    fewest = max(FEWEST_READINGS, LEAST_AT_WORK * thread.steps.count)
    return thread.on_s >= HELPER_SHARE * total_s and thread.readings >= fewest


def _fill_gaps(threads: list[ThreadRecord], missing: float) -> None:
    """Extend threads that ended unseen into their gaps, as far as CPU time is missing."""
    expected = [thread.gap_s * thread.on_s / max(thread.end - thread.begin, thread.on_s, TINY) for thread in threads]
    share = min(1.0, max(0.0, missing) / max(sum(expected), TINY))
    for thread, extra in zip(threads, expected, strict=True):
        if extra > 0:
            thread.wait_s *= 1 + share * extra / thread.on_s
            thread.on_s += share * extra
            thread.end += share * thread.gap_s


def _lanes(threads: list[ThreadRecord], step_s: float) -> list[Lane]:
    """Put threads that ran one after another into one lane; there are as many lanes as concurrent threads."""
    lanes: list[Lane] = []
    for thread in sorted(threads, key=lambda thread: (thread.begin, thread.end)):
        lane = next((lane for lane in lanes if _follows(thread, lane, step_s)), None)
        if lane is None:
            lanes.append(Lane(thread.begin, thread.end, thread.on_s, thread.wait_s, [thread.steps], [thread.history]))
        else:
            lane.end = thread.end
            lane.on_s += thread.on_s
            lane.wait_s += thread.wait_s
            lane.steps.append(thread.steps)
            lane.histories.append(thread.history)
    return lanes


def _follows(thread: ThreadRecord, lane: Lane, step_s: float) -> bool:
    """Return whether a thread may have begun after the lane's last one, and its core time fits."""
    used = lane.on_s + lane.wait_s + thread.on_s + thread.wait_s
    return thread.begin > lane.end - step_s and lane.end < thread.end and used <= 1.02 * (thread.end - lane.begin)


def _fit_totals(lanes: list[Lane], on_s: float, wait_s: float, made_up_s: float, wall_s: float, peak: float) -> None:
    """Spread the job's whole core time and waiting over the lanes; add lanes for what does not fit.

    Waiting that was made up is spread too, but never adds a lane.
    """
    on_s -= sum(lane.on_s for lane in lanes)
    wait_s -= sum(lane.wait_s for lane in lanes)
    free = sum(max(0.0, wall_s - lane.on_s - lane.wait_s) for lane in lanes)
    at_once = math.ceil(peak - SLACK)
    overflow = len(lanes) + math.ceil((on_s + wait_s - free) / wall_s - SLACK)
    for _ in range(max(1, at_once, overflow) - len(lanes)):
        lanes.append(Lane(0.0, wall_s, 0.0, 0.0, []))
    wait_s += made_up_s
    room = [max(wall_s - lane.on_s - lane.wait_s, 1e-3 * wall_s) for lane in lanes]
    for lane, part in zip(lanes, room, strict=True):
        lane.on_s += max(on_s, 0.0) * part / sum(room)
        lane.wait_s += max(wait_s, 0.0) * part / sum(room)


def _similar(lanes: list[Lane]) -> list[list[Lane]]:
    """Group similar lanes, the most demanding first."""
    groups: list[list[Lane]] = []
    for lane in sorted(lanes, key=lambda lane: -lane.on_s):
        if groups and _alike(groups[-1][0], lane):
            groups[-1].append(lane)
        else:
            groups.append([lane])
    return groups


def _alike(one: Lane, other: Lane) -> bool:
    by_demand = abs(one.on_s - other.on_s) <= ALIKE_DEMAND * max(one.on_s, other.on_s)
    return by_demand and abs(_utilisation([one]) - _utilisation([other])) <= ALIKE_UTILISATION


def _utilisation(lanes: list[Lane]) -> float:
    """Return the share of isolated time in which the lanes wanted a core, (0, 1]."""
    isolated_s = sum(lane.isolated_s for lane in lanes)
    return min(1.0, max(sum(lane.on_s for lane in lanes), TINY * len(lanes)) / max(isolated_s, TINY))


def _group(
    members: list[Lane], step_s: float, traffic: ThreadHistory | None, all_histories: list[ThreadHistory]
) -> ThreadGroup:
    """Return a thread group of similar lanes: mean demand, common utilisation, pooled deviation, phases."""
    from .phases import phases

    demand = sum(lane.on_s for lane in members) / len(members)
    steps = [spread for lane in members for spread in lane.steps if spread.count > 1]
    count = sum(spread.count for spread in steps)
    variance = sum(spread.variance * spread.count for spread in steps) / count if count else 0.0
    utilisation = _utilisation(members)
    spans = [(lane.begin, lane.end, lane.histories) for lane in members]
    group_phases = phases(spans, utilisation, step_s, traffic, all_histories)
    between = sum(phase.share * (phase.utilisation - utilisation) ** 2 for phase in group_phases)
    deviation = math.sqrt(max(0.0, variance - between))
    return ThreadGroup(len(members), max(demand, TINY), utilisation, deviation, phases=group_phases)
