"""One profile from several runs of a program: pure arithmetic.

Rule: runs refine a profile and one odd run does not spoil it: medians over the latest good runs on one type of node
with the usual number of threads, without runs disturbed by others if there are undisturbed ones. Values that no run
measured (bandwidth, counters) stay as they were. Threads that are derived from CPU time differ from run to run; such
runs are alike if they had the same nodes and cores, and get one number of threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median, median_high
from typing import Any

from ..formats.text import count
from ..simulate.model.job import Phase, Profile, ThreadGroup
from .measurement import Measurement, deviation, inflation, interval, median_spread, relative_rates, with_bandwidth
from .stall_facts import typical

#: Number of the latest runs that count: programs change over the years.
LATEST = 25
#: Relative difference up to which two files are of the same size.
SAME_SIZE = 0.01
#: Fields of a profile that stay as they were where no run counted them.
_FALLBACK_FIELDS = ("instructions", "ipc", "power_watts")
#: Fields of a run that only counters or the user give, and how those of several runs become one.
COUNTED: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "bandwidth": median, "instructions": median, "ipc": median, "power_watts": median, "strain": typical,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of runs: how they vary, and how many of them are used; the spread is robust (1.4826 x MAD)."""

    runs: int
    used: int
    median_cpu_s: float
    spread_cpu_s: float


def on_one_machine(runs: Sequence[Measurement]) -> list[Measurement]:
    """Return the successful runs that have not aged, on the node type of the last of them.

    A run with an unknown exit code counts as successful.
    """
    good = [run for run in runs if not run.exit_code and not run.aged]
    return [run for run in good if (run.node_type, run.cpu_model) == (good[-1].node_type, good[-1].cpu_model)]


def undisturbed(runs: list[Measurement]) -> list[Measurement]:
    """Return the runs that others hardly disturbed; all, if there are no such runs."""
    return [run for run in runs if inflation(run.company or 0.0) == 1.0] or runs


