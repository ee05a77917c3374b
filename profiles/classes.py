"""What kind of job a profile describes: cpu-bound, bandwidth-bound, latency-bound, sleeping, or mixed.

Rule: a class rests on what is known, and says why; where bandwidth (without which computing and waiting for memory look
alike) or the node's is unknown, the class of a busy job is unknown. The bounds are ours, not measured: a thread's share
of a node's bandwidth is that of one core, so that from 1 on a node full of such threads would slow them down.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ..simulate.job import Profile
from ..simulate.platform import Cluster, NodeType
from ..simulate.scaling import group_phases, measured_type
from . import library

#: Utilisation below which a thread sleeps, and from which on it is busy.
SLEEPS, BUSY = 0.5, 0.8
#: Shares of a core's part of the bandwidth: up to the first there is next to no traffic, from the second on too much.
LITTLE, MUCH = 0.25, 1.0
#: Instructions a cycle below which a core that moves few bytes waits for each of them.
SLOW_IPC = 1.0
UNKNOWN = "unknown"
_NOTHING = 1.0
#: Share of a job's time that a part must have to count.
LEAST = 0.1


class JobClass(StrEnum):
    """What a job spends its time on."""

    CPU = "cpu-bound"
    BANDWIDTH = "bandwidth-bound"
    LATENCY = "latency-bound"
    SLEEPING = "sleeping"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Classed:
    """A class, None where it is unknown, and why, in a few words."""

    kind: JobClass | None
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"

    @property
    def name(self) -> str:
        """The class in a word; `unknown`."""
        return str(self.kind or UNKNOWN)


def told(classed: Classed) -> dict[str, str | None]:
    """A class as answers and documents have it; None = unknown."""
    return {"class": classed.kind and str(classed.kind), "class_why": classed.why}


def classify(profile: Profile, node: NodeType | None, origin: NodeType | None = None) -> Classed:
    """The class of a job of that profile on a type of node, None = not known which.

    Args:
        origin: the type on which it was measured; None = it is taken as it is.
    """
    if profile.provenance.source == "default":
        return Classed(None, "nothing is known of it")
    found = list(dict.fromkeys(_parts(profile, node, origin)))
    if len(found) == 1:
        return found[0]
    unknown = next((part for part in found if part.kind is None), None)
    if unknown is not None:
        return unknown
    kinds = list(dict.fromkeys(str(part.kind) for part in found))
    return found[0] if len(kinds) == 1 else Classed(JobClass.MIXED, "parts of it are " + ", ".join(kinds))


def classify_on(profile: Profile, cluster: Cluster, nodes: Iterable[str] = ()) -> Classed:
    """The class on the first of some nodes of a cluster; without nodes on the type where it was measured."""
    origin = measured_type(profile, cluster)
    where = next((cluster.nodes[cluster.index[name]].type for name in nodes if name in cluster.index), None)
    return classify(profile, where or origin or cluster.types[0], origin)


def classify_there(profile: Profile) -> Classed:
    """The class on the type of node where it was measured, if that is shipped with pilotfish."""
    return classify(profile, library.node_types().get(profile.measured_on or ""))


def _parts(profile: Profile, node: NodeType | None, origin: NodeType | None) -> list[Classed]:
    """The class of each part (a phase of a group) that is long enough to count, the longest first."""
    parts: list[tuple[float, float, float]] = []
    for group in profile.groups:
        if node is not None:
            phases = group_phases(group, origin, node)
        else:
            own = [(p.share, p.utilisation, p.bandwidth) for p in group.phases]
            own = own or [(1.0, group.utilisation, group.bandwidth)]
            phases = [(share * group.isolated_time, used, rate) for share, used, rate in own]
        known = any(rate for _, _, rate in phases)  # then a phase without traffic is one that moves nothing
        parts += [(group.count * work, used, rate or _NOTHING * known) for work, used, rate in phases]
    parts.sort(reverse=True)
    total = sum(work for work, _, _ in parts)
    long = [part for part in parts if part[0] >= LEAST * total] or parts[:1]
    return [_part(used, rate, profile.ipc, node) for _, used, rate in long]


def _part(utilisation: float, bandwidth: float, ipc: float | None, node: NodeType | None) -> Classed:
    if utilisation < SLEEPS:
        return Classed(JobClass.SLEEPING, f"it wants a core for {utilisation:.0%} of its time")
    if not bandwidth:
        return Classed(None, "its memory bandwidth is not known")
    if node is None:
        return Classed(None, "the memory bandwidth of the node is not known")
    share = bandwidth * node.cores / node.memory_bandwidth
    why = f"a thread moves {share:.2g} times a core's share of the bandwidth of {node.name}"
    if share >= MUCH:
        return Classed(JobClass.BANDWIDTH, why)
    if utilisation < BUSY:
        return Classed(JobClass.MIXED, f"it wants a core for {utilisation:.0%} of its time, and {why}")
    if ipc is not None and ipc < SLOW_IPC:
        return Classed(JobClass.LATENCY, f"{ipc:.2g} instructions a cycle, and {why}")
    if share > LITTLE:
        return Classed(JobClass.MIXED, why)
    if ipc is None:
        return Classed(None, f"{why}; whether it computes or waits for memory, its IPC would tell")
    return Classed(JobClass.CPU, f"{ipc:.2g} instructions a cycle, and {why}")
