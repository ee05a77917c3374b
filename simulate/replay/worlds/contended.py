"""Replay a workload on processors whose tasks contend for memory.

Rule: tables, rates and ends are those of the fluid simulation, see `world.task_tables`, and the policy is one of its
kernel's, see `kernels.mapping.task_rules`. A job holds its cores and memory until its last task ends, or until its
walltime, when the remaining tasks are killed. Where decisions take time, run times are predicted, or there is a power
cap, the policy decides at each instant: what it chooses has its cores from then on, and starts when that is applied.
Run times count only for `job=shortest`. Under a cap, the picked job waits while its cores are more than the cap leaves,
and so do all others.
Power over time is summed exactly between changes, from the first submission to the last end; a core computes while its
own task runs.
Source: IRMaSim (Herrera et al., CCGrid 2021), III and V.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from ...arrays import Array
from ...kernels.mapping.layout import World
from ...kernels.object_cache import load
from ...model.workload import Workload
from ...planning.workflow_tables import scratch_for
from ...queue_policies.policy_facts import spec_of
from ...world.power_log import PowerLog
from ...world.replay_result import Replayed, merge_pieces
from ...world.task_tables import ProcessorTables, processors_of, task_tables
from ..energy import STATES, Track, span
from ..engines import Engine
from ..replay_case import ReplayCase
from ..requirements import limit_for
from .shared_nodes import run_kernel, schedule_of


@dataclass(frozen=True, slots=True)
class ContendedReplay(Replayed):
    """The result of a replay with contention, with its tasks."""

    contends: ClassVar[bool] = True
    #: One row per task, in the order of the jobs.
    task_job: Array
    task_core: Array
    task_end: Array
    processors: ProcessorTables  # the machine

    @property
    def task_processor(self) -> Array:
        """The processor of each task [tasks]."""
        processors: Array = self.processors.of_core[self.task_core]
        return processors

    @property
    def joules(self) -> float | None:
        """The energy of the machine from the first submission to the last end; None if its power is not known."""
        if not self.processors.powered:
            return None
        return float(contended_track(self).joules[-1])

    @property
    def jobs_joules(self) -> Array:
        """The energy of each job: of its cores, and its share of the base power of its processors and nodes [jobs].

        nan for jobs that did not run, or if the power of the machine is not known. O(tasks log tasks).
        """
        machine, job = self.processors, self.task_job
        spent = machine.per_core[self.task_processor] * (self.task_end - self.start_time[job])
        for place, watts in ((self.task_processor, machine.common), (machine.node[self.task_processor], machine.base)):
            spent = spent + self._shares(place, watts)
        joules = np.bincount(job, spent, len(self.start_time))
        return np.where(self.rejected | (not machine.powered), math.nan, joules)

    def _shares(self, place: Array, watts: Array) -> Array:
        """Return the joules that each task has of the power of its place, which running tasks share equally."""
        times = np.concatenate([self.start_time[self.task_job], self.task_end])
        moments, when = np.unique(times, return_inverse=True)
        places, rows, running = _running(np.tile(place, 2), when, np.repeat([1, -1], len(place)))
        seconds = np.diff(moments[rows], append=0.0)
        shares = np.divide(watts[places] * seconds, running, out=np.zeros(len(rows)), where=running > 0)
        total, key = np.cumsum(np.append(0.0, shares)), places * len(moments) + rows
        begin, end = total[np.searchsorted(key, np.tile(place, 2) * len(moments) + when)].reshape(2, -1)
        joules: Array = end - begin
        return joules


def run(case: ReplayCase, engine: Engine) -> ContendedReplay:
    """Replay jobs whose `more` may have `volume` and `memory`, bytes that a task moves and needs, and `asked`, seconds.

    O(tasks x (processors + cores of a processor) + jobs log queue).

    Raises:
        ConfigError: the policy needs the power of the machine and it is not known, or nodes share a memory domain.
    """
    workload, options, policy = case.jobs, case.options, spec_of(case.policy).plain
    limit = limit_for(spec_of(case.policy), workload, case.machine, of_nodes=True)
    machine, log = processors_of(case.cluster), PowerLog(kept=False)
    world, fits, code = task_tables(workload, machine, policy, options.knows, options.seed, limit)

    def result(spent: float) -> ContendedReplay:
        return contended_result(workload, world, machine, fits, spent, log)

    kernel, scratch = load(engine.kernels[0]), scratch_for(world, len(machine.of_core))
    return run_kernel(
        case, kernel, world, scratch, code, 0, result, limit=limit, log=log, shortest=policy.job == "shortest"
    )


def contended_result(
    workload: Workload, world: World, machine: ProcessorTables, fits: Array, spent: float, log: PowerLog
) -> ContendedReplay:
    """Return the result of a finished run.

    Args:
        workload: the jobs.
        world: their tables, in which no job waits or runs any more.
        machine: the processors.
        fits: whether each job fits on the empty machine [jobs].
        spent: seconds that the run took.
        log: of the power of jobs.
    """
    owner = np.repeat(np.arange(len(workload)), world.classes["nodes"])
    ran = ~np.isnan(world.jobs["start"])[owner]
    owner, cores = owner[ran], world.task_core[ran]
    pieces = merge_pieces(owner, cores, cores, len(workload))
    schedule = schedule_of(workload, world, len(machine.of_core), pieces, ~fits, spent, log)
    return ContendedReplay(
        **{field.name: getattr(schedule, field.name) for field in fields(Replayed)},
        task_job=owner, task_core=cores, task_end=world.strands["last"][ran], processors=machine,
    )  # fmt: skip


def contended_track(replay: ContendedReplay, begin: float = math.inf) -> Track:
    """Return the machine over time; its power means nothing if it is not known. O(tasks log tasks).

    Args:
        replay: the replay.
        begin: see `energy.track`.
    """
    machine, (first, end) = replay.processors, span(replay)
    count, chips = len(replay.task_job), np.tile(replay.task_processor, 2)
    times = np.concatenate([replay.start_time[replay.task_job], replay.task_end])
    moments, when = np.unique(np.append(times, (min(first, begin), end)), return_inverse=True)
    chips, when, running = _running(chips, when[:-2], np.repeat([1, -1], count))
    kinds, kind = np.unique(
        np.stack([machine.per_core, machine.common, machine.idle_share]), axis=1, return_inverse=True
    )
    watts = np.full(len(moments), float(machine.base.sum() + (machine.common * machine.idle_share).sum()))
    least, busy = watts.copy(), np.zeros(len(moments), np.int64)
    before = np.append(0, running[:-1])
    before[np.append(True, chips[1:] != chips[:-1])[: len(before)]] = 0
    for k, (per_core, common, idle_share) in enumerate(kinds.T.tolist()):
        mine = kind.reshape(-1)[chips] == k
        tasks = _summed(when[mine], (running - before)[mine], len(moments))
        awake = _summed(when[mine], ((running > 0) * 1 - (before > 0))[mine], len(moments))
        watts += per_core * tasks + common * (1.0 - idle_share) * awake
        busy += tasks
    counts = np.zeros((len(moments), len(STATES)), np.int64)
    counts[:, STATES.index("computing")], counts[:, STATES.index("idle")] = busy, replay.machine - busy
    joules = np.concatenate([[0.0], np.cumsum(watts[:-1] * np.diff(moments))])
    return Track(moments, counts, watts, least, joules)


def _running(chips: Array, when: Array, change: Array) -> tuple[Array, Array, Array]:
    """Return processor, moment and number of running tasks from then on, for each change of a processor's tasks."""
    order = np.lexsort((when, chips))
    chips, when, running = chips[order], when[order], np.cumsum(change[order])
    last = np.ones(len(chips), bool)
    last[:-1] = (chips[1:] != chips[:-1]) | (when[1:] != when[:-1])
    return chips[last], when[last], running[last]


def _summed(when: Array, change: Array, moments: int) -> Array:
    return np.rint(np.cumsum(np.bincount(when, change, moments))).astype(np.int64)
