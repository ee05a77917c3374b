"""The tables of jobs of independent tasks, which contend for the memory of their processor.

Rule: a node of the tables is a processor, the cores that share a memory channel, in the order of the cluster file. A
node's bandwidth and cores are divided evenly among its sockets; the first sockets get the remaining cores. A job has as
many one-core tasks as its size, on any cores. A task takes its run time on the slowest processor, less on faster ones,
and more next to other tasks. Tasks move their data at a constant rate; co-run inflation is ignored.
Source: IRMaSim (Herrera et al., CCGrid 2021), III and V.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
from ..kernels.mapping import layout
from ..kernels.mapping.layout import World
from ..model.cluster import Cluster, NodeType, comparable_speeds
from ..model.workload import Workload
from ..planning.workflow_tables import Template, template_of
from ..queue_policies.energy.power_limits import NoLimit
from ..queue_policies.order_ranks import ranked_by
from ..queue_policies.policy_specs import Contending
from .known_run_times import ACTUAL, PREDICTED, WALLTIME
from .shared_tables import world_of

#: Upper bound of bytes and bytes/s: more than any machine has, and finite, so that every task ends.
MOST = 2e18
#: The kernel's code of each resource rule of `pairs`.
_CODES = {
    "random": layout.RANDOM_CORE,
    "high_gflops": layout.HIGH_GFLOPS,
    "high_core": layout.HIGH_CORE,
    "high_mem": layout.HIGH_MEM,
    "high_mem_bw": layout.HIGH_MEM_BW,
    "low_power": layout.LOW_POWER,
}


@dataclass(frozen=True, slots=True)
class ProcessorTables:
    """The processors of a machine."""

    template: Template  # the tables, in which each processor is a node
    node: Array  # [processors], the node of each
    speed: Array  # [nodes], of a core
    #: [processors], watts of a busy core, watts that a processor has in common, their share at idle; 0 if not known.
    per_core: Array
    common: Array
    idle_share: Array
    base: Array  # [nodes], watts of an idle node without its processors
    powered: bool  # the power of all nodes is known

    @property
    def of_core(self) -> Array:
        """The processor of each core [cores]."""
        cores = self.template.nodes["limit"].astype(np.int64)
        return np.repeat(np.arange(len(cores)), cores)


def processors_of(cluster: Cluster) -> ProcessorTables:
    """Return the processors of a cluster's nodes. Raises ConfigError if nodes share a memory domain."""
    if cluster.shared_memory is not None:
        shared = f"nodes share the memory {cluster.shared_memory!r}"
        why = f"{shared}: with these policies, only tasks on one processor contend"
        raise ConfigError(cluster.source, "nodes", why, "nodes with separate memories")
    node_template, kinds = template_of(cluster), [node.type for node in cluster.nodes]
    watts = {kind: _watts(kind) for kind in cluster.types}
    types = node_template.types.copy()
    types["bandwidth"] /= types["sockets"]
    types["cores"] = np.ceil(types["cores"] / types["sockets"])
    types["sockets"], types["all_threads"] = 1, 1
    types["per_job"] = types["queueing"] = types["inflating"] = 0
    for row, kind in zip(types, cluster.types, strict=True):
        row["watts_slope"], row["watts_base"], idle_share = watts[kind]
        row["watts_idle"] = row["watts_base"] * idle_share
    sockets = np.array([kind.sockets for kind in kinds])
    last = np.cumsum(sockets)
    node, count = np.repeat(np.arange(len(kinds)), sockets), int(sockets.sum())
    number, cores = np.arange(count) - (last - sockets)[node], np.array([kind.cores for kind in kinds])
    nodes, domains = node_template.nodes[node], np.zeros(count, layout.DOMAIN)
    nodes["limit"] = cores[node] // sockets[node] + (number < (cores % sockets)[node])
    nodes["core0"] = np.cumsum(nodes["limit"]) - nodes["limit"]
    nodes["memory"] = np.floor(nodes["memory"])
    nodes["first"], nodes["last"] = (last - sockets)[node], last[node]
    nodes["heap_pos"] = nodes["domain"] = domains["start"] = np.arange(count)
    domains["count"] = 1
    template = replace(
        node_template, types=types, nodes=nodes, domains=domains, domain_nodes=np.arange(count), powered=False, split=1
    )
    base = np.array([kind.power.idle if kind.power else 0.0 for kind in kinds])
    per_core, common, idle_share = np.array([watts[kinds[n]] for n in node]).T
    speed = np.array(comparable_speeds(kinds))
    return ProcessorTables(template, node, speed, per_core, common, idle_share, base, node_template.powered)


