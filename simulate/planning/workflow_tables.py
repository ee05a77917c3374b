"""Tables of a simulation from value types: those of the cluster, of the shapes of its jobs, and of their dependencies.

Rule: this module writes tables and never runs anything. Building costs O(nodes) once for a cluster, then O(jobs +
edges). On another node type, service demand scales with the inverse of speed, idle time stays, and bandwidth scales
with speed up to the node's bandwidth (models, section 1); on the type it was measured on a profile is unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from struct import Struct
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..arrays import Array
from ..errors import InvariantError
from ..kernels.mapping import layout
from ..kernels.mapping.layout import Scratch, World
from ..kernels.queue.tables import NO_JOB, tree_levels
from ..model.cluster import (
    Cluster,
    ContendingThreads,
    Contention,
    CpuSharing,
    NodeType,
    comparable_speeds,
    group_phases,
    measured_type,
)
from ..model.job import Job, PeerWait, Profile, Workflow

#: Tables that hold nothing before a run.
_UNUSED = {"queues", "queued", "queued_key", "strands", "parts", "ended", "versions"}
AnyWorld = TypeVar("AnyWorld", bound=World)
#: A job that waits for nothing.
NEW_JOB = np.zeros(1, layout.JOB)
for _name in ("wait_for", "waiter", "next_waiter", "alt"):
    NEW_JOB[_name] = -1
NEW_JOB["start"] = NEW_JOB["finish"] = math.nan
NEW_JOB["scale"], NEW_JOB["walltime"] = 1.0, math.inf
#: Edges without a delay, whose jobs each have to end by themselves.
NO_EDGES = np.zeros(0, layout.EDGE)


def scaling_notes(profiles: list[Profile], cluster: Cluster) -> list[str]:
    """Return one sentence for each profile that is used on another type than it was measured on, variants aside."""
    kinds, notes = dict.fromkeys(kind.nominal for kind in cluster.types), dict[str | None, str]()
    for profile in profiles:
        if profile.measured_on in notes:
            continue
        origin, notes[profile.measured_on] = measured_type(profile, cluster), ""
        if origin is None:
            notes[profile.measured_on] = f"{profile.measured_on!r}, which this cluster does not have: not scaled"
        elif others := [kind.name for kind in kinds if len(set(comparable_speeds((kind, origin)))) > 1]:
            notes[profile.measured_on] = f"{origin.name}, scaled to {', '.join(others)} by speed"
    noted = ((profile, notes[profile.measured_on]) for profile in profiles)
    return [f"profile {profile.name or '(inline)'}: measured on {note}" for profile, note in noted if note]


_NO_INFLATION = np.ones((0, 0))
_CONTENTION = {
    Contention.NONE: layout.NONE,
    Contention.EQUAL_SHARE: layout.EQUAL_SHARE,
    Contention.MAX_MIN: layout.MAX_MIN,
    Contention.PIECEWISE_LINEAR: layout.PIECEWISE,
}


def fill_contention(kind: NodeType, row: Any) -> None:
    """Write the contention model of a node type and its constants into a row of a table."""
    row["contention"], row["remote"] = _CONTENTION[kind.contention], 0.75 + 0.25 * kind.remote_access_penalty
    if kind.piecewise is not None:
        for constant in fields(kind.piecewise):
            row[constant.name] = getattr(kind.piecewise, constant.name)


def _type_row(kind: NodeType, row: Any) -> None:
    row["cores"], row["bandwidth"], row["sockets"] = kind.cores, kind.memory_bandwidth, kind.sockets
    fill_contention(kind, row)
    row["all_threads"] = kind.contending_threads is ContendingThreads.ALL
    row["per_job"] = kind.cpu_sharing is CpuSharing.PER_JOB
    row["queueing"], row["inflating"] = kind.queueing, len(kind.co_run_inflation) > 0
    if kind.contention is Contention.PIECEWISE_LINEAR and kind.piecewise is None:
        raise InvariantError(f"node type {kind.name}: piecewise-linear contention without constants")
    if (power := kind.power) is not None:
        socket = power.per_socket * kind.sockets
        row["watts_idle"] = power.idle + socket * power.idle_uncore
        row["watts_base"] = power.idle + socket
        slope = power.per_core if power.computing is None else (power.computing - power.idle) / kind.cores
        row["watts_slope"] = slope


def _is_simple(kind: NodeType) -> bool:
    """Return whether a node type allows the short forecast: nothing couples, and no arrival speeds up another job."""
    if kind.co_run_inflation or kind.cpu_sharing is CpuSharing.PER_JOB:
        return False
    equal = kind.contention is Contention.EQUAL_SHARE and kind.contending_threads is ContendingThreads.ALL
    return kind.contention is Contention.NONE or equal


@dataclass(frozen=True, slots=True)
class Template:
    """Tables that depend on the cluster alone; `names`: profile -> row in `inflation`, 0 for all that no pair names."""

    types: Array
    names: dict[str, int]
    inflation: Array
    nodes: Array
    domains: Array
    domain_nodes: Array
    simple: bool
    powered: bool
    split: int
    #: Those of profiles that were used on this cluster, by identity.
    profiles: dict[int, ProfileRows] = field(default_factory=dict)


class ProfileRows(NamedTuple):
    """Tables of a profile on the node types of a cluster."""

    profile: Profile  # kept, so that nothing else gets its identity
    threads: float
    groups: bytearray  # rows whose `phase_start` is left out
    phases: bytearray
    phased: bool


#: Profiles whose tables are kept for a cluster.
_MOST_PROFILES = 10_000


def template_of(cluster: Cluster) -> Template:
    """Return the cluster's template; it is built on first use and kept with the cluster."""
    cached: Template | None = cluster.__dict__.get("_template")
    if cached is not None:
        return cached
    types = np.zeros(len(cluster.types), layout.TYPE)
    for row, kind in zip(types, cluster.types, strict=True):
        _type_row(kind, row)
    types["speed"] = comparable_speeds(cluster.types)
    nodes = np.zeros(len(cluster.nodes), layout.NODE)
    type_index = {kind: i for i, kind in enumerate(cluster.types)}
    by_identity = {id(node.type): node.type for node in cluster.nodes}
    index = {identity: type_index[kind] for identity, kind in by_identity.items()}
    nodes["type"] = [index[id(node.type)] for node in cluster.nodes]
    nodes["limit"] = cluster.thread_limits
    nodes["memory"] = np.array([kind.memory for kind in cluster.types])[nodes["type"]]
    nodes["cap"] = math.inf
    nodes["head"] = nodes["tail"] = -1
    nodes["heap_pos"] = np.arange(len(nodes))
    members: dict[object, list[int]] = {}
    for i, node in enumerate(cluster.nodes):
        members.setdefault(i if node.memory_domain is None else node.memory_domain, []).append(i)
    domains = np.zeros(len(members), layout.DOMAIN)
    domain_nodes = np.array([i for group in members.values() for i in group], np.int64)
    domains["count"] = [len(group) for group in members.values()]
    domains["start"] = np.cumsum(domains["count"]) - domains["count"]
    nodes["domain"][domain_nodes] = np.repeat(np.arange(len(domains)), domains["count"])
    split = max([1, *(t.sockets for t in cluster.types if t.contention is Contention.PIECEWISE_LINEAR)])
    template = Template(
        types,
        *_inflation(cluster),
        nodes,
        domains,
        domain_nodes,
        simple=all(map(_is_simple, cluster.types)) and len(domains) == len(nodes),
        powered=all(kind.power is not None for kind in cluster.types),
        split=split,
    )
    cluster.__dict__["_template"] = template
    return template


