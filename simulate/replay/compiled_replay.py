"""Replay a workload on numbered resources under a compiled queue policy.

O(jobs x (log running + log queue)) with informative walltimes; orders that change with time cost O(queue) per pass.
"""

from __future__ import annotations

import math

import numpy as np

from ..kernels.object_cache import load
from ..kernels.queue import tables
from ..kernels.queue.network.tables import Networked, NetworkedPowered, NetworkedReserving
from ..kernels.queue.power.tables import Powered
from ..world import slices
from ..world.job_dependencies import stranded
from ..world.power_log import PowerLog
from ..world.replay_result import Replayed, merge_pieces, pieces_by_job, switches_of, without_switches
from . import requirements
from .engines import Engine
from .replay_case import ReplayCase
from .tables import Setting, grow, tables_for


def run(case: ReplayCase, engine: Engine) -> Replayed:
    """Replay a case by the kernel of an engine. Raises ConfigError, see `requirements`."""
    workload, machine, options = case.jobs, case.machine, case.options
    net = requirements.network_for(workload, machine)
    predictions = case.predictions()
    kernel = load(engine.kernels[0])
    setting = Setting(workload, machine.processors, options.seed, net, machine.groups, machine.powers,
                      options.decision_time or 0.0, predictions is not None, options.log_power)  # fmt: skip
    world, log = tables_for(setting, case.policy), PowerLog(kept=options.log_power and net is not None)
    began = slice_began = options.clock()
    size = slices.FIRST
    while (answer := kernel(world.address, size)) != tables.DONE:
        if answer == tables.GROW:
            world = grow(world)
        else:
            log.empty(world)
            if predictions is not None:
                predictions.feed(world)
            size, slice_began = slices.next_slice(size, options.clock() - slice_began), options.clock()
            options.progress(float(world.clock["now"]))
    spent = options.clock() - began
    jobs, counts = world.jobs[: len(workload)], world.count
    stranded_jobs = stranded(world.unmet, len(workload))
    rejected = (jobs["state"] == tables.REJECTED) | stranded_jobs
    start, finish = (np.where(rejected, math.nan, jobs[name]) for name in ("start", "finish"))
    pieces = world.pieces[: counts["pieces"]].copy(), jobs["piece0"].copy(), jobs["pieces"].copy()
    switches = without_switches(start)
    if isinstance(world, Powered | NetworkedPowered):
        owner, rows = pieces_by_job(*pieces)
        pieces = merge_pieces(owner, rows["first"], rows["last"], len(jobs))
        switches = switches_of(world, rejected)
    overran = workload.overruns & ~rejected
    above_idle = None
    if isinstance(world, Networked | NetworkedReserving | NetworkedPowered):
        courses = world.courses[: len(workload)]
        overran |= (courses["killed"] == 1) & ~rejected
        above_idle = np.where(courses["program"] >= 0, courses["joules"], math.nan)
    log.empty(world)
    return Replayed(
        workload, machine.processors, jobs["submit"].copy(), start, finish, rejected, stranded_jobs, overran, *pieces,
        simulation_time=spent, instants=int(counts["instants"]), above_idle=above_idle,
        power_log=log.rows(), **switches,
    )  # fmt: skip
