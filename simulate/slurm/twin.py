"""The twin: a site replayed under Slurm's own rules.

Rule: the same site, phases and seed give the same starts. The record of what really happened is not looked at, but for
run times and for what people did: cancellations, releases, nodes that were drained.
Complexity: that of the passes, see `kernels/slurm/`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import mean
from typing import Any

import numpy as np

from ..arrays import Array
from ..kernels.object_cache import load
from ..kernels.slurm.tables import BY_BACKFILL, BY_MAIN, CANCEL, Slurm
from .job_columns import SiteJobs
from .ordered_jobs import OrderedJobs
from .site import Site
from .site_tables import Phases, completed, grown, site_block
from .start_columns import SiteStart as SiteStart
from .start_columns import SiteStarts

#: Requests of the kernel.
ADVANCE, MAIN, FULL_MAIN, BACKFILL, REPEAT = range(5)
#: The period in which jobs are submitted or begin is replayed in so many parts; afterwards a part is a day.
_PARTS, _DAY_S = 200, 86_400.0
#: Days for which nothing may run, and jobs wait, until no job is expected to start any more: without limits of minutes,
#: and with such limits, below which usage falls as it decays.
_IDLE_DAYS, _DECAY_DAYS = 1, 31
#: Days after the last submission for which a job may wait for its begin time, the end of its hold, or nodes that come
#: back, or may run; longer is for ever.
_LONGEST_WAIT_DAYS = 400


@dataclass(frozen=True, slots=True)
class SiteReplay:
    """Result of a replay of a site: its starts in order, and of each job whether pilotfish released it for others."""

    starts: Sequence[SiteStart]
    released: Array | None = None


def replay_site(
    site: Site, seed: int = 0, phases: Phases | None = None, handed: OrderedJobs | None = None
) -> SiteReplay:  # fmt: skip
    """Replay a site from its first submission until all its jobs have ended, or none is expected to start any more.

    Args:
        site: the site and its jobs.
        seed: of the phases of Slurm's clocks and of what is random later; at least 0.
        phases: of the clocks; None: drawn from the seed.
        handed: jobs that pilotfish holds and orders; None: none.

    Raises:
        ConfigError: a job has a time that is infinite, or not a number.
    """
    site = completed(site)
    block = site_block(site, phases or Phases.drawn(site, seed), seed=seed, handed=handed)
    block = played(block, site)
    released = None if handed is None else handed.jobs & (block.jobs["held_until"] == 0)
    return SiteReplay(SiteStarts.of_state(site, block), released)


def played(block: Slurm, site: Site, progress: Callable[[float], object] = float) -> Slurm:
    """Let time pass until all jobs have ended, or none is expected to start any more; return the state.

    Args:
        block: the state when the replay begins.
        site: the site, completed.
        progress: called with the time after each part, epoch seconds.
    """
    times, begins = block.agenda["time"], SiteJobs.of(site.jobs).begin
    first = float(times[0]) if len(times) else 0.0
    last = float(times[block.agenda["kind"] <= CANCEL].max(initial=first))
    waits = np.concatenate([begins[~np.isnan(begins)], block.jobs["held_until"]])
    last = float(waits[waits <= last + _LONGEST_WAIT_DAYS * _DAY_S].max(initial=last))
    latest = last + _LONGEST_WAIT_DAYS * _DAY_S
    last_change = times[times <= latest].max(initial=last)
    for part in range(1, _PARTS + 1 if len(block.agenda) else 1):
        time = math.floor(first + (last - first) * part / _PARTS)
        block = advanced(block, float(time))
        progress(time)
    idle_days, patience = 0, _DECAY_DAYS if _counts_minutes(site) else _IDLE_DAYS
    patience += math.ceil(int(block.after["delay"].max(initial=0)) / _DAY_S)
    while int(block.count["waiting"]) + int(block.count["running"]) and idle_days < patience and last < latest:
        last += _DAY_S
        idle_days = 0 if int(block.count["running"]) or last <= last_change else idle_days + 1
        block = advanced(block, last)
        progress(last)
    return block


def _counts_minutes(site: Site) -> bool:
    """Return whether a limit of the site counts minutes that jobs have run."""
    limits = [*(entry.limits for entry in site.qos), *(entry.limits for entry in site.associations)]
    return any(one.group_tres_minutes or one.group_wall_min is not None for one in limits)


def advanced(block: Slurm, until: float) -> Slurm:
    """Let time pass until `until`, epoch seconds; return the state, which is a larger copy if it needed more rows."""
    call = load("slurm.site_requests")
    call(block.address, ADVANCE, until)
    while block.count["full"]:
        block = grown(block)
        call(block.address, ADVANCE, until)
    return block


def followed(site: Site, until: float, phases: Phases | None = None) -> Slurm:
    """Return the state of a site at a time, when its jobs have started and ended as its record says.

    Args:
        site: the site, completed.
        until: epoch seconds; what the record has later does not happen.
        phases: of the clocks; only that of the calculation of priorities matters. None: 0.
    """
    block = site_block(site, phases or Phases(0.0, 0.0, 0.0, 0, 0.0), repeats=True)
    call, starts = load("slurm.site_requests"), block.history["start"]
    for row in np.argsort(starts, kind="stable").tolist():
        if starts[row] > until:
            break
        call(block.address, ADVANCE, float(starts[row]))
        call(block.address, REPEAT, float(row))
    call(block.address, ADVANCE, until)
    return block


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """A second in which passes began that really started jobs, and what one pass of each kind does in the twin then."""

    time: float
    real: tuple[SiteStart, ...]
    twin: tuple[SiteStart, ...]


def history_steps(site: Site, phases: Phases | None = None) -> Iterator[HistoryStep]:
    """Follow the record of a site; before each pass that started jobs, ask the twin what it would start.

    Args:
        site: the site; the runs of its jobs say when they started, on which nodes, and which pass it was.
        phases: of the clocks; only that of the calculation of priorities matters. None: drawn from the seed 0.
    """
    site = completed(site)
    block = site_block(site, phases or Phases.drawn(site, 0), repeats=True)
    call = load("slurm.site_requests")
    history = block.history
    order = sorted(range(len(history)), key=lambda row: (history["start"][row], row))
    begins = pass_begins(history, site.rules.scheduler.bf_interval)
    missing = Counter(begins.tolist())
    real, twin = defaultdict[int, list[SiteStart]](list), dict[int, tuple[SiteStart, ...]]()
    for time, rows in groupby(order, key=lambda row: int(history["start"][row])):
        entries = list(rows)
        call(block.address, ADVANCE, float(time))
        trial, first = block.copy(), int(block.count["starts"])
        by = {int(history["by"][row]) for row in entries if begins[row] == time}
        if by - {BY_BACKFILL}:
            call(trial.address, FULL_MAIN, float(time))
        if by - {BY_MAIN}:
            call(trial.address, BACKFILL, float(time))
        if by:
            twin[time] = starts_of(site, trial, first)
        places = {job: place for place, job in enumerate(trial.records["job"][: int(trial.count["records"])].tolist())}
        entries.sort(key=lambda row: (history["by"][row], places.get(int(history["job"][row]), -1)))
        for row in entries:
            call(block.address, REPEAT, float(row))
        for start, row in zip(starts_of(site, block, first), entries, strict=True):
            nodes = tuple(site.nodes[node].name for node in _nodes_of(block, history["nodes"][row]))
            real[begins[row]].append(replace(start, by=("main", "backfill", "")[history["by"][row]], nodes=nodes))
        for begin in sorted({int(begins[row]) for row in entries}):
            if len(real[begin]) == missing[begin]:
                yield HistoryStep(float(begin), tuple(real.pop(begin)), twin.pop(begin))


def _nodes_of(block: Slurm, row: int) -> list[int]:
    """Return the nodes of a set of `allowed_nodes`."""
    words = np.ascontiguousarray(block.allowed_nodes[row], "<u8")
    return list(map(int, np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))))


def pass_begins(history: Array, bf_interval: float) -> Array:
    """Return for each start of a record when its pass started the first job.

    A backfill pass may last for seconds, and the next one begins `bf_interval` after its end.
    """
    begins = history["start"].astype(np.int64)
    rows = np.flatnonzero(history["by"] == BY_BACKFILL)
    rows = rows[np.argsort(begins[rows], kind="stable")]
    follows = np.diff(begins[rows], prepend=-np.inf) < bf_interval - 1
    begins[rows] = np.maximum.accumulate(np.where(follows, 0, begins[rows]))
    return begins


def planned_starts(
    site: Site, times: Sequence[float], phases: Phases | None = None
) -> Iterator[tuple[float, dict[int, float]]]:  # fmt: skip
    """Follow the record of a site; at some times, say when the waiting jobs start, as squeue would.

    The plan at a time is that of the last backfill pass before it. Passes are `bf_interval` apart, counted from the
    last one that really started a job.

    Args:
        site: the site; the runs of its jobs say when they started, on which nodes, and which pass it was.
        times: seconds since the epoch, ascending.
        phases: as for `history_steps`.

    Yields:
        Each time, and job (row of `Site.jobs`) -> its planned start; jobs that the plan does not contain are left out.
    """
    site = completed(site)
    block = site_block(site, phases or Phases.drawn(site, 0), repeats=True)
    call, history, trial = load("slurm.site_requests"), block.history, block
    order = sorted(range(len(history)), key=lambda row: (history["start"][row], history["by"][row], row))
    passes = np.sort(history["start"][history["by"] == BY_BACKFILL])
    period, planned, place = site.rules.scheduler.bf_interval + mean(site.rules.pass_s), 0.0, 0

    def follow(until: float, *, is_pass: bool) -> None:
        nonlocal place
        while place < len(order):
            run = history[order[place]]
            if run["start"] > until or (is_pass and run["start"] == until and run["by"] == BY_BACKFILL):
                break
            call(block.address, ADVANCE, float(run["start"]))
            call(block.address, REPEAT, float(order[place]))
            place += 1
        call(block.address, ADVANCE, until)

    for time in times:
        rank = int(np.searchsorted(passes, time, "right"))
        began = float(math.floor(time - (time - int(passes[rank - 1])) % period if rank else time))
        if began > planned:
            follow(began, is_pass=True)
            trial, planned = block.copy(), began
            trial.count["plans"] = 1
            call(trial.address, BACKFILL, began)
        follow(float(time), is_pass=False)
        yield float(time), _shown_starts(block, trial, time)


def _shown_starts(block: Any, trial: Any, time: float) -> dict[int, float]:
    """Return the start of each waiting job that squeue shows: as a pass planned it, or its begin time.

    The tasks of an array that have not started are one job there, and have the start of the task that was planned last.
    """
    waiting = block.waiting[: int(block.count["waiting"])]
    arrays, expected = block.jobs["array"][waiting].tolist(), trial.jobs["expected"][waiting].tolist()
    last = dict[int, int]()
    for array, start in zip(arrays, expected, strict=True):
        if start > 0:
            last[array] = max(start, last.get(array, start))
    begins, starts = block.jobs["begin_at"][waiting].tolist(), dict[int, float]()
    for row, array, start, begin in zip(waiting.tolist(), arrays, expected, begins, strict=True):
        if shown := (last.get(array, 0) if array >= 0 else start) or (begin if begin > time else 0):
            starts[row] = float(shown)
    return starts


def starts_of(site: Site, block: Slurm, first: int = 0) -> tuple[SiteStart, ...]:
    """Return the starts of a state, from row `first` of its table on."""
    return tuple(SiteStarts.of_state(site, block, first))
