"""What the machine did and drew over a replay: how many resources were in which state when, and the energy of it.

Rule: exact sums over the times between changes, from the first submission to the last end, over all resources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels.batch.powered.tables import TO_IDLE
from .drawing import drawing
from .powers import Mixed, Powers
from .replay import Replayed
from .saving import EnergyBudget
from .spec import Saving

Array = npt.NDArray[Any]
STATES = ("sleeping", "switching_on", "switching_off", "idle", "computing")


@dataclass(frozen=True, slots=True)
class Track:
    """The machine over time; each row holds from its time to the next.

    Args:
        time: seconds, ascending, each once; the last is the end.
        counts: [rows, STATES], resources.
        watts: of all resources; least_watts: what they would draw if no job computed.
        joules: consumed from the beginning to this time.
    """

    time: Array
    counts: Array
    watts: Array
    least_watts: Array
    joules: Array

    def between(self, begin: float, end: float) -> float:
        """Joules consumed between two times."""
        if not len(self.time):
            return 0.0
        low, high = np.interp((begin, end), self.time, self.joules)
        return float(high - low)


def track(replayed: Replayed, powers: Powers | Mixed) -> Track:
    """What the machine did and drew. O(changes log changes)."""
    drawn = drawing(replayed, powers)
    times, deltas = _changes(replayed, drawn.counts)
    moments, where = np.unique(np.clip(times, *span(replayed)), return_inverse=True)
    sums = np.stack([np.bincount(where, column, len(moments)) for column in deltas.T], axis=1)
    counts = np.rint(np.cumsum(sums, axis=0)).astype(np.int64)
    counts, busy = counts[:, : len(STATES)], counts[:, len(STATES) :]
    counts[:, 3] = replayed.machine - counts[:, [0, 1, 2, 4]].sum(axis=1)
    least = np.full(len(moments), drawn.idle)
    if isinstance(powers, Powers):
        least = counts @ np.array((powers.off or 0.0, powers.on_w, powers.off_w, powers.idle, powers.idle))
    watts = least + busy @ drawn.extra
    joules = np.concatenate([[0.0], np.cumsum(watts[:-1] * np.diff(moments))])
    return Track(moments, counts, watts, least, joules)


def consumed(replayed: Replayed, powers: Powers | Mixed) -> float:
    """Joules of all resources from the first submission to the last end, as in `track`. O(jobs + changes)."""
    begin, end = span(replayed)
    drawn, ran = drawing(replayed, powers), ~replayed.rejected
    lasted = (replayed.finish_time - replayed.start_time)[ran]
    switched = _switched(replayed, powers, end) if isinstance(powers, Powers) else 0.0
    return drawn.idle * (end - begin) + float(((drawn.counts @ drawn.extra)[ran] * lasted).sum()) + switched


def _switched(replayed: Replayed, powers: Powers, end: float) -> float:
    """Joules that it took more, or less, that machines were switched."""
    off, on_w, ran, on = powers.off or 0.0, powers.on_w, ~replayed.rejected, replayed.changes["kind"] == TO_IDLE
    boots = replayed.booted[ran]
    begun, done, many = (replayed.changes[name] for name in ("time", "until", "size"))
    parts = (  # from each time on, by so many watts more
        (begun, np.where(on, on_w - off, powers.off_w - powers.idle) * many),
        (done, np.where(on, powers.idle - on_w, off - powers.off_w) * many),
        (replayed.taken_time[ran], (on_w - off) * boots),
        (replayed.start_time[ran], (powers.idle - on_w) * boots),
    )
    return sum(float((watts * np.maximum(end - times, 0.0)).sum()) for times, watts in parts)


def jobs_joules(replayed: Replayed, powers: Powers | Mixed) -> Array:
    """What the resources of each job drew while it ran, joules; nan where it was rejected."""
    drawn = drawing(replayed, powers)
    found: Array = (replayed.finish_time - replayed.start_time) * (drawn.jobs_idle + drawn.counts @ drawn.extra)
    return found


def span(replayed: Replayed) -> tuple[float, float]:
    """First submission and last end, seconds."""
    if not len(replayed.workload):
        return 0.0, 0.0
    begin = float(replayed.workload.submit_time[0])
    return begin, float(np.nanmax(np.append(replayed.finish_time, begin)))


def switches(replayed: Replayed) -> int:
    """How often a resource was switched on or off."""
    return int(replayed.changes["size"].sum() + replayed.booted.sum())


def _changes(replayed: Replayed, draw: Array) -> tuple[Array, Array]:
    """Times, and by how much each state's number changes then; last, those of resources which draw as computing ones.

    Args:
        draw: these, of each job and each kind.
    """
    ran = ~replayed.rejected
    taken, start, finish = (each[ran] for each in (replayed.taken_time, replayed.start_time, replayed.finish_time))
    size, booted, draws = replayed.workload.size[ran], replayed.booted[ran], draw[ran].T
    on = replayed.changes["kind"] == TO_IDLE
    begun, done, many = (replayed.changes[name] for name in ("time", "until", "size"))
    rows: list[tuple[Array, tuple[Any, ...]]] = [
        (np.array([span(replayed)[0]]), (0,)),
        (taken, (-booted, booted)),
        (start, (0, -booted, 0, 0, size, *draws)),
        (finish, (0, 0, 0, 0, -size, *-draws)),
        (begun, (np.where(on, -many, 0), np.where(on, many, 0), np.where(on, 0, many))),
        (done, (np.where(on, 0, many), np.where(on, -many, 0), np.where(on, 0, -many))),
    ]
    deltas = np.zeros((sum(len(time) for time, _ in rows), len(STATES) + draw.shape[1]), np.int64)
    at = 0
    for time, columns in rows:
        for i, column in enumerate(columns):
            deltas[at : at + len(time), i] = column
        at += len(time)
    return np.concatenate([time for time, _ in rows]), deltas


@dataclass(frozen=True, slots=True)
class Limited:
    """What became of a limit in its window.

    Args:
        begin, end: of the window, seconds.
        allowed, consumed: joules in it.
        hopeless: idle machines alone take more than is allowed, and nothing switches them off: no job could start.
    """

    begin: float
    end: float
    allowed: float
    consumed: float
    hopeless: bool


def limited(replayed: Replayed, policy: object, powers: Powers | Mixed, found: Track) -> Limited | None:
    """What became of the policy's limit; None where it has none, as on all machines whose resources differ."""
    limit = policy.limit if isinstance(policy, Saving) else None
    window = limit.window(replayed.workload) if limit else None
    if not isinstance(policy, Saving) or not isinstance(powers, Powers) or limit is None or window is None:
        return None
    begin, end = window
    full = replayed.machine * powers.budget_computing
    idle = replayed.machine * powers.budget_idle * (end - begin)
    if isinstance(limit, EnergyBudget):
        allowed, switched = limit.budget.of(full * (end - begin)), bool(policy.shutdown or policy.keeper)
    else:
        allowed, switched = limit.cap.of(full) * (end - begin), False
    return Limited(begin, end, allowed, found.between(begin, end), allowed < idle and not switched)

