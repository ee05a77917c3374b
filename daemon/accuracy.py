"""How far forecasts were from what came true: by contention model, source of profiles, policy, class and profile.

Rule: only jobs that completed count, and what was assumed of a job of which nothing was known is no forecast of a model
or a policy: it is counted by itself, as profile `default`. Errors are those of `outcome.relative_error`.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..profiles.signature import signature
from ..simulate.job import DEFAULT_PROFILE, Job
from ..simulate.plan import LEVEL
from ..simulate.platform import Cluster
from .learned import rests_on_default
from .outcome import relative_error
from .render.text import clean

#: So many of the latest jobs are looked at.
LATEST = 10_000
#: Jobs that a trend needs.
TREND = 8
#: What the name of a group is where the journal does not tell.
NOT_TOLD = "not recorded"
#: Column of the CSV -> what it is of a job.
_CSV = {
    "job": "key",
    "model": "model",
    "policy": "policy",
    "profile": "profile",
    "source": "source",
    "class": "job_class",
    "end_time": "time",
    "forecast_s": "forecast_s",
    "actual_s": "actual_s",
    "error": "error",
    "shortest_s": "shortest_s",
    "longest_s": "longest_s",
    "inside": "inside",
}
KINDS = ("model", "source", "policy", "class", "profile")
#: Where profiles come from of which something was known: what guesses miss is no fault of a model.
SOURCES = ("measured", "predicted", "given")


@dataclass(frozen=True, slots=True)
class Foretold:
    """A job that completed: what it was foretold to run and what it ran, seconds; None = the journal does not tell.

    Args:
        time: when it ended, epoch seconds.
        source: where its profile came from, one of SOURCES; job_class: the class of the job (see `profiles.classes`).
        shortest_s, longest_s: between which it was foretold to run with a probability of LEVEL.
    """

    key: str
    time: float
    forecast_s: float
    actual_s: float
    profile: str | None = None
    model: str | None = None
    policy: str | None = None
    source: str | None = None
    job_class: str | None = None
    shortest_s: float | None = None
    longest_s: float | None = None

    @property
    def inside(self) -> bool | None:
        """Whether it ran as long as it was foretold to with a probability of LEVEL; None = that was not told."""
        if self.shortest_s is None or self.longest_s is None:
            return None
        return inside(self.actual_s, (self.shortest_s, self.longest_s))

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
        told, inside: of how many an interval was foretold, and the share of these that ended inside; None without any.
    """

    name: str
    jobs: int
    median: float
    high: float
    bias: float
    trend: float | None
    told: int = 0
    inside: float | None = None


def profile_of(job: Job) -> str:
    """The name under which a job's forecasts are judged: its profile's, else one made of its command.

    A profile that a user gave without a name is not what was learned of that command.
    """
    if rests_on_default(job):
        return DEFAULT_PROFILE.name
    return job.profile.name or f"{signature(job) or 'no command'} (given)"


def source_of(job: Job) -> str:
    """Where what is known of a job comes from, one of SOURCES, or `default`; others are what somebody gave."""
    source = job.profile.provenance.source
    return source if source in SOURCES or rests_on_default(job) else SOURCES[-1]


def inside(actual_s: float, within: tuple[float, float]) -> bool:
    """Whether a time is between two others, to the millisecond, which is as exact as starts and ends are seen."""
    return within[0] - 1e-3 <= actual_s <= within[1] + 1e-3


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
    told = [job.inside for job in jobs if job.inside is not None]
    return Accuracy(
        name,
        len(jobs),
        statistics.median(sizes),
        quantile(sizes, 0.9),
        statistics.median(errors),
        trend,
        len(told),
        sum(told) / len(told) if told else None,
    )


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
        groups.setdefault(getattr(job, _CSV[kind]) or NOT_TOLD, []).append(job)
    found = [accuracy(name, members) for name, members in groups.items()]
    return sorted(found, key=lambda group: (-group.jobs, group.name))


def to_csv(jobs: Sequence[Foretold]) -> str:
    """All jobs as CSV with a head line, times in seconds; what is not known is empty, names are made harmless."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV)
    for job in jobs:
        writer.writerow(_cell(getattr(job, name)) for name in _CSV.values())
    return out.getvalue()


def _cell(value: str | float | bool | None) -> str | float:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else clean(value) if isinstance(value, str) else value


def to_dict(jobs: Sequence[Foretold]) -> dict[str, Any]:
    """All of it as a mapping ready for JSON (schema pilotfish/accuracy/v1)."""
    whole = known(jobs)
    return {
        "schema": "pilotfish/accuracy/v1",
        "all": asdict(accuracy("all", whole)) if whole else None,
        **{kind: [asdict(group) for group in by(kind, jobs)] for kind in KINDS},
        "level": LEVEL,
        "jobs": [asdict(job) | {"error": job.error, "inside": job.inside} for job in jobs],
    }
