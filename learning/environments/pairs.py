"""Environment A: each decision starts one waiting job on one node of a heterogeneous machine.

Rule: an observation holds what a scheduler knows at that time: no later submission, no run time, nothing of the trace
as a whole. The mask allows exactly the pairs that can start now, and it allows one at each decision. What a copy plays
depends on the seed, its number and its actions, and not on the number of copies.
Source: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), chapter 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...simulate.arrays import Array
from ...simulate.errors import ConfigError
from ...simulate.kernels.pairs.tables import (
    ANY,
    BSLD,
    DRAWN,
    JOB_COLUMNS,
    KEYED,
    LARGEST,
    NODE_COLUMNS,
    PAIR_NODE,
    SLD,
    TRACE_JOB,
    WAIT,
    PairCopies,
)  # fmt: skip
from ...simulate.model.cluster import Cluster
from ...simulate.model.workload import Workload
from ...simulate.wording import count
from .episodes import Episodes, check_numbers
from .trace_copies import TraceCopies

KERNEL = "pairs.placements"
#: What a job's start costs, by name: its bounded slowdown, its slowdown, its wait in seconds.
OBJECTIVES = {"bsld": BSLD, "sld": SLD, "wait": WAIT}
#: When a decision is due, by name. Rules that choose the job leave the policy the node.
DUE = {"any": ANY, "largest": LARGEST, "first": KEYED, "shortest": KEYED, "smallest": KEYED, "random": DRAWN}
#: Requested time that is seen as 1, and wait that is seen as 1, seconds.
LONGEST_S, PATIENCE_S = 90 * 86_400.0, 43_200.0
#: What is seen is at most this.
_MOST = 1.0 - 1e-5


@dataclass(frozen=True, slots=True)
class PairNode:
    """A node.

    Args:
        processors: 1 or more.
        speed: above 0, in any unit; run times in a trace are those of the slowest node.
    """

    processors: int
    speed: float


@dataclass(frozen=True, slots=True)
class PairOptions:
    """The options of the environment.

    Args:
        objective: a key of OBJECTIVES.
        due: a key of DUE: a decision is due when any visible job fits; when the largest waiting job does; or when the
            first, shortest, smallest or a random waiting job does, which has to be next.
        episode: jobs of an episode.
        warm: how many of them come before those that count.
        rows: jobs that a policy sees, the first in the order of submission.
        longest: requested time that is seen as 1, seconds.
        logarithmic: requested times are seen on a logarithmic scale.
    """

    objective: str = "bsld"
    due: str = "any"
    episode: int = 256
    warm: int = 0
    rows: int = 128
    longest: float = LONGEST_S
    logarithmic: bool = True

    def __post_init__(self) -> None:
        for key, names in (("objective", OBJECTIVES), ("due", DUE)):
            if getattr(self, key) not in names:
                raise ConfigError("environment", key, repr(getattr(self, key)), ", ".join(names))
        for key, least in (("episode", 1), ("warm", 0), ("rows", 1), ("longest", 1.0)):
            if not getattr(self, key) >= least:
                raise ConfigError("environment", key, repr(getattr(self, key)), f"{least} or more")
        if self.warm >= self.episode:
            raise ConfigError("environment", "warm", repr(self.warm), "less than the jobs of an episode")


class PairEnvironment(TraceCopies):
    """Copies of the world; each step carries out one action in each of them.

    The arrays are views of the engine's memory, and each step changes them. After the step that ends an episode they
    show the next one, which has begun.

    Args:
        traces: at least one; an episode is so many consecutive jobs of one of them, on an empty machine.
        nodes: at least one.
        options: of the environment.
        copies: 1 or more.
        seed: 0 or more; draws the episodes.
        starts: first jobs of the episodes that are drawn, counted through all traces; None: any that is possible.

    Attributes:
        jobs: float32 [copies, rows, 4], in [0, 1]: wait, requested time, size, whether it fits a node now. A row
            without a job is 0, 1, 1, 0.
        nodes: float32 [copies, nodes, 3], in [0, 1]: processors, share of them that is free, speed.
        mask: bool [copies, rows x nodes]: whether job `action // nodes` can start on node `action % nodes`.
        reward: float64 [copies]: minus the objective of the job that started / number of jobs that count.
        done: bool [copies]: whether the step ended an episode.
        last_nodes: as `nodes`, at the end of each copy's last episode; it has no jobs then.
        observations, last_observations: `jobs` and `nodes`, now and at the end of each copy's last episode, by name.
        first_actions: actions that the mask allows at the first decision of every episode.
        last_return: float64 [copies]: sum of the rewards of the last episode, minus the mean of the objective.

    Raises:
        ConfigError: a trace has a job that no node has room for or too few jobs, or an option is wrong.
    """

    def __init__(
        self, traces: Sequence[Workload], nodes: Sequence[PairNode], options: PairOptions = PairOptions(), *,
        copies: int = 1, seed: int = 0, starts: Array | None = None,
    ) -> None:  # fmt: skip
        check_numbers(copies=copies, nodes=len(nodes), traces=len(traces))
        self.options, self.node_count = options, len(nodes)
        jobs, node_rows = _job_table(traces, nodes, options), _node_table(nodes)
        per_job, seen_nodes = (copies, options.episode), (copies, len(nodes) * NODE_COLUMNS)
        world = PairCopies(
            {"jobs": jobs, "nodes": node_rows},
            {
                **dict.fromkeys(("copies", "upcoming", "draw", "action", "reward", "done", "last_total"), (copies,)),
                **dict.fromkeys(("queue", "heap_time", "heap_job", "place", "starts"), per_job),
                **dict.fromkeys(("seen_nodes", "last_nodes"), seen_nodes),
                "free": (copies, len(nodes)), "mask": (copies, options.rows * len(nodes)),
                "seen_jobs": (copies, options.rows * JOB_COLUMNS),
            },
        )  # fmt: skip
        super().__init__(KERNEL, world, Episodes(traces, options.episode, starts))
        settings = world.settings
        settings["patience"], settings["slowest"] = PATIENCE_S, node_rows["speed"].min()
        settings["episode"], settings["warm"], settings["rows"] = options.episode, options.warm, options.rows
        settings["due"], settings["objective"] = DUE[options.due], OBJECTIVES[options.objective]
        self.jobs = world.seen_jobs.reshape(copies, options.rows, JOB_COLUMNS)
        self.nodes = world.seen_nodes.reshape(copies, len(nodes), NODE_COLUMNS)
        self.last_nodes = world.last_nodes.reshape(self.nodes.shape)
        self.jobs[:] = 0.0, 1.0, 1.0, 0.0
        self.observations = {"jobs": self.jobs, "nodes": self.nodes}
        self.last_observations = {"jobs": self.jobs.copy(), "nodes": self.last_nodes}
        sizes = node_rows["processors"]
        self.first_actions: Array = np.flatnonzero(sizes == sizes.max())  # the first job waits in the first row
        self.seed(seed)

    def schedule(self, copy: int = 0) -> tuple[Array, Array]:
        """Return when each job of the present episode started, seconds, and on which node; nan, -1: it has not."""
        row = self._world.copies[copy]
        starts, places = self._world.starts[copy].copy(), self._world.place[copy].astype(np.int64)
        waiting = np.ones(len(starts), bool)
        waiting[: row["next"]] = False
        waiting[self._world.queue[copy, : row["queued"]]] = True
        starts[waiting], places[waiting] = np.nan, -1
        return starts, places

    def _draw(self) -> None:
        """Draw what a rule that chooses jobs at random needs."""
        if DUE[self.options.due] == DRAWN:
            self._world.draw[:] = [generator.random() for generator in self._episodes.generators]


def nodes_of(cluster: Cluster) -> tuple[PairNode, ...]:
    """Return the nodes of a cluster; one without a speed has the frequency of its type."""
    rates = [node.type.speed or node.type.frequency for node in cluster.nodes]
    return tuple(PairNode(node.type.cores, rate) for node, rate in zip(cluster.nodes, rates, strict=True))


def _job_table(traces: Sequence[Workload], nodes: Sequence[PairNode], options: PairOptions) -> Array:
    largest = max(node.processors for node in nodes)
    tables = list[Array]()
    for trace in traces:
        if trace.size.max(initial=0) > largest:
            problem = f"a job of {count(int(trace.size.max()), 'processor')}"
            raise ConfigError(trace.name, "", problem, f"at most those of a node, {largest}")
        if not (np.isfinite(trace.run_time).all() and np.isfinite(trace.walltime).all() and (trace.walltime > 0).all()):
            raise ConfigError(trace.name, "", "jobs without a run time or a requested time", "seconds, above 0")
        table = np.zeros(len(trace), TRACE_JOB)
        table["submit"], table["wall"], table["size"] = trace.submit_time, trace.walltime, trace.size
        table["run"] = np.minimum(trace.run_time, trace.walltime)
        table["key"] = {"shortest": trace.walltime, "smallest": trace.size}.get(options.due, 0.0)
        scale = np.log1p if options.logarithmic else np.asarray
        table["long"] = np.minimum(scale(trace.walltime) / scale(options.longest), _MOST)
        table["wide"] = np.minimum(trace.size / largest, _MOST)
        tables.append(table)
    return np.concatenate(tables)


def _node_table(nodes: Sequence[PairNode]) -> Array:
    for number, node in enumerate(nodes):
        if node.processors < 1 or not 0.0 < node.speed < np.inf:
            raise ConfigError("environment", f"node {number}", repr(node), "1 processor or more, a speed above 0")
    table = np.zeros(len(nodes), PAIR_NODE)
    table["processors"], table["speed"] = [node.processors for node in nodes], [node.speed for node in nodes]
    table["large"] = np.minimum(table["processors"] / table["processors"].max(), _MOST)
    table["fast"] = np.minimum(table["speed"] / table["speed"].max(), _MOST)
    return table