def _watts(kind: NodeType) -> tuple[float, float, float]:
    """Return the watts of a busy core, what a processor has in common, and the share of that at idle."""
    if (power := kind.power) is None:
        return 0.0, 0.0, 1.0
    if power.computing is not None:
        return (power.computing - power.idle) / kind.cores, 0.0, power.idle_uncore
    return power.per_core, power.per_socket, power.idle_uncore


def check_power_known(policy: Contending, machine: ProcessorTables) -> None:
    """Check that the power of the machine is known if the policy needs it. Raises ConfigError if not."""
    if policy.needs_power and not machine.powered:
        raise ConfigError("policy", "pairs:resource", "the power of this machine is not known", "nodes with power")


def task_tables(
    workload: Workload, machine: ProcessorTables, policy: Contending, run_times: str, seed: int, limit: NoLimit
) -> tuple[World, Array, int]:
    """Return the tables, which jobs fit, and the kernel's code of the policy.

    Args:
        workload: the jobs; `more` may have `volume` and `memory`, bytes that a task moves and needs, and `asked`, the
            requested seconds.
        machine: the processors.
        policy: the policy.
        run_times: what the policy may know, WALLTIME, ACTUAL or PREDICTED.
        seed: of random choices.
        limit: jobs that can never start under it do not fit.

    Raises:
        ConfigError: the policy needs the power of the machine and it is not known.
    """
    check_power_known(policy, machine)
    template, size, run = machine.template, len(workload), workload.run_time
    memory = np.ceil(np.minimum(workload.more.get("memory", np.zeros(size)), MOST))
    fits = _fits(workload.size, memory, machine, whole=policy.on_one_node) & (workload.size <= limit.largest())
    classes, phases = np.zeros(size, layout.CLASS), np.zeros((size, len(template.types)), layout.PHASE)
    classes["threads"], classes["memory"], classes["told"] = 1.0, memory, 1.0
    classes["nodes"] = np.where(fits, workload.size, 1)
    moved = np.asarray(workload.more.get("volume", np.zeros(size)), np.float64)
    with np.errstate(over="ignore"):
        demand = np.divide(moved, run, out=np.zeros(size), where=run > 0)
    demand = np.minimum(demand, MOST)
    speeds = template.types["speed"] / template.types["speed"].min(initial=np.inf)
    phases["work"], phases["bandwidth"], phases["utilisation"] = run[:, None] / speeds, demand[:, None] * speeds, 1.0
    order = np.zeros(0, np.int64)
    if policy.on_one_node:
        first, cores = np.unique(template.nodes["first"]), np.bincount(machine.node, template.nodes["limit"])
        ranks = {"fastest": machine.speed, "biggest": cores}.get(policy.placement, np.zeros(len(first)))
        order = first[np.argsort(-ranks, kind="stable")]
        code = layout.RANDOM_MACHINE if policy.placement == "random" else layout.ORDERED_MACHINE
    else:
        code = _CODES[policy.placement]
    world = world_of(
        World, workload, template, classes, phases.reshape(-1), np.zeros(size, np.int64), fits, {"ranked": order},
        tasks=True,
    )  # fmt: skip
    values = _values(workload, policy, run_times, memory, demand)
    world.random["state"], world.count["drawn"] = seed, policy.job == "random"
    if policy.job == "random" or workload.dependencies is None:
        world.jobs["key"] = 0 if policy.job == "random" else ranked_by(workload, values)
        world.count["keyed"] = 1
        return world, fits, int(code)
    # The key is the rank of the value, then the order of the submissions, of at most as many instants as events.
    events = 3.0 * size + float(classes["nodes"].sum()) + 2.0
    world.jobs["base"] = np.unique(values, return_inverse=True)[1].reshape(-1) * (events * size)
    return world, fits, int(code)


def _values(workload: Workload, policy: Contending, run_times: str, memory: Array, demand: Array) -> Array:
    """Return what the next job has least of, as far as it is known before the run [jobs]."""
    size = len(workload)
    times = {
        WALLTIME: workload.more.get("asked", workload.walltime),
        ACTUAL: np.minimum(workload.run_time, workload.walltime),
        PREDICTED: np.zeros(size),
    }
    values = {"shortest": times[run_times], "smallest": workload.size, "low_mem": memory, "low_mem_bw": demand}
    return np.asarray(values.get(policy.job, np.zeros(size)))


def _fits(sizes: Array, memory: Array, machine: ProcessorTables, *, whole: bool) -> Array:
    """Return which jobs fit on the machine, or on one of its nodes if `whole`."""
    cores, fits = np.bincount(machine.node, machine.template.nodes["limit"]), np.zeros(len(sizes), bool)
    capacity = machine.template.nodes["memory"][np.unique(machine.node, return_index=True)[1]]
    for need in np.unique(memory):
        room = cores if need == 0 else np.minimum(cores, capacity // need)
        mine = memory == need
        fits[mine] = sizes[mine] <= (room.max() if whole else room.sum())
    return fits
