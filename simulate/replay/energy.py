"""States, power and energy of the machine over a replay.

Rule: energy is exact at every change, from the first submission to the last end, over all resources, and power is the
mean between two changes. Resources with the same power are one kind. Jobs that do not compute draw idle power. If the
power of a job on a network was not logged, it has its mean power all the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..arrays import Array
from ..kernels.queue.network.tables import POWER
from ..kernels.queue.power.tables import TO_IDLE
from ..model.machine import MixedPowers, Powers, runs_of
from ..queue_policies.policy_facts import spec_of
from ..world.power_log import joules_at
from ..world.replay_result import Replayed, pieces_by_job


@dataclass(frozen=True, slots=True)
class _Draw:
    """Power of the machine and its jobs, watts.

    Args:
        machine: of the whole idle machine.
        extra: of a resource that computes, above idle [kinds].
        computing: resources that draw `extra` [jobs, kinds]; 0 for jobs that do not compute, or whose load varies.
        varying: joules above idle of the jobs whose load varies; nan for others [jobs].
        idle: of the idle resources of each job [jobs].
    """

    machine: float
    extra: Array
    computing: Array
    varying: Array
    idle: Array


def _power_draw(replayed: Replayed, powers: Powers | MixedPowers) -> _Draw:
    """Return the power of the machine and its jobs. O(jobs x kinds + pieces x kinds + resources)."""
    kinds, resource_counts, counts = _counts(replayed, powers)
    idle, full = (np.array([getattr(kind, name) for kind in kinds]) for name in ("idle", "computing"))
    jobs = replayed.workload
    computes = np.asarray(jobs.more.get("computes", np.ones(len(jobs), bool)), bool)
    varying = np.full(len(jobs), np.nan) if replayed.above_idle is None else replayed.above_idle.copy()
    lasted = replayed.finish_time - replayed.start_time
    for row, joules in _works(replayed, powers):
        varying[row] = joules(lasted[row : row + 1])[0]
    computing = np.where((computes & np.isnan(varying))[:, None], counts, 0)
    return _Draw(float(resource_counts @ idle), full - idle, computing, varying, counts @ idle)


def _works(replayed: Replayed, powers: Powers | MixedPowers) -> Iterator[tuple[int, Callable[[Array], Array]]]:
    """Yield the jobs whose load varies by their own work, and the function from seconds since the start to joules."""
    works = replayed.workload.more.get("work", np.zeros(0, object))
    varies = works.astype(bool) & ~replayed.rejected[: len(works)]
    if replayed.above_idle is not None:
        varies &= np.isnan(replayed.above_idle[: len(works)])
    rows = np.flatnonzero(varies).tolist()
    if not rows:
        return
    runs = runs_of(powers, replayed.machine)
    counts, kinds = [count for count, _ in runs], [kind for _, kind in runs]
    lift = np.repeat([kind.least - kind.idle for kind in kinds], counts)
    slope = np.repeat([kind.computing - kind.least for kind in kinds], counts)
    for row in rows:
        first, count = replayed.piece0[row], replayed.piece_count[row]
        on = np.concatenate([np.arange(a, b + 1) for a, b in replayed.pieces[first : first + count].tolist()])
        yield row, partial(works[row].joules, lift=lift[on], slope=slope[on])


def _varying_until(replayed: Replayed, powers: Powers | MixedPowers, times: Array) -> Array:
    """Return the joules above idle, until each of the ascending times, of all jobs whose load varies."""
    start, finish = replayed.start_time, replayed.finish_time
    energies, log = np.zeros(len(times)), replayed.power_log
    for row, joules in _works(replayed, powers):
        first, after = np.searchsorted(times, (start[row], finish[row]))
        job_energies = joules(np.append(times[first:after], finish[row]) - start[row])
        energies[first : after + 1] += np.diff(job_energies, prepend=0.0)
    energies = np.cumsum(energies)
    if replayed.above_idle is None:
        return energies
    if log is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = replayed.above_idle / (finish - start)
        ran = np.isfinite(mean)
        log = np.rec.fromarrays([start[ran], finish[ran], mean[ran]], POWER)
    return energies + joules_at(log, times)


def _counts(replayed: Replayed, powers: Powers | MixedPowers) -> tuple[list[Powers], Array, Array]:
    """Return the kinds, the number of resources of each, and the number that each job has of each."""
    if isinstance(powers, Powers):
        return [powers], np.array([replayed.machine]), replayed.sizes[:, None]
    kinds = list(dict.fromkeys(kind for _, kind in powers.runs))
    upto = np.zeros((replayed.machine + 1, len(kinds)), np.int64)  # resources of each kind before each resource
    kind_indices = np.repeat([kinds.index(kind) for _, kind in powers.runs], [number for number, _ in powers.runs])
    np.cumsum(kind_indices[:, None] == np.arange(len(kinds)), axis=0, out=upto[1:])
    counts = np.zeros((len(replayed.workload), len(kinds)), np.int64)
    owner, job_pieces = pieces_by_job(replayed.pieces, replayed.piece0, replayed.piece_count)
    np.add.at(counts, owner, upto[job_pieces["last"].astype(np.int64) + 1] - upto[job_pieces["first"]])
    return kinds, upto[-1], counts


STATES = ("sleeping", "switching_on", "switching_off", "idle", "computing")


@dataclass(frozen=True, slots=True)
class Track:
    """The machine over time; each row holds from its time to the next."""

    time: Array  # seconds, strictly ascending; the last is the end
    counts: Array  # [rows, STATES], number of resources
    watts: Array  # mean power of all resources
    least_watts: Array  # their power if no job computed
    joules: Array  # energy consumed from the beginning to this time

    def between(self, begin: float, end: float) -> float:
        """Return the joules consumed between two times, seconds."""
        if not len(self.time):
            return 0.0
        low, high = np.interp((begin, end), self.time, self.joules)
        return float(high - low)


def track(replayed: Replayed, powers: Powers | MixedPowers, begin: float = math.inf) -> Track:
    """Return states, power and energy of the machine over time. O(changes log changes).

    Args:
        replayed: the replay.
        powers: power of the resources.
        begin: seconds; from there on if that is before the first submission, with all resources idle.
    """
    draw = _power_draw(replayed, powers)
    first, end = span(replayed)
    parts = _changes(replayed, draw, min(first, begin))
    times = np.concatenate([time for time, _ in parts])
    moments, where = np.unique(np.clip(times, min(first, begin), end), return_inverse=True)
    sums, at = np.zeros((len(STATES) + len(draw.extra), len(moments))), 0
    for time, columns in parts:
        for column, change in columns.items():
            sums[column] += np.bincount(where[at : at + len(time)], change, len(moments))
        at += len(time)
    counts = np.rint(np.cumsum(sums, axis=1)).astype(np.int64).T
    counts, busy = counts[:, : len(STATES)], counts[:, len(STATES) :]
    counts[:, 3] = replayed.machine - counts[:, [0, 1, 2, 4]].sum(axis=1)
    least = np.full(len(moments), draw.machine)
    if isinstance(powers, Powers):
        least = counts @ np.array((powers.off or 0.0, powers.on_w, powers.off_w, powers.idle, powers.idle))
    watts = least + busy @ draw.extra
    joules = np.concatenate([[0.0], np.cumsum(watts[:-1] * np.diff(moments))])
    varying = _varying_until(replayed, powers, moments)
    mean = np.diff(varying) / np.diff(moments)
    return Track(moments, counts, watts + np.append(mean, 0.0), least, joules + varying)


def consumed(replayed: Replayed, powers: Powers | MixedPowers) -> float:
    """Return the joules of all resources from the first submission to the last end, as `track`. O(jobs + changes).

    Args:
        replayed: the replay.
        powers: power of the resources.
    """
    begin, end = span(replayed)
    draw, ran = _power_draw(replayed, powers), ~replayed.rejected
    lasted = (replayed.finish_time - replayed.start_time)[ran]
    switched = _switched(replayed, powers, end) if isinstance(powers, Powers) else 0.0
    computing = float(((draw.computing @ draw.extra)[ran] * lasted).sum())
    return draw.machine * (end - begin) + computing + float(np.nansum(draw.varying[ran])) + switched


def _switched(replayed: Replayed, powers: Powers, end: float) -> float:
    """Return the difference in joules that switching machines made."""
    off, on_w, ran, on = powers.off or 0.0, powers.on_w, ~replayed.rejected, replayed.changes["kind"] == TO_IDLE
    boots = replayed.booted[ran]
    begins, ends, sizes = (replayed.changes[name] for name in ("time", "until", "size"))
    parts = (  # (times, change of power from then on)
        (begins, np.where(on, on_w - off, powers.off_w - powers.idle) * sizes),
        (ends, np.where(on, powers.idle - on_w, off - powers.off_w) * sizes),
        (replayed.taken_time[ran], (on_w - off) * boots),
        (replayed.start_time[ran], (powers.idle - on_w) * boots),
    )
    return sum(float((watts * np.maximum(end - times, 0.0)).sum()) for times, watts in parts)


def jobs_joules(replayed: Replayed, powers: Powers | MixedPowers) -> Array:
    """Return the joules of each job's resources while it ran; nan for rejected jobs.

    Args:
        replayed: the replay.
        powers: power of the resources.
    """
    draw = _power_draw(replayed, powers)
    watts = draw.idle + draw.computing @ draw.extra
    return np.asarray((replayed.finish_time - replayed.start_time) * watts + np.nan_to_num(draw.varying))


def span(replayed: Replayed) -> tuple[float, float]:
    """Return the first submission and the last end, seconds."""
    if not len(replayed.workload):
        return 0.0, 0.0
    begin = float(replayed.workload.submit_time[0])
    return begin, float(np.nanmax(np.append(replayed.finish_time, begin)))


def switches(replayed: Replayed) -> int:
    """Return how often a resource was switched on or off."""
    return int(replayed.changes["size"].sum() + replayed.booted.sum())


def _changes(replayed: Replayed, draw: _Draw, begin: float) -> list[tuple[Array, dict[int, Array]]]:
    """Return times, and the change in the number of resources in some of STATES, and of each kind that computes."""
    ran = ~replayed.rejected
    taken_time, start, finish = (
        column[ran] for column in (replayed.taken_time, replayed.start_time, replayed.finish_time)
    )
    size, booted, draws = replayed.sizes[ran], replayed.booted[ran], draw.computing[ran].T
    on = replayed.changes["kind"] == TO_IDLE
    begins, ends, counts = (replayed.changes[name] for name in ("time", "until", "size"))
    off, turning_on, turning_off, computing = (STATES.index(name) for name in
                                               ("sleeping", "switching_on", "switching_off", "computing"))  # fmt: skip
    drawn = dict(enumerate(draws, len(STATES)))
    changes = [
        (np.array([begin]), {}),
        (start, {computing: size, **drawn}),
        (finish, {computing: -size, **{kind: -counts for kind, counts in drawn.items()}}),
    ]
    if booted.any():
        changes += [(taken_time, {off: -booted, turning_on: booted}), (start, {turning_on: -booted})]
    if len(counts):
        to_on, to_off = np.where(on, counts, 0), np.where(on, 0, counts)
        changes += [(begins, {off: -to_on, turning_on: to_on, turning_off: to_off}),
                    (ends, {off: to_off, turning_on: -to_on, turning_off: -to_off})]  # fmt: skip
    return changes


@dataclass(frozen=True, slots=True)
class LimitOutcome:
    """The outcome of a power or energy limit."""

    #: Window of the limit, seconds.
    begin: float
    end: float
    #: Joules in the window.
    allowed: float
    consumed: float
    hopeless: bool  # idle machines alone take all of it, and are never switched off: no job could start


def limited(replayed: Replayed, policy: object, powers: Powers | MixedPowers, found: Track) -> LimitOutcome | None:
    """Return the outcome of the policy's limit; None if it has none, or if resources differ in power.

    Args:
        replayed: the replay.
        policy: the policy.
        powers: power of the resources.
        found: the machine over time.
    """
    spec = spec_of(policy)
    limit = spec.limit
    window = limit.window(replayed.workload) if limit else None
    if not isinstance(powers, Powers) or limit is None or window is None:
        return None
    begin, end = window[0], window[1] if math.isfinite(window[1]) else span(replayed)[1]
    resources, full = replayed.machine, replayed.machine * powers.budget_computing
    if limit.is_budget:
        allowed, switched = limit.budget.absolute(full * (end - begin)), spec.switches
        hopeless = limit.is_hopeless(_idle_at_least(powers), resources, end - begin) and not switched
    else:
        allowed, hopeless = limit.cap.absolute(full) * (end - begin), limit.allowed(powers, resources) == 0
    return LimitOutcome(begin, end, allowed, found.between(begin, end), hopeless)


def refusal_of(policy: object, powers: Powers | MixedPowers | None, machine: int, limit: LimitOutcome) -> str:
    """Return why no job could start while a limit held, and what would be enough; "" if jobs could.

    Args:
        policy: the policy.
        powers: power of the resources.
        machine: number of resources.
        limit: the outcome.
    """
    part = spec_of(policy).limit
    if not limit.hopeless or not (part and part.is_budget) or not isinstance(powers, Powers):
        return ""
    error = part.refusal(_idle_at_least(powers), machine, limit.end - limit.begin, "machines")
    return "" if error is None else f"{error.problem} while it held (allowed: {error.allowed})"


def _idle_at_least(powers: Powers) -> Powers:
    """Return the powers with the idle power below which no budget lasts: a replay corrects estimates by what it was."""
    return replace(powers, budget_idle=min(powers.budget_idle, powers.idle))
