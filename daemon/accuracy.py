"""How far forecasts were from what came true, by contention model, by policy, by class and by profile.

Rule: only jobs that completed count, and what was assumed of a job of which nothing was known is no forecast of a model
or a policy: it is counted by itself, as profile `default`. Errors are those of `outcome.relative_error`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..profiles.signature import signature
from ..simulate.job import DEFAULT_PROFILE, Job
from ..simulate.platform import Cluster
from .learned import rests_on_default
from .outcome import relative_error

#: So many of the latest jobs are looked at.
LATEST = 10_000
#: Jobs that a trend needs.
TREND = 8
#: What the name of a group is where the journal does not tell.
NOT_TOLD = "not recorded"
_FIELDS = {"class": "job_class"}
KINDS = ("model", "policy", "class", "profile")


@dataclass(frozen=True, slots=True)
class Foretold:
    """A job that completed: what it was foretold to run and what it ran, seconds; None = the journal does not tell.

    Args:
        time: when it ended, epoch seconds.
    """

    key: str
    time: float
    forecast_s: float
    actual_s: float
    profile: str | None = None
    model: str | None = None
    policy: str | None = None
    job_class: str | None = None

    @property
    def error(self) -> float:
        """(actual - forecast) / actual."""
        return relative_error(self.forecast_s, self.actual_s)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How well a group of jobs was foretold; ratios.

    Args:
        jobs: how many.
        median, high: the median and the 90 % quantile of the absolute errors.
        bias: the median of the errors: above 0 where jobs take longer than foretold.
        trend: the median absolute error of the later half of the jobs less that of the earlier half; None under TREND.
    """

    name: str
    jobs: int
    median: float
    high: float
    bias: float
    trend: float | None


def profile_of(job: Job) -> str:
    """The name under which a job's forecasts are judged: its profile's, else one made of its command.

    A profile that a user gave without a name is not what was learned of that command.
    """
    if rests_on_default(job):
        return DEFAULT_PROFILE.name
    return job.profile.name or f"{signature(job) or 'no command'} (given)"


def model_of(nodes: Iterable[str], cluster: Cluster) -> str:
    """The contention models of some nodes, `max-min` or `equal-share+max-min`; "" where no node is known."""
    found = (cluster.nodes[cluster.index[name]] for name in nodes if name in cluster.index)
    return "+".join(sorted({str(node.type.contention) for node in found}))


def accuracy(name: str, jobs: Sequence[Foretold]) -> Accuracy:
    """Of one group of jobs, at least one, the oldest first."""
    errors = [job.error for job in jobs]
    sizes = [abs(error) for error in errors]
    half, trend = len(sizes) // 2, None
    if len(sizes) >= TREND:
        trend = statistics.median(sizes[half:]) - statistics.median(sizes[:half])
    return Accuracy(name, len(jobs), statistics.median(sizes), quantile(sizes, 0.9), statistics.median(errors), trend)


def quantile(values: Sequence[float], share: float) -> float:
    """The least of the values that is not below a share (0, 1] of them."""
    return sorted(values)[math.ceil(round(share * len(values), 9)) - 1]


def known(jobs: Iterable[Foretold]) -> list[Foretold]:
    """The jobs of which something was known."""
    return [job for job in jobs if job.profile != DEFAULT_PROFILE.name]


def by(kind: str, jobs: Sequence[Foretold]) -> list[Accuracy]:
    """One group for each name of a kind (see KINDS), those with the most jobs first. O(jobs log jobs)."""
    groups: dict[str, list[Foretold]] = {}
    for job in jobs if kind == "profile" else known(jobs):
        groups.setdefault(getattr(job, _FIELDS.get(kind, kind)) or NOT_TOLD, []).append(job)
    found = [accuracy(name, members) for name, members in groups.items()]
    return sorted(found, key=lambda group: (-group.jobs, group.name))


def to_dict(jobs: Sequence[Foretold]) -> dict[str, Any]:
    """All of it as a mapping ready for JSON (schema pilotfish/accuracy/v1)."""
    whole = known(jobs)
    return {
        "schema": "pilotfish/accuracy/v1",
        "all": asdict(accuracy("all", whole)) if whole else None,
        **{kind: [asdict(group) for group in by(kind, jobs)] for kind in KINDS},
        "jobs": [asdict(job) | {"error": job.error} for job in jobs],
    }
