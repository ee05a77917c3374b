"""What a machine whose tasks contend did and drew over a replay, from its tasks' times alone.

Rule: exact sums over the times between changes, from the first submission to the last end; a core computes while its
task runs, whether it is the only one of its job that still does or not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .contended import Contended
from .energy import STATES, Track, span

Array = npt.NDArray[Any]


def contended_track(done: Contended) -> Track | None:
    """See above; None: what the machine draws is not known. O(tasks log tasks)."""
    machine = done.processors
    if not machine.powered:
        return None
    own, count = machine.processors, len(done.task_core)
    chips = np.tile(machine.core_table["processor"][done.task_core], 2)
    times = np.concatenate([done.start_time[done.task_job], done.task_end])
    moments, when = np.unique(np.append(times, span(done)), return_inverse=True)
    chips, when, running = _running(chips, when[:-2], np.repeat([1, -1], count))
    kinds, kind = np.unique(own[["per_core", "common", "idle_share"]], return_inverse=True)
    watts = np.full(len(moments), float(machine.nodes["watts"].sum() + (own["common"] * own["idle_share"]).sum()))
    least, busy = watts.copy(), np.zeros(len(moments), np.int64)
    before = np.append(0, running[:-1])
    before[np.append(True, chips[1:] != chips[:-1])[: len(before)]] = 0
    for k, (per_core, common, idle_share) in enumerate(kinds.tolist()):
        mine = kind[chips] == k
        tasks = _summed(when[mine], (running - before)[mine], len(moments))
        awake = _summed(when[mine], ((running > 0) * 1 - (before > 0))[mine], len(moments))
        watts += per_core * tasks + common * (1.0 - idle_share) * awake
        busy += tasks
    counts = np.zeros((len(moments), len(STATES)), np.int64)
    counts[:, STATES.index("computing")], counts[:, STATES.index("idle")] = busy, done.machine - busy
    joules = np.concatenate([[0.0], np.cumsum(watts[:-1] * np.diff(moments))])
    return Track(moments, counts, watts, least, joules)


def _running(chips: Array, when: Array, change: Array) -> tuple[Array, Array, Array]:
    """At each moment at which a processor's tasks change: the processor, the moment, and how many run from then on."""
    order = np.lexsort((when, chips))
    chips, when, running = chips[order], when[order], np.cumsum(change[order])
    last = np.ones(len(chips), bool)
    last[:-1] = (chips[1:] != chips[:-1]) | (when[1:] != when[:-1])
    return chips[last], when[last], running[last]


def _summed(when: Array, change: Array, moments: int) -> Array:
    return np.rint(np.cumsum(np.bincount(when, change, moments))).astype(np.int64)
