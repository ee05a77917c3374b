"""The tables of a world in which each decision chooses a pair of rules.

Rule: the world is that of `pairs`, see `task_tables`; a policy sees what a scheduler knows at that time, and nothing of
the workload as a whole. Replays and the environment of a training have the same tables.
Source: IRMaSim (Herrera et al., CCGrid 2021), IV.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
from ..kernels.mapping import choice_tables as tables
from ..kernels.mapping.layout import World
from ..model.workload import Workload
from ..queue_policies.energy.power_limits import NoLimit
from ..queue_policies.policy_specs import JOBS, Pairs
from .known_run_times import WALLTIME
from .rule_options import LEVELS, OBJECTIVES, PEAKS, RuleOptions
from .task_tables import ProcessorTables, check_power_known, task_tables

#: Requested time, and bytes that a task moves, that are seen as 1; both on a logarithmic scale.
LONGEST_S, LARGEST_VOLUME = 90 * 86_400.0, 1e15


def fresh_world(workload: Workload, machine: ProcessorTables, options: RuleOptions) -> tuple[World, Array]:
    """Return the tables of a workload before anything runs, and which jobs fit on the empty machine [jobs].

    Args:
        workload: jobs may have `volume`, `memory` and `asked`, see `task_tables`.
        machine: the processors.
        options: of the decisions.

    Raises:
        ConfigError: jobs depend on others or have no run time, or a rule needs the power of the machine.
    """
    if workload.dependencies is not None:
        raise ConfigError(workload.name, "", "jobs that wait for others", "jobs without dependencies")
    if workload.programs is not None or not np.isfinite(workload.run_time).all():
        raise ConfigError(workload.name, "", "jobs without a run time", "seconds")
    if {"low_power", "peak_power"} & {core for _, core in options.pairs}:
        check_power_known(Pairs(resource="low_power"), machine)
    world, fits, _ = task_tables(workload, machine, Pairs(), WALLTIME, 0, NoLimit())
    world.jobs["key"] = 0.0  # until the first action
    world.jobs["asked"] = workload.more.get("asked", workload.walltime)
    return world, fits


def choice_tables(
    workloads: Sequence[Workload], machine: ProcessorTables, options: RuleOptions, copies: int
) -> tables.RuleChoices:
    """Return the tables that all copies share."""
    cores, nodes = len(machine.of_core), len(machine.base)
    levels, level_of = _levels(workloads, machine)
    size = tables.REQUESTS * tables.POINTS + 1
    if options.observation != "minimal":
        size += nodes + len(machine.node)
    if options.observation == "normal":
        size += tables.CORE_COLUMNS * cores
    actions = np.zeros(len(options.actions), tables.CHOICE)
    codes, any_jobs = dict(PEAKS), workloads[0]
    for core in {core for _, core in options.pairs} - PEAKS.keys():
        codes[core] = task_tables(any_jobs, machine, Pairs("first", core), WALLTIME, 0, NoLimit())[2]
    for row, action in zip(actions, options.actions, strict=True):
        row["resource"] = -1
        if isinstance(action, tuple):
            row["job"], row["resource"] = list(JOBS).index(action[0]), codes[action[1]]
    choices = tables.RuleChoices(
        {"actions": actions, "keys": _keys(workloads, machine), "levels": levels, "level_of": level_of},
        {
            "copies": (copies,), "reward": (copies,), "seen": (copies, size), "mask": (copies, len(actions)),
            "trees": (copies, levels.size),
        },
    )  # fmt: skip
    settings = choices.settings
    settings["watts"], settings["sensitivity"] = machine.base.sum(), options.sensitivity
    settings["objective"], settings["level"] = OBJECTIVES[options.objective], LEVELS[options.observation]
    settings["one"], settings["always"] = options.one, options.always
    return choices


def _keys(workloads: Sequence[Workload], machine: ProcessorTables) -> Array:
    """Return the keys of all jobs under each rule for jobs [rules, jobs]."""
    keys = list[Array]()
    for job in JOBS:
        policy = Pairs(job, "high_core")
        worlds = [task_tables(workload, machine, policy, WALLTIME, 0, NoLimit())[0] for workload in workloads]
        keys.append(np.concatenate([world.jobs["key"] for world in worlds]))
    return np.array(keys)


def _levels(workloads: Sequence[Workload], machine: ProcessorTables) -> tuple[Array, Array]:
    """Return the distinct requests of all jobs as they are seen [REQUESTS, width], and each job's [REQUESTS, jobs]."""
    columns = list[Array]()
    for workload in workloads:
        nothing = np.zeros(len(workload))
        requested_time = workload.more.get("asked", workload.walltime)
        memory, volume = (workload.more.get(key, nothing) for key in ("memory", "volume"))
        shares = (
            np.log1p(requested_time) / np.log1p(LONGEST_S), workload.size / len(machine.of_core),
            memory / machine.template.nodes["memory"].max(), np.log1p(volume) / np.log1p(LARGEST_VOLUME),
        )  # fmt: skip
        columns.append(np.minimum(np.array(shares), 1.0))
    requests = np.concatenate(columns, axis=1)
    distinct = [np.unique(row, return_inverse=True) for row in requests]
    width = 1 << max(len(values) for values, _ in distinct).bit_length()
    levels = np.zeros((tables.REQUESTS, width))
    for row, (values, _) in zip(levels, distinct, strict=True):
        row[: len(values)] = values
    return levels, np.array([rank.reshape(-1) for _, rank in distinct], np.int64)