def edges_of(workflow: Workflow, done: list[int]) -> tuple[Array, Array, Array]:
    """Return the successors of each job, and the numbers of successors and of predecessors of each.

    Edges from the jobs at the positions `done` are dropped. Raises InvalidJobError for an unknown dependency.
    """
    index, size = workflow.index, len(workflow.jobs)
    try:
        sources = np.array([index[name] for job in workflow.jobs for name in job.after], np.int64)
    except KeyError:
        _ = workflow.dag  # names the unknown job
        raise
    targets = np.repeat(np.arange(size), np.array([len(job.after) for job in workflow.jobs], np.int64))
    if done:
        keep = ~np.isin(sources, done)
        sources, targets = sources[keep], targets[keep]
    successors = targets[np.argsort(sources, kind="stable")]
    return successors, np.bincount(sources, minlength=size), np.bincount(targets, minlength=size)


def _inflation(cluster: Cluster) -> tuple[dict[str, int], Array]:
    """Return the profiles of measured pairs, numbered from 1, and the factors [types * (names + 1), names + 1]."""
    pairs = [(t, pair) for t, kind in enumerate(cluster.types) for pair in kind.co_run_inflation]
    if not pairs:
        return {}, _NO_INFLATION
    names = dict.fromkeys(name for _, pair in pairs for name in (pair.job, pair.neighbour))
    rows = {name: i for i, name in enumerate(names, 1)}
    factors = np.ones((len(cluster.types) * (len(rows) + 1), len(rows) + 1))
    for t, pair in pairs:
        if not 1.0 <= pair.factor < math.inf:
            raise InvariantError(
                f"co-run inflation of {pair.job!r} next to {pair.neighbour!r} is {pair.factor:g}, below 1"
            )
        factors[t * (len(rows) + 1) + rows[pair.job], rows[pair.neighbour]] = pair.factor
    return rows, factors


