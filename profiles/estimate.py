"""From several runs of a program to one profile: pure arithmetic.

Rule: runs sharpen a profile and one odd run does not spoil it: medians over the latest good runs on one
kind of node that show the usual number of threads. What no run measured (bandwidth, counters) stays as it
was known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, pstdev

from ..simulate.job import Profile, Provenance, ThreadGroup
from .measurement import Measurement

#: So many of the latest runs count: a program changes over the years.
LATEST = 25
#: The standard deviation of a normal distribution by its median absolute deviation.
MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, slots=True)
class Statistics:
    """How runs scatter: CPU seconds of a run, its isolated time; `spread` is robust (1.4826 x MAD), seconds.

    Args:
        runs: how many were made; used: how many the profile rests on.
    """

    runs: int
    used: int
    mean_cpu_s: float
    median_cpu_s: float
    spread_cpu_s: float
    deviation_cpu_s: float
    median_isolated_s: float


def usable(runs: Sequence[Measurement]) -> list[Measurement]:
    """Return the runs that a profile rests on, oldest first: ended well, not aged, newest node type, usual shape.

    A run whose exit code is not known counts as one that ended well.
    """
    good = [run for run in runs if not run.exit_code and not run.aged]
    good = [run for run in good if (run.node_type, run.cpu_model) == (good[-1].node_type, good[-1].cpu_model)]
    good = good[-LATEST:]
    shapes = Counter(_shape(run) for run in reversed(good))
    return [run for run in good if _shape(run) == shapes.most_common(1)[0][0]]


def statistics(runs: Sequence[Measurement]) -> Statistics | None:
    """Return how the usable runs scatter, None if there are none."""
    used = usable(runs)
    if not used:
        return None
    cpu = [run.cpu_s for run in used]
    centre = median(cpu)
    return Statistics(
        runs=len(runs),
        used=len(used),
        mean_cpu_s=fmean(cpu),
        median_cpu_s=centre,
        spread_cpu_s=MAD_TO_SIGMA * median(abs(value - centre) for value in cpu),
        deviation_cpu_s=pstdev(cpu),
        median_isolated_s=median(run.isolated_s for run in used),
    )


def estimate(name: str, runs: Sequence[Measurement], known: Profile | None = None) -> Profile | None:
    """Return the profile that these runs make, None if no run ended well.

    Args:
        runs: oldest first.
        known: what was known before; its bandwidth, counters and power are kept where the runs have none.
    """
    used = usable(runs)
    if not used:
        return None
    newest = used[-1].to_profile(name)
    groups = tuple(_group([run.groups[i] for run in used]) for i in range(len(used[-1].groups)))
    bandwidths = [run.bandwidth for run in used if run.bandwidth is not None]
    if bandwidths:
        groups = tuple(replace(group, bandwidth=median(bandwidths)) for group in groups)
    elif known:
        groups = _keep_bandwidth(groups, known)
    facts = statistics(runs)
    assert facts is not None
    note = newest.provenance.note
    if facts.used > 1:
        note += f"; CPU seconds {facts.median_cpu_s:.4g} +- {facts.spread_cpu_s:.2g} over {facts.used} runs"
    memories = [run.memory_bytes for run in used if run.memory_bytes]
    transfers = [run.io_bytes for run in used if run.io_bytes is not None]
    return replace(
        newest,
        groups=groups,
        memory=max(memories, default=known.memory if known else 0.0),
        io_bytes=median(transfers) if transfers else None,
        instructions=known.instructions if known else None,
        ipc=known.ipc if known else None,
        power_watts=known.power_watts if known else None,
        provenance=Provenance("measured", used[-1].date, facts.used, used[-1].cpu_model or None, note),
    )


def _shape(run: Measurement) -> tuple[int, ...]:
    """Threads in each group: runs of one shape can be compared group by group."""
    return tuple(group.count for group in run.groups)


def _group(runs: Sequence[ThreadGroup]) -> ThreadGroup:
    """The same group in several runs: medians."""
    return ThreadGroup(
        count=runs[0].count,
        service_demand=median(group.demand for group in runs),
        utilisation=median(group.utilisation for group in runs),
        utilisation_std=median(group.utilisation_std for group in runs),
    )


def _keep_bandwidth(groups: tuple[ThreadGroup, ...], known: Profile) -> tuple[ThreadGroup, ...]:
    """Carry known bandwidths over: by group where the groups are the same, else their mean over threads."""
    before = [_bandwidth(group) for group in known.groups]
    if [group.count for group in groups] != [group.count for group in known.groups]:
        total = sum(rate * group.count for rate, group in zip(before, known.groups, strict=True))
        before = [total / known.threads] * len(groups)
    return tuple(replace(group, bandwidth=rate) for group, rate in zip(groups, before, strict=True))


def _bandwidth(group: ThreadGroup) -> float:
    """A group's bandwidth, the mean over its phases where it has some."""
    return sum(p.share * p.bandwidth for p in group.phases) if group.phases else group.bandwidth
