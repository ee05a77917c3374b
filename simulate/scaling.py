"""A profile on another node type: what a thread group does there.

Rule (models section 1): service demand scales with the inverse of speed, idle time stays, bandwidth scales with
speed and is capped by the node. A profile on the type it was measured on is taken as it is.
"""

from __future__ import annotations

from .job import Profile, ThreadGroup
from .platform import Cluster, NodeType


def measured_type(profile: Profile, cluster: Cluster) -> NodeType | None:
    """Node type on which the profile was measured: `measured_on`, by default the first node's; None = not here."""
    if profile.measured_on is None:
        return cluster.types[0]
    return next((kind for kind in cluster.types if kind.name == profile.measured_on), None)


def group_phases(group: ThreadGroup, origin: NodeType | None, kind: NodeType) -> list[tuple[float, float, float]]:
    """(work: isolated seconds, utilisation, bandwidth: bytes/s) of each phase of a thread group on `kind`."""
    time = group.isolated_time
    phases = [(p.share * time, p.utilisation, p.bandwidth) for p in group.phases] or [
        (time, group.utilisation, group.bandwidth)
    ]
    if origin is None or origin is kind or origin == kind:
        return phases
    ratio = origin.relative_speed / kind.relative_speed
    scaled = []
    for work, utilisation, bandwidth in phases:
        busy, idle = work * utilisation * ratio, work * (1.0 - utilisation)
        scaled.append((busy + idle, busy / (busy + idle), min(bandwidth / ratio, kind.memory_bandwidth)))
    return scaled


def scaling_notes(profiles: list[Profile], cluster: Cluster) -> list[str]:
    """One sentence for each profile that is used on another type than it was measured on."""
    notes = []
    for profile in profiles:
        origin = measured_type(profile, cluster)
        name = profile.name or "(inline)"
        if origin is None:
            notes.append(
                f"profile {name}: measured on {profile.measured_on!r}, which this cluster does not have: not scaled"
            )
        else:
            others = [kind.name for kind in cluster.types if kind.relative_speed != origin.relative_speed]
            if others:
                notes.append(
                    f"profile {name}: measured on {origin.name}, scaled to {', '.join(others)} by speed"
                )
    return notes