#: These write one row of a table; for single rows, NumPy takes ten times as long.
_GROUP, _PHASE = Struct("=dqq").pack, Struct("=4d").pack


def _profile_rows(profile: Profile, cluster: Cluster) -> ProfileRows:
    origin, kinds = measured_type(profile, cluster), cluster.types
    groups, phases, phased = bytearray(), bytearray(), False
    for group in profile.groups:
        per_type = [group_phases(group, origin, kind) for kind in kinds]
        count = len(per_type[0])
        groups += _GROUP(group.count, 0, count)
        phased = phased or count > 1
        for phase in range(count):
            for rows in per_type:
                phases += _PHASE(*rows[phase], 0.0)
    return ProfileRows(profile, float(profile.threads), groups, phases, phased)


class Shapes:
    """Distinct job shapes (classes), their groups and phases.

    Profiles are distinguished by identity: readers make equal profiles one object, and a second copy only costs memory.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self._template = cluster, template_of(cluster)
        self.seen: dict[tuple[int, int, float, bool, frozenset[str] | None], int] = {}
        self.classes: list[tuple[float, float, float, int, int, int, int, int, int]] = []
        self._rows: list[ProfileRows] = []
        self._groups = 0
        self.fit: dict[tuple[float, float, int, int], int] = {}
        self.places: dict[frozenset[str], int] = {}
        self.queue_of: list[int] = []
        self.phased = False

    def class_of(self, job: Job) -> int:
        """Return the index of the job's class. O(1) for a shape seen before."""
        key = (id(job.profile), job.nodes, job.memory, job.wait is PeerWait.SPIN, job.allowed)
        if (index := self.seen.get(key)) is None:
            index = self.seen[key] = self._add(job)
        return index

    def _add(self, job: Job) -> int:
        profile, template = job.profile, self._template
        if (rows := template.profiles.get(id(profile))) is None:
            rows = _profile_rows(profile, self.cluster)
            if len(template.profiles) >= _MOST_PROFILES:
                template.profiles.clear()
            template.profiles[id(profile)] = rows
        threads, start, count = rows.threads, self._groups, len(profile.groups)
        memory = max(job.memory, profile.memory)
        name = template.names.get(profile.name, 0) if template.names else 0
        places = -1 if job.allowed is None else self.places.setdefault(job.allowed, len(self.places))
        self.classes.append((threads, memory, 1.0, job.nodes, start, count, job.wait is PeerWait.SPIN, name, places))
        self.queue_of.append(self.fit.setdefault((threads, memory, job.nodes, places), len(self.fit)))
        self._rows.append(rows)
        self._groups, self.phased = start + count, self.phased or rows.phased
        return len(self.classes) - 1

    def tables(self) -> dict[str, Array]:
        """Return the tables of the classes, their groups and phases."""
        groups = np.frombuffer(bytearray().join([rows.groups for rows in self._rows]), layout.GROUP)
        phases = np.frombuffer(bytearray().join([rows.phases for rows in self._rows]), layout.PHASE)
        counts = groups["phase_count"]
        groups["phase_start"] = counts.cumsum() - counts
        return {"classes": np.array(self.classes, layout.CLASS), "groups": groups, "phases": phases}

    def allowed(self) -> Array:
        """Return which nodes each list of nodes names, 0 or 1 [lists, nodes]."""
        names = [node.name for node in self.cluster.nodes] if self.places else ()
        rows = [[name in places for name in names] for places in self.places]
        return np.array(rows, np.int64).reshape(len(rows), len(self.cluster.nodes))


