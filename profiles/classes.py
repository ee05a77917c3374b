"""The class of a job: cpu-bound, bandwidth-bound, latency-bound, sleeping, or mixed.

Rule: a class rests on known numbers and gives its reason. Without the job's bandwidth (computing and waiting for memory
then look alike) or the node's, the class of a busy job is unknown. The bounds are definitions, not measurements: a
thread at a share of 1 uses its core's part of the node's bandwidth, so a node full of such threads would slow them
down.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ..formats.text import percent
from ..simulate.model.cluster import Cluster, NodeType, group_phases, measured_type
from ..simulate.model.job import Profile

#: A thread below the first utilisation sleeps, unless the threads of its job together keep a core busy: they may
#: work in turns. From the second on, a thread is busy, and so is a core.
SLEEPS, BUSY = 0.5, 0.8
#: Shares of a core's part of the bandwidth: up to the first traffic is negligible, from the second on too high.
LITTLE, MUCH = 0.25, 1.0
#: A core with little traffic and fewer instructions per cycle than this waits for memory.
SLOW_IPC = 1.0
UNKNOWN = "unknown"
#: Stands for the known absence of traffic, bytes/s.
_NO_TRAFFIC = 1.0
#: Least share of a job's time of a part that counts.
LEAST = 0.1


class JobClass(StrEnum):
    """The resource on which a job spends its time."""

    CPU = "cpu-bound"
    BANDWIDTH = "bandwidth-bound"
    LATENCY = "latency-bound"
    SLEEPING = "sleeping"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Classification:
    """A class, None if unknown, and the reason in a few words."""

    kind: JobClass | None
    why: str
    guessed: bool = False  #: its profile is predicted

    def __str__(self) -> str:
        return f"{self.name}{'?' * self.guessed}: {self.why}"

    @property
    def name(self) -> str:
        """The class as a word, or `unknown`."""
        return str(self.kind or UNKNOWN)


def class_fields(classed: Classification) -> dict[str, str | None]:
    """Return a classification as fields of a JSON document; None = unknown."""
    return {"class": classed.kind and str(classed.kind), "class_why": classed.why}


def classify(profile: Profile, node: NodeType | None, origin: NodeType | None = None) -> Classification:
    """Return the class of a job on a type of node.

    Args:
        profile: of the job.
        node: the type; None = unknown.
        origin: the type on which it was measured; None = the profile is not converted.
    """
    if profile.provenance.source == "default":
        return Classification(None, "no profile")
    result = _whole(_parts(profile, node, origin))
    if result.kind is None or profile.provenance.source != "predicted":
        return result
    return Classification(result.kind, f"a guess from similar runs: {result.why}", guessed=True)


def _whole(parts: list[Classification]) -> Classification:
    kinds = list(dict.fromkeys(part.kind for part in parts))
    if len(kinds) == 1 or None in kinds:
        return parts[0] if len(kinds) == 1 else next(part for part in parts if part.kind is None)
    return Classification(JobClass.MIXED, "parts of it are " + ", ".join(map(str, kinds)))


def classify_on(profile: Profile, cluster: Cluster, nodes: Iterable[str] = ()) -> Classification:
    """Return the class on the type of the first of some nodes of a cluster; other load there does not change it.

    Args:
        profile: of the job.
        cluster: of the nodes.
        nodes: names; without a known one, the type on which the profile was measured is used.
    """
    origin = measured_type(profile, cluster)
    where = next((cluster.nodes[cluster.index[name]].type.nominal for name in nodes if name in cluster.index), None)
    return classify(profile, where or origin or cluster.types[0].nominal, origin)


def classify_there(profile: Profile) -> Classification:
    """Return the class on the node type where it was measured, if that type is shipped with pilotfish."""
    from . import library  # its files take longer to read than most commands need for all they do

    return classify(profile, library.node_types().get(profile.measured_on or ""))


def _parts(profile: Profile, node: NodeType | None, origin: NodeType | None) -> list[Classification]:
    """Return the class of each part (a phase of a group) that is long enough to count, the longest first."""
    parts: list[tuple[float, float, float]] = []
    for group in profile.groups:
        if node is not None:
            phases = group_phases(group, origin, node)
        else:
            measured_phases = [(p.share, p.utilisation, p.bandwidth) for p in group.phases]
            measured_phases = measured_phases or [(1.0, group.utilisation, group.bandwidth)]
            phases = [(share * group.isolated_time, used, rate) for share, used, rate in measured_phases]
        has_traffic = any(rate for _, _, rate in phases)  # a phase without traffic then moves nothing
        parts += [(group.count * work, used, rate or _NO_TRAFFIC * has_traffic) for work, used, rate in phases]
    parts.sort(reverse=True)
    total = sum(work for work, _, _ in parts)
    long = [part for part in parts if part[0] >= LEAST * total] or parts[:1]
    cores = sum(group.count * group.mean_utilisation for group in profile.groups)
    return [_part(used, rate, profile.ipc, node, in_turns=cores >= BUSY) for _, used, rate in long]


def _part(
    utilisation: float, bandwidth: float, ipc: float | None, node: NodeType | None, *, in_turns: bool
) -> Classification:
    if utilisation < SLEEPS and not in_turns:
        return Classification(JobClass.SLEEPING, f"it uses a core for {percent(utilisation)} of its time")
    if not bandwidth:
        return Classification(None, "memory bandwidth is not known")
    if node is None:
        return Classification(None, "the memory bandwidth of the node is not known")
    share = bandwidth * node.cores / node.memory_bandwidth
    why = f"a thread moves {share:.2g} times a core's share of the bandwidth of {node.name}"
    if share >= MUCH:
        return Classification(JobClass.BANDWIDTH, why)
    if utilisation < BUSY:
        return Classification(JobClass.MIXED, f"it uses a core for {percent(utilisation)} of its time, and {why}")
    if ipc is not None and ipc < SLOW_IPC:
        return Classification(JobClass.LATENCY, f"{ipc:.2g} instructions per cycle, and {why}")
    if share > LITTLE:
        return Classification(JobClass.MIXED, why)
    if ipc is None:
        return Classification(None, f"{why}; IPC is not known")
    return Classification(JobClass.CPU, f"{ipc:.2g} instructions per cycle, and {why}")