def have_same_inputs(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Return whether two runs of one command read files of the same sizes, as far as both are known.

    A file that only one of them knows may be one that the command writes.

    Args:
        one: bytes by the place of the word, below 0 for a file that it wrote; without any that it read: no input is
            known, which is the same only as another such.
        other: of the other run.
    """
    outputs = {place for inputs in (one, other) for place, size in inputs.items() if size < 0.0}
    read, also = one.keys() - outputs, other.keys() - outputs
    both = read & also
    return bool(both or not (read or also)) and all(abs(one[k] - other[k]) <= SAME_SIZE * one[k] for k in both)


def usable(runs: Sequence[Measurement]) -> list[Measurement]:
    """Return the runs that a profile rests on, oldest first: of one machine, with inputs and threads as usual.

    If the last run names its command, runs of other commands do not count: a new measurement replaces another program.
    """
    good = on_one_machine(runs)
    good = [run for run in good if run.command in ("", good[-1].command) or not good[-1].command]
    good = [run for run in good if have_same_inputs(run.inputs, good[-1].inputs)][-LATEST:]
    shapes = Counter(_shape(run) for run in reversed(good))
    return undisturbed(_of_equal_threads([run for run in good if _shape(run) == shapes.most_common(1)[0][0]]))


def statistics(runs: Sequence[Measurement]) -> Statistics | None:
    """Return how the usable runs vary, None without any."""
    used = usable(runs)
    if not used:
        return None
    return Statistics(len(runs), len(used), *median_spread([run.cpu_s for run in used]))


def estimate(name: str, runs: Sequence[Measurement], known: Profile | None = None) -> Profile | None:
    """Return the profile of these runs, None if none was successful.

    Args:
        name: of the profile.
        runs: oldest first.
        known: the previous profile; its bandwidth, counters and power are kept where the runs have none.
    """
    used = usable(runs)
    if not used:
        return None
    counted = _counted(used)
    newest = counted.to_profile(name)
    groups = tuple(_group([run.groups[i] for run in used]) for i in range(len(used[-1].groups)))
    measured = counted.bandwidth
    rates = _known_bandwidths(groups, known) if measured is None else [measured] * len(groups)
    groups = tuple(with_bandwidth(group, rate) for group, rate in zip(groups, rates, strict=True))
    note, spread = newest.provenance.note, None
    if len(used) > 1 and (facts := statistics(runs)):
        note += f"; CPU seconds {facts.median_cpu_s:.4g} +- {facts.spread_cpu_s:.2g} over {count(facts.used, 'run')}"
        spread = deviation([run.isolated_s for run in used])
    within = interval([run.cpu_s for run in used], [run.company for run in used])
    memories = [run.memory_bytes for run in used if run.memory_bytes]
    transfers = [run.io_bytes for run in used if run.io_bytes is not None]
    return replace(
        newest,
        groups=groups,
        memory=max(memories, default=known.memory if known else 0.0),
        io_bytes=median(transfers) if transfers else None,
        **({name: getattr(newest, name) or getattr(known, name) for name in _FALLBACK_FIELDS} if known else {}),
        provenance=replace(newest.provenance, runs=len(used), note=note, interval=within, spread=spread),
    )


def _counted(used: Sequence[Measurement]) -> Measurement:
    """Return the newest run with medians of counted values, over the runs with the same source as the newest."""
    merged_values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, merge in COUNTED.items():
        having = [run for run in used if getattr(run, name) not in (None, {})]
        if having:
            source = having[-1].sources.get(name, "")
            merged_values[name] = merge([getattr(run, name) for run in having if run.sources.get(name, "") == source])
            sources |= {name: source} if source else {}
    return replace(used[-1], **merged_values, sources=sources)


def _shape(run: Measurement) -> tuple[int, ...] | str:
    """Return the threads of each group, or the request from which they are derived.

    Runs of one shape can be compared group by group.
    """
    return run.request or tuple(group.count for group in run.groups)


def _of_equal_threads(runs: list[Measurement]) -> list[Measurement]:
    """Return runs of one shape, with the median of their threads if these are derived."""
    if not runs or not runs[0].request:
        return runs
    threads = median_high(run.threads for run in runs)
    return [replace(run, groups=(equal_threads(run.cpu_s, run.wall_s, threads),)) for run in runs]


def equal_threads(cpu_s: float, wall_s: float, threads: int) -> ThreadGroup:
    """Return a run's CPU time as that of equal threads.

    Args:
        cpu_s: CPU seconds of the run on a node.
        wall_s: duration, seconds.
        threads: number of threads, 1 or more.
    """
    return ThreadGroup(threads, cpu_s / threads, min(1.0, cpu_s / threads / wall_s))


def _group(runs: Sequence[ThreadGroup]) -> ThreadGroup:
    return ThreadGroup(
        count=runs[0].count,
        service_demand=median(group.demand for group in runs),
        utilisation=median(group.utilisation for group in runs),
        utilisation_std=median(group.utilisation_std for group in runs),
        phases=_phases([group.phases for group in runs]),
    )


def _phases(runs: Sequence[tuple[Phase, ...]]) -> tuple[Phase, ...]:
    """Return medians over the runs with the usual number of phases, the latest number on a tie."""
    usual = Counter(len(phases) for phases in reversed(runs)).most_common(1)[0][0]
    usual_runs = [phases for phases in runs if len(phases) == usual]
    shares = [median(phase.share for phase in same) for same in zip(*usual_runs, strict=True)]
    levels = [median(phase.utilisation for phase in same) for same in zip(*usual_runs, strict=True)]
    rates = [relative_rates(phases) for phases in usual_runs if any(phase.bandwidth for phase in phases)]
    moved = [median(same) for same in zip(*rates, strict=True)] or [0.0] * len(shares)
    parts = zip(shares, levels, moved, strict=True)
    return tuple(Phase(share / sum(shares), level, rate) for share, level, rate in parts)


def _known_bandwidths(groups: tuple[ThreadGroup, ...], profile: Profile | None) -> list[float]:
    """Return the known bandwidths of these groups: by group if they are the same, else the mean over threads."""
    if profile is None:
        return [0.0] * len(groups)
    before = [group.mean_bandwidth for group in profile.groups]
    if [group.count for group in groups] != [group.count for group in profile.groups]:
        total = sum(rate * group.count for rate, group in zip(before, profile.groups, strict=True))
        before = [total / profile.threads] * len(groups)
    return before