def new_world(
    kind: type[AnyWorld], template: Template, tables: Mapping[str, Array], class_of: Array, queue_of: Array, *,
    arrivals: int = 0, tasks: bool = False,
) -> AnyWorld:  # fmt: skip
    """Return the tables of jobs that wait for nothing, before anything runs. O(nodes + jobs).

    Args:
        kind: of the tables.
        template: of the cluster.
        tables: what the state does not hold: classes, groups, phases, successors, edges, and what else `kind` has.
        class_of: class of each job [jobs].
        queue_of: queue of each job [jobs].
        arrivals: number of jobs that are submitted later.
        tasks: each of the nodes of a job is that of a task that ends by itself.
    """
    size, nodes, classes = len(class_of), len(template.nodes), tables["classes"]
    slots, strands = classes["nodes"][class_of], classes["group_count"][class_of] * template.split
    parts, strands = strands * slots, slots if tasks else strands
    queues = max(int(queue_of.max(initial=-1)) + 1, nodes)
    of_tasks = {"taken": (int(template.nodes["limit"].sum()),), "task_core": (int(slots.sum()),)} if tasks else {}
    world = kind(
        {
            **tables, "types": template.types, "domain_nodes": template.domain_nodes, "inflation": template.inflation,
            "isolated": np.zeros((len(classes), len(template.types))),
        },
        {
            "nodes": (nodes,), "domains": (len(template.domains),), "jobs": (size,), "arrivals": (arrivals,),
            "strands": (int(strands.sum()),), "parts": (int(parts.sum()),), "placed": (int(slots.sum()),),
            "ended": (size,), "queues": (queues,), "queued": (size,), "queued_key": (size,),
            **{name: empty for name, empty in layout.NO_SPECIAL.items() if name not in tables},
            **dict.fromkeys(("heap", "heap_time", "versions", "bounds"), (nodes,)), **of_tasks,
        },
    )  # fmt: skip
    world.nodes[:], world.domains[:], world.heap[:] = template.nodes, template.domains, np.arange(nodes)
    world.placed[:], world.bounds[:], world.heap_time[:] = -1, -math.inf, math.inf
    jobs, sizes = world.jobs, np.bincount(queue_of, minlength=queues)
    jobs[:] = NEW_JOB
    jobs["cls"], jobs["queue"] = class_of, queue_of
    jobs["strand0"], jobs["part0"] = np.cumsum(strands) - strands, np.cumsum(parts) - parts
    jobs["place0"], world.queues["start"] = np.cumsum(slots) - slots, np.cumsum(sizes) - sizes
    count = world.count
    count["powered"], count["split"], count["tasks"] = template.powered, template.split, tasks
    return world


