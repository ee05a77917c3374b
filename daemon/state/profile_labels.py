"""The profile of a job as it is shown and judged: its name, its source, and the class of the job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...profiles.classes import classify_on
from ...profiles.identity import signature
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import DEFAULT_PROFILE, Job


@dataclass(frozen=True, slots=True)
class ProfileLabel:
    """The profile with which a job was forecast: its name, its source, and the class of the job with its reason.

    `kind` is None if the class is not known.
    """

    profile: str
    source: str
    kind: str | None
    why: str


def has_default_profile(job: Job) -> bool:
    """Return whether the job has the default profile: its needs are unknown."""
    return job.profile.provenance.source == "default"


def profile_of(job: Job) -> str:
    """Return the name under which a job's forecasts are judged: its profile's, else one made from its command.

    A profile that a user gave without a name differs from the one learned from that command.
    """
    if has_default_profile(job):
        return DEFAULT_PROFILE.name
    return job.profile.name or f"{signature(job) or 'no command'} (given)"


def label_of(job: Job, cluster: Cluster, nodes: Iterable[str] = ()) -> ProfileLabel:
    """Return what users are shown of a job's profile.

    Args:
        job: the job.
        cluster: on which it is classified.
        nodes: where it is to run; (): not known.
    """
    classed = classify_on(job.profile, cluster, nodes)
    source = job.profile.provenance.source
    return ProfileLabel(profile_of(job), source, classed.kind and str(classed.kind), classed.why)
