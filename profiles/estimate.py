"""From several runs of a program to one profile: pure arithmetic.

Rule: runs sharpen a profile and one odd run does not spoil it: medians over the latest good runs on one
kind of node that show the usual number of threads, without those made in company where there are others. What no
run measured (bandwidth, counters) stays as it was known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, pstdev

from ..simulate.job import Phase, Profile, ThreadGroup
from .company import MAD_TO_SIGMA, deviation, inflation, interval
from .measurement import Measurement, as_known, rates
from .strain import typical

#: So many of the latest runs count: a program changes over the years.
LATEST = 25
#: What of a run only counters tell, or the user.
COUNTED = ("bandwidth", "instructions", "ipc", "power_watts")


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
    usual = [run for run in good if _shape(run) == shapes.most_common(1)[0][0]]
    return [run for run in usual if inflation(run.company or 0.0) == 1.0] or usual


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
    counted = _counted(used)
    newest = counted.to_profile(name)
    groups = tuple(_group([run.groups[i] for run in used]) for i in range(len(used[-1].groups)))
    measured = counted.bandwidth
    rates = _known_bandwidths(groups, known) if measured is None else [measured] * len(groups)
    groups = tuple(as_known(group, rate) for group, rate in zip(groups, rates, strict=True))
    facts = statistics(runs)
    assert facts is not None
    note = newest.provenance.note
    if facts.used > 1:
        note += f"; CPU seconds {facts.median_cpu_s:.4g} +- {facts.spread_cpu_s:.2g} over {facts.used} runs"
    within = interval([run.cpu_s for run in used], [run.company for run in used])
    spread = deviation([run.isolated_s for run in used]) if len(used) > 1 else None
    memories = [run.memory_bytes for run in used if run.memory_bytes]
    transfers = [run.io_bytes for run in used if run.io_bytes is not None]
    return replace(
        newest,
        groups=groups,
        memory=max(memories, default=known.memory if known else 0.0),
        io_bytes=median(transfers) if transfers else None,
        instructions=newest.instructions if known is None else newest.instructions or known.instructions,
        ipc=newest.ipc if known is None else newest.ipc or known.ipc,
        power_watts=newest.power_watts if known is None else newest.power_watts or known.power_watts,
        provenance=replace(newest.provenance, runs=facts.used, note=note, interval=within, spread=spread),
    )


def _counted(used: Sequence[Measurement]) -> Measurement:
    """The newest run, with medians of what was counted: over runs that have it from the newest one's source."""
    merged = used[-1]
    sources: dict[str, str] = {}
    for name in COUNTED:
        having = [run for run in used if getattr(run, name) is not None]
        if having:
            source = having[-1].sources.get(name)
            same = [getattr(run, name) for run in having if run.sources.get(name) == source]
            merged = replace(merged, **{name: median(same)})
            sources |= {name: source} if source else {}
    held_up = [run for run in used if run.strain]
    if held_up:
        source = held_up[-1].sources.get("strain", "")
        same_source = [run.strain for run in held_up if run.sources.get("strain", "") == source]
        merged = replace(merged, strain=typical(same_source))
        sources |= {"strain": source} if source else {}
    return replace(merged, sources=sources)


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
        phases=_phases([group.phases for group in runs]),
    )


def _phases(runs: Sequence[tuple[Phase, ...]]) -> tuple[Phase, ...]:
    """Medians over the runs that show the usual number of phases, the latest number where several are usual."""
    usual = Counter(len(phases) for phases in reversed(runs)).most_common(1)[0][0]
    alike = [phases for phases in runs if len(phases) == usual]
    shares = [median(phase.share for phase in same) for same in zip(*alike, strict=True)]
    levels = [median(phase.utilisation for phase in same) for same in zip(*alike, strict=True)]
    seen = [rates(phases) for phases in alike if any(phase.bandwidth for phase in phases)]
    moved = [median(same) for same in zip(*seen, strict=True)] or [0.0] * len(shares)
    parts = zip(shares, levels, moved, strict=True)
    return tuple(Phase(share / sum(shares), level, rate) for share, level, rate in parts)


def _known_bandwidths(groups: tuple[ThreadGroup, ...], known: Profile | None) -> list[float]:
    """Known bandwidths of these groups: by group where they are the same, else their mean over threads."""
    if known is None:
        return [0.0] * len(groups)
    before = [group.mean_bandwidth for group in known.groups]
    if [group.count for group in groups] != [group.count for group in known.groups]:
        total = sum(rate * group.count for rate, group in zip(before, known.groups, strict=True))
        before = [total / known.threads] * len(groups)
    return before
