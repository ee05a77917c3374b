"""The result of a replay, whatever policy it ran under, and the resources of its jobs as intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array
from ..kernels.queue.power.tables import TO_IDLE, TO_KEPT, TO_OFF
from ..kernels.queue.tables import ENDED, PIECE
from ..model.workload import Workload
from ..queue_policies.model_use import ModelUse

#: A change of machines: the new state, when it began and ended, and the number of machines.
CHANGE = np.dtype([("kind", np.int64), ("time", np.float64), ("until", np.float64), ("size", np.int64)])
#: An interval of machines that change together, for a job or by themselves; as CHANGE, with its first and last.
SWITCH = np.dtype([("kind", np.int64), ("time", np.float64), ("until", np.float64), ("first", np.int64),
                   ("last", np.int64)])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay. Arrays have one row per job of the workload.

    Args:
        machine: number of resources.
        submit_time: seconds; for a job with dependencies, the time at which it became eligible.
        start_time, finish_time: seconds; nan for rejected jobs.
        rejected: the job requests more than the machine has, or the policy rejected it, or it is stranded.
        stranded: the job was never submitted because a job it depends on was rejected or failed.
        overran: the job was killed at its walltime.
        pieces: first and last resource of each interval, for all jobs; job i has
            `pieces[piece0[i]:][:piece_count[i]]`.
        taken_time: seconds at which the job got its resources; earlier than its start if `booted` of them had to boot.
        changes: machines switched on and off, rows of CHANGE.
        switched: which these are, and those that booted for a job, in the order of time, rows of SWITCH.
        simulation_time: seconds spent in the engine.
        instants: number of distinct times at which something happened.
        killed: the policy killed the job; None: it killed no job.
        above_idle: joules of each job with a program above those of its idle resources, where power is known, nan for
            other jobs; None: no job has a program.
        power_log: power of the jobs with programs above that of their idle resources over time, rows of
            `kernels.queue.network.tables.POWER`; None: it was not logged.
        held: number of resources of each job; None: as many as it requests.
        model_use: how far a learned policy decided itself; None: the policy has no baseline to decide in its place.
    """

    #: Tasks contend: it is a `ContendedReplay`.
    contends: ClassVar[bool] = False
    workload: Workload
    machine: int
    submit_time: Array
    start_time: Array
    finish_time: Array
    rejected: Array
    stranded: Array
    overran: Array
    pieces: Array
    piece0: Array
    piece_count: Array
    taken_time: Array
    booted: Array
    changes: Array
    simulation_time: float
    instants: int
    killed: Array | None = field(default=None, kw_only=True)
    switched: Array = field(default_factory=lambda: np.empty(0, SWITCH), kw_only=True)
    above_idle: Array | None = field(default=None, kw_only=True)
    power_log: Array | None = field(default=None, kw_only=True)
    held: Array | None = field(default=None, kw_only=True)
    model_use: ModelUse | None = field(default=None, kw_only=True)

    @property
    def sizes(self) -> Array:
        """The number of resources of each job."""
        return self.workload.size if self.held is None else self.held


def without_switches(start_time: Array) -> dict[str, Any]:
    """Return the columns `taken_time`, `booted` and `changes` of a replay in which no machine is switched."""
    return {"taken_time": start_time, "booted": np.zeros(len(start_time), np.int64), "changes": np.empty(0, CHANGE)}


def in_order_of_submission(done: Replayed) -> Replayed:
    """Return a replay whose rows, those of its workload too, are sorted by submit time. O(jobs log jobs)."""
    rows = np.argsort(done.submit_time, kind="stable")
    others = ("pieces", "changes", "switched")
    columns = {entry.name: getattr(done, entry.name) for entry in fields(done) if entry.name not in others}
    arrays: dict[str, Any] = {name: column[rows] for name, column in columns.items() if isinstance(column, np.ndarray)}
    return replace(done, workload=done.workload.take(rows), **arrays)


def pieces_by_job(pieces: Array, piece0: Array, piece_count: Array) -> tuple[Array, Array]:
    """Return the job of each interval, and the intervals, job by job. O(pieces).

    Args:
        pieces: first and last resource of all intervals.
        piece0: first interval of each job.
        piece_count: number of intervals of each job.
    """
    owner = np.repeat(np.arange(len(piece_count)), piece_count)
    place = np.arange(len(owner)) + np.repeat(piece0 - np.cumsum(piece_count) + piece_count, piece_count)
    return owner, pieces[place]


def merge_pieces(owner: Array, first: Array, last: Array, jobs: int) -> tuple[Array, Array, Array]:
    """Return sorted and merged intervals, and the first one and the number of them of each job. O(pieces log pieces).

    Args:
        owner: job of each interval.
        first: its first resource.
        last: its last resource.
        jobs: number of jobs.
    """
    order = np.lexsort((first, owner))
    owner, first, last = owner[order], first[order], last[order]
    begins = np.ones(len(owner), bool)
    begins[1:] = (first[1:] != last[:-1] + 1) | (owner[1:] != owner[:-1])
    at = np.flatnonzero(begins)
    pieces = np.zeros(len(at), PIECE)
    pieces["first"], pieces["last"] = first[at], last[np.append(at[1:], len(last))[: len(at)] - 1]
    count = np.bincount(owner[at], minlength=jobs).astype(np.int64)
    return pieces, np.cumsum(count) - count, count


def switches_of(world: Any, rejected: Array) -> dict[str, Any]:
    """Return the columns of `without_switches`, and `switched`, of a replay with machine states. O(rows log rows).

    The machines that boot for jobs are in `switched`, too, which is in the order of time.
    """
    jobs, rows = len(rejected), world.jobs[: world.count["rows"]]
    of_job = np.arange(len(rows)) < jobs
    switches = np.where(of_job, rows["state"] == ENDED, np.isin(rows["state"], (TO_OFF, TO_KEPT, TO_IDLE)))
    first = np.where(of_job, rows["booted"], rows["piece0"])
    owner, pieces = pieces_by_job(world.pieces, first, np.where(switches, rows["piece0"] + rows["pieces"] - first, 0))
    switched = np.empty(len(owner), SWITCH)
    switched["kind"] = np.where(of_job, TO_IDLE, rows["state"])[owner]
    switched["time"], switched["until"] = rows["taken"][owner], np.where(of_job, rows["start"], rows["finish"])[owner]
    switched["first"], switched["last"] = pieces["first"], pieces["last"]
    widths = pieces["last"].astype(np.int64) - pieces["first"] + 1
    alone = rows[switches & ~of_job]
    changes = np.empty(len(alone), CHANGE)
    for name, column in (("kind", "state"), ("time", "taken"), ("until", "finish"), ("size", "size")):
        changes[name] = alone[column]
    return {
        "taken_time": np.where(rejected, math.nan, rows["taken"][:jobs]),
        "booted": np.bincount(owner, widths, jobs)[:jobs].astype(np.int64),
        "changes": changes,
        "switched": switched[np.lexsort((switched["first"], owner, switched["kind"], switched["time"]))],
    }
