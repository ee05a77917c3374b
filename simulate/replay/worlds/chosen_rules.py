"""Replay a workload under a learned policy that chooses a pair of rules at each decision.

Rule: world, moments of decision and what the policy sees are those of its training, see `kernels.mapping.rule_choice`.
It knows requested times, and no run times. Tables and results are those of `contended`.
Source: IRMaSim (Herrera et al., CCGrid 2021), IV.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ConfigError
from ...kernels.mapping import choice_tables as tables
from ...kernels.object_cache import load
from ...planning.workflow_tables import scratch_for
from ...world.known_run_times import WALLTIME
from ...world.power_log import PowerLog
from ...world.rule_worlds import choice_tables, fresh_world
from ...world.task_tables import ProcessorTables, processors_of
from ..engines import Engine
from ..replay_case import ReplayCase
from .contended import ContendedReplay, contended_result

#: Decisions between two reports of progress.
_EACH = 1000


def run(case: ReplayCase, engine: Engine) -> ContendedReplay:
    """Replay jobs, see `contended.run`. O(numbers of the network) a decision, and what the simulation costs.

    Raises:
        ConfigError: the model was trained on a machine with other processors, it needs the power of the machine and
            that is not known, or it is to know run times.
    """
    policy, workload, options = case.policy, case.jobs, case.options
    if options.knows != WALLTIME:
        raise ConfigError("policy", "", f"{policy}, with run times: {options.knows}", f"run times: {WALLTIME}")
    began, machine = options.clock(), processors_of(case.cluster)
    _check_machine(policy, machine)
    world, fits = fresh_world(workload, machine, policy.options)
    world.random["state"] = np.random.default_rng([options.seed, 0]).integers(2**63)
    choices = choice_tables([workload], machine, policy.options, copies=1)
    scratch, state, mask = scratch_for(world, len(machine.of_core)), choices.seen[0], choices.mask[0]
    call, places, decisions = load(engine.kernels[0]), (choices.address, world.address, scratch.address), 0
    is_over = call(*places, 0, tables.BEGIN)
    while not is_over:
        is_over = call(*places, 0, policy.action(state, mask))
        decisions += 1
        if decisions % _EACH == 0:
            options.progress(float(world.clock["now"]))
    return contended_result(workload, world, machine, fits, options.clock() - began, PowerLog(kept=False))


def _check_machine(policy: Any, machine: ProcessorTables) -> None:
    """Raise ConfigError if the policy sees processors, and was trained on others."""
    cores = tuple(machine.template.nodes["limit"].astype(int).tolist())
    if policy.cores and policy.cores != cores:
        trained, present = (f"processors: {len(sizes)}, cores: {sum(sizes)}" for sizes in (policy.cores, cores))
        allowed = "the processors of its training, or a model that sees only the queue (--observation minimal)"
        raise ConfigError("policy", "", f"{policy} sees a machine with {trained}; this one has {present}", allowed)