def with_backfilling(
    world: AnyWorld, cores: Array, asked: Array, rank: Array, share: float = math.inf, **fixed: Array
) -> AnyWorld:
    """Return a copy of the tables with those of EASY backfilling and strict order, see `kernels.mapping.backfilling`.

    O(nodes + jobs).

    Args:
        world: the tables, before anything runs.
        cores: cores that a queue policy gives out on each node [nodes].
        asked: for how long each job is expected to run, seconds [jobs].
        rank: place of each job in the queue, a permutation [jobs].
        share: the largest factor by which jobs may slow each other down.
        fixed: tables of the state that replace those of `world`.
    """
    nodes, size = len(world.nodes), len(world.jobs)
    leaves, levels, blocks = 1 << (nodes - 1).bit_length(), tree_levels(max(size, 1)), size // layout.END_ROWS * 2 + 2
    shapes = world.shapes | {
        "tree": (2 * leaves,), "late_tree": (2 * leaves,), "least": (levels[-1],), "blocks": (blocks,),
        "ends": (blocks * layout.END_ROWS,), "later": (nodes,), "candidates": (2 * nodes,),
        "candidate_bits": (-(-nodes // 64),), "unlisted": (size,), "changed": (nodes,), "held": (2 * nodes,),
        "queues": (0,),
    }  # fmt: skip
    speeds = world.types["speed"][world.nodes["type"]]
    ranked = np.argsort(-speeds, kind="stable")
    grades = np.unique(-speeds[ranked], return_inverse=True)[1].astype(np.int64)
    fixed |= {"levels": np.array(levels), "ranked": ranked, "grades": grades}
    tables = type(world)(world.fixed | fixed, {name: shape for name, shape in shapes.items() if name not in fixed})
    for name in world.shapes.keys() - layout.NO_SPECIAL.keys() - _UNUSED:
        getattr(tables, name)[...] = getattr(world, name)
    tables.nodes["limit"], tables.clock["share"] = cores, share
    tables.jobs["queue"], tables.jobs["asked"], tables.jobs["key"] = 0, asked, rank
    tables.queued[rank] = np.arange(size)
    tables.later["rank"][ranked] = np.arange(nodes)
    set_free(tables, cores)
    tables.least["size"], tables.least["wall"], tables.later["enough"] = NO_JOB, math.inf, math.inf
    tables.blocks["first"] = layout.END_ROWS * np.arange(blocks)
    return tables


def set_free(world: World, cores: Array) -> None:
    """Write the free cores of each node, 0 for none or less, into the trees of backfilling. O(nodes)."""
    tree, leaves = world.tree, len(world.tree) // 2
    level = tree[leaves:]
    level[: len(cores)] = cores[world.ranked].clip(0)
    while leaves > 1:
        leaves //= 2
        np.maximum(level[::2], level[1::2], out=tree[leaves : 2 * leaves])
        level = tree[leaves : 2 * leaves]
    world.late_tree[:] = tree
    world.count["free_cores"] = cores.clip(0).sum()


def scratch_for(world: World, running: int | None = None) -> Scratch:
    """Return the working space for one world.

    Args:
        world: the tables.
        running: most parts of running jobs at one time; None = all that there are.
    """
    split = int(world.count["split"])
    groups = int(world.classes["group_count"].max(initial=1)) * split
    nodes = len(world.nodes)
    widest = int(world.classes["nodes"].max(initial=1))
    most = len(world.parts) if running is None else min(running, len(world.parts))
    parts, strands = most + groups * widest, min(most, len(world.strands)) + groups
    rows = min(len(world.classes), 16)
    domains, jobs = len(world.domains), len(world.jobs)
    shares = min(most, jobs) + 1 + groups
    return Scratch({}, {
        "domains": (domains,), "nodes": (nodes,), "strands": (strands,), "parts": (parts,),
        "segments": (shares,), "wanted": (shares,), "sockets": (split,), "numbers": (domains + 1,),
        "chosen": (nodes + 2,), "touched": (nodes,), "values": (nodes,), "started": (jobs,),
        **dict.fromkeys(("score", "score_version", "score_exact"), (rows, nodes)),
        **dict.fromkeys(("row_class", "row_time"), (rows,)),
        **dict.fromkeys(("heads", "head_key", "head_place"), (len(world.queues),)),
        "keys": (jobs,), "wait_for": (jobs,), "caps": (nodes,),
        "places": (max(len(world.placed), nodes),), **dict.fromkeys(layout.SIMPLE, (parts,)),
    })  # fmt: skip
