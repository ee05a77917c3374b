"""The row of schedule.csv: the results of a whole run, counted as Batsim counts them.

Rule: means are over all jobs, rejected ones, too. Every job that did not succeed counts as killed. A machine counts
until its last change only: the time that it is idle or off after that is left out. Unknown values are None.
Source: output of Batsim 4.2.1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...simulate.kernels.queue.power.tables import TO_IDLE
from ...simulate.replay.energy import STATES, Track
from ...simulate.replay.metrics import Summary
from ...simulate.world.replay_result import Replayed, pieces_by_job

Array = npt.NDArray[Any]
#: Run time that is written for a job of a Batsim workload that takes none, seconds.
EMPTY_S = 1e-5
#: Largest number of resources that are looked at one by one; those of larger machines are taken together.
MOST_CELLS = 1 << 20
#: Changes that are looked at first, the last ones.
CHUNK = 4096


def schedule_row(replayed: Replayed, summary: Summary, track: Track | None, version: str) -> dict[str, Any]:
    """Return the columns of schedule.csv, in Batsim's order. O(pieces log pieces).

    Args:
        replayed: the replay.
        summary: its metrics.
        track: the machine over time; None = not known.
        version: of the program.
    """
    jobs, ran = summary.nb_jobs, ~replayed.rejected
    submit, start = replayed.submit_time[ran], replayed.start_time[ran]
    run, finish = (times[ran] for times in written_ends(replayed))
    turnaround = finish - submit
    slowdown = turnaround[run > 0] / run[run > 0]

    def mean(values: Array) -> float | None:
        return float(values.sum()) / jobs if jobs else None

    return {
        "batsim_version": version,
        "consumed_joules": summary.consumed_joules,
        "makespan": summary.makespan,
        "max_slowdown": summary.max_slowdown,
        "max_turnaround_time": summary.max_turnaround_time,
        "max_waiting_time": summary.max_waiting_time,
        "mean_slowdown": mean(slowdown),
        "mean_turnaround_time": mean(turnaround),
        "mean_waiting_time": mean(start - submit),
        "nb_computing_machines": summary.nb_computing_machines,
        "nb_grouped_switches": int((np.diff(_groups(replayed.switched), prepend=-1) != 0).sum()),
        "nb_jobs": jobs,
        "nb_jobs_finished": summary.nb_jobs_finished,
        "nb_jobs_killed": summary.nb_jobs_finished - summary.nb_jobs_success,
        "nb_jobs_rejected": summary.nb_jobs_rejected,
        "nb_jobs_success": summary.nb_jobs_success,
        "nb_machine_switches": summary.nb_machine_switches,
        "scheduling_time": None,
        "simulation_time": summary.simulation_time,
        "success_rate": summary.nb_jobs_success / jobs if jobs else None,
        **_times(replayed, track),
        "time_unavailable": None if track is None else 0.0,
    }


def written_ends(replayed: Replayed) -> tuple[Array, Array]:
    """Return the run time and the finish time of each job as they are written, seconds.

    As in Batsim, a job of its workloads that takes no time is written with 1e-5 s.
    """
    start, finish = replayed.start_time, replayed.finish_time
    run = finish - start
    if "computes" not in replayed.workload.more:
        return run, finish
    return np.where(run == 0.0, EMPTY_S, run), np.where(run == 0.0, start + EMPTY_S, finish)


def switch_groups(replayed: Replayed) -> list[Array]:
    """Return the rows of `switched` that were switched together, in the order of time."""
    rows = replayed.switched
    cuts = np.flatnonzero(np.diff(_groups(rows))) + 1
    return np.split(rows, cuts) if len(rows) else []


def _groups(rows: Array) -> Array:
    """Return the number of the group of each row: those of one kind that begin and end at the same times."""
    new = np.zeros(len(rows), bool)
    for name in ("kind", "time", "until"):
        new[1:] |= rows[name][1:] != rows[name][:-1]
    return np.cumsum(new)


def _times(replayed: Replayed, track: Track | None) -> dict[str, float | None]:
    """Return the seconds that all machines spent in each state."""
    names = ("computing", "idle", "sleeping", "switching_off", "switching_on")
    if track is None or not len(track.time):
        return dict.fromkeys((f"time_{name}" for name in names), None if track is None else 0.0)
    spent = (track.counts[:-1] * np.diff(track.time)[:, None]).sum(axis=0)
    seconds = dict(zip(STATES, spent.tolist(), strict=True))
    times, asleep, weights = _last_changes(replayed)
    begin, end = float(track.time[0]), float(track.time[-1])
    remainder = (end - np.clip(times, begin, end)) * weights
    seconds["sleeping"] -= float(remainder[asleep].sum())
    seconds["idle"] -= float(remainder[~asleep].sum())
    return {f"time_{name}": max(0.0, seconds[name]) for name in names}


def _last_changes(replayed: Replayed) -> tuple[Array, Array, Array]:
    """Return the last change of each resource, or of each that change together: when, whether off, how many."""
    owner, pieces = pieces_by_job(replayed.pieces, replayed.piece0, replayed.piece_count)
    switched = replayed.switched
    until = np.concatenate([replayed.finish_time[owner], switched["until"]])
    off = np.concatenate([np.zeros(len(owner), bool), switched["kind"] != TO_IDLE])
    first = np.concatenate([pieces["first"].astype(np.int64), switched["first"]])
    after = np.concatenate([pieces["last"].astype(np.int64), switched["last"]]) + 1
    cells, weights = replayed.machine, np.ones(1, np.int64)
    if cells > MOST_CELLS:
        bounds, places = np.unique(np.concatenate([first, after, [0, cells]]), return_inverse=True)
        first, after = places[: len(first)], places[len(first) : -2]
        cells, weights = len(bounds) - 1, np.diff(bounds)
    used = np.cumsum(np.bincount(first, minlength=cells + 1) - np.bincount(after, minlength=cells + 1))[:cells] > 0
    most = min(len(until), 4 * cells + CHUNK)
    while True:  # the last changes are enough if they are of all resources in use
        late = np.argpartition(until, len(until) - most)[len(until) - most :] if most < len(until) else np.arange(most)
        late = late[np.argsort(until[late], kind="stable")]
        last = _last_cover(first[late], after[late], cells)
        if most == len(until) or (last[used] >= 0).all():
            break
        most = min(len(until), 8 * most)
    times, asleep = np.append(until[late], -math.inf)[last], np.append(off[late], False)[last]
    return times, asleep, np.broadcast_to(weights, cells)


def _last_cover(first: Array, after: Array, cells: int) -> Array:
    """Return the number of the last interval that covers each cell, -1 for none. O(intervals + cells log cells).

    An interval is covered by two whose lengths are the same power of two; each such length is a level.
    """
    level = np.frexp((after - first).astype(float))[1] - 1
    table = np.full((int(level.max(initial=0)) + 1, cells), -1, np.int64)
    numbers = np.arange(len(first))
    np.maximum.at(table, (level, first), numbers)
    np.maximum.at(table, (level, after - (1 << level.astype(np.int64))), numbers)
    for k in range(len(table) - 1, 0, -1):
        half = 1 << (k - 1)
        np.maximum(table[k - 1], table[k], out=table[k - 1])
        np.maximum(table[k - 1, half:], table[k, :-half], out=table[k - 1, half:])
    cover: Array = table[0]
    return cover
