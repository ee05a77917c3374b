"""The comparison of the canary with its control group, from what really happened.

Rule: the groups were drawn at random, so that a difference of their means is an effect. A unit counts once, with the
mean of its jobs, in the stratum of its first job: partition, size, time limit, quarter of the day, and the share that
was in force, see `group_contrast`. A job that still waits or runs counts with its time so far, so that neither group
loses its long ones; the slowdown is of ended jobs. A job that ended in an unknown way is left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...simulate.model.objective import TAU_S
from ...simulate.model.snapshot import JobState
from ...simulate.results.group_contrast import GroupContrast, group_contrast
from ..state.members import Member
from .groups import Group

#: Upper bounds of the classes of size, cores, and of the time limit, seconds.
SIZES, LIMITS_S = (4, 64), (3600.0, 8 * 3600.0)
_QUARTER_S, _DAY_S = 21_600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """The two groups, and how they differ; a difference below 0 is a gain.

    Args:
        jobs: that are compared, by group.
        waiting: of these, that have not started; by group.
        running: of these, that have started and not ended; by group.
        not_drawn: jobs whose group was not drawn at random.
        unknown: jobs that ended in an unknown way.
        hold_s: how long a job of the control group was held until its group was drawn, mean over all of them, seconds.
        measures: name -> difference; None: nothing can be compared yet. Seconds, but of the slowdown.
    """

    jobs: dict[str, int]
    waiting: dict[str, int]
    running: dict[str, int]
    not_drawn: int
    unknown: int
    hold_s: float
    measures: dict[str, GroupContrast | None]

    @property
    def harm(self) -> str:
        """The reason why the canary does harm, one sentence, or ""; see `harm_of`."""
        return harm_of(self.measures)


def compare(members: Iterable[Member], now: float, breathe: Callable[[], None] = lambda: None) -> GroupComparison:
    """Compare the groups. O(DRAWS members log members).

    Args:
        members: jobs of both groups.
        now: the present, epoch seconds of the resource manager's clock.
        breathe: called about every 10 ms.
    """
    jobs = list(members)
    compared = [one for one in jobs if one.compared and one.state != JobState.UNKNOWN]
    return GroupComparison(
        _counted(compared),
        _counted(one for one in compared if one.start_time is None and one.finish_time is None),
        _counted(one for one in compared if one.start_time is not None and one.finish_time is None),
        sum(not one.compared for one in jobs),
        sum(bool(one.compared) and one.state == JobState.UNKNOWN for one in jobs),
        _hold_s(one for one in compared if one.side == Group.CONTROL),
        {name: _contrast(compared, lambda one, of=of: of(one, now), breathe) for name, of in MEASURES.items()},  # type: ignore[misc]
    )


def harm_of(measures: dict[str, GroupContrast | None]) -> str:
    """Return why a canary does harm, "" if it is not shown.

    It does if the turnaround is longer for certain; or if the waits are, unless runs are shorter for certain, for which
    a policy may have let jobs wait.
    """
    turnaround, waiting, run_time = (measures[name] for name in ("turnaround", "waiting", "run time"))
    if turnaround is not None and turnaround.low is not None and turnaround.low > 0.0:
        return f"turnaround is longer than in the control group, {_by(turnaround)}"
    is_shorter = run_time is not None and run_time.high is not None and run_time.high < 0.0
    if waiting is not None and waiting.low is not None and waiting.low > 0.0 and not is_shorter:
        return f"jobs wait longer than in the control group, {_by(waiting)}"
    return ""


def _by(contrast: GroupContrast) -> str:
    return f"{contrast.difference:+.0f} s in the mean, 95 % {contrast.low:+.0f} to {contrast.high:+.0f} s"


def _counted(members: Iterable[Member]) -> dict[str, int]:
    counts = Counter(one.side for one in members)
    return {str(group): counts[group] for group in Group}


def _hold_s(control: Iterable[Member]) -> float:
    held = [one.held_s or 0.0 for one in control]
    return sum(held) / len(held) if held else 0.0


def _waiting(member: Member, now: float) -> float | None:
    until = member.start_time if member.start_time is not None else member.finish_time
    return max(0.0, (now if until is None else until) - member.submit_time)


def _turnaround(member: Member, now: float) -> float | None:
    return max(0.0, (now if member.finish_time is None else member.finish_time) - member.submit_time)


def _run_time(member: Member, now: float) -> float | None:
    if member.start_time is None or member.finish_time is None:
        return None
    return max(0.0, member.finish_time - member.start_time)


def _slowdown(member: Member, now: float) -> float | None:
    run_time, turnaround = _run_time(member, now), _turnaround(member, now)
    return None if run_time is None or turnaround is None else max(1.0, turnaround / max(run_time, TAU_S))


#: Name of a measure -> its value for a job; None: the job has none yet.
MEASURES = {"waiting": _waiting, "turnaround": _turnaround, "slowdown": _slowdown, "run time": _run_time}


def _contrast(
    members: Sequence[Member], value_of: Callable[[Member], float | None], breathe: Callable[[], None]
) -> GroupContrast | None:
    units = dict[str, list[tuple[Member, float]]]()
    for member in members:
        if (value := value_of(member)) is not None:
            units.setdefault(member.unit, []).append((member, value))
    if not units:
        return None
    numbers = dict[tuple[object, ...], int]()
    first = [min((one for one, _ in jobs), key=lambda one: (one.submit_time, one.key)) for jobs in units.values()]
    strata = [numbers.setdefault(stratum_of(one), len(numbers)) for one in first]
    values = [sum(value for _, value in jobs) / len(jobs) for jobs in units.values()]
    is_canary = np.array([one.side == Group.CANARY for one in first])
    return group_contrast(np.array(values), is_canary, np.array(strata), breathe=breathe)


def stratum_of(member: Member) -> tuple[object, ...]:
    """Return what two jobs must share to be compared: what was known of them before the draw."""
    size = sum(member.cores > bound for bound in SIZES)
    length = len(LIMITS_S) if member.walltime is None else sum(member.walltime > bound for bound in LIMITS_S)
    return member.share, member.queue, size, length, int(member.submit_time % _DAY_S // _QUARTER_S)
