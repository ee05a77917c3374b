"""Replay a workload under Slurm's own rules at a site, see `simulate.slurm`.

Rule: a job that Slurm starts more than once counts with its last run. A job that has not started when nothing can
happen any more is rejected. The CPUs of a job are the lowest free numbers on its nodes.
Complexity: that of the passes; O(jobs log jobs + CPUs of all jobs) for the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...arrays import Array
from ...kernels.slurm.tables import Slurm
from ...model.workload import Workload
from ...slurm.site_tables import Phases, completed, site_block
from ...slurm.time_min import minutes_of_prediction
from ...slurm.trace_jobs import site_of_trace, trace_times
from ...slurm.twin import advanced, played
from ...world.known_run_times import RunTimePredictor
from ...world.replay_result import Replayed, merge_pieces, without_switches
from ..engines import Engine
from ..replay_case import ReplayCase
from ..requirements import refuse_machine


def run(case: ReplayCase, engine: Engine) -> Replayed:
    """Replay a case. Raises ConfigError if the machine is not one of nodes."""
    jobs, options = case.jobs, case.options
    refuse_machine(case.policy, case.machine)
    trace = site_of_trace(case.policy, jobs, case.machine)
    site = completed(trace.site)
    block = site_block(site, Phases.drawn(site, options.seed), seed=options.seed)
    began = options.clock()
    if not isinstance(options.run_times, str):
        block = _submitted_with_predictions(block, jobs, options.run_times, trace.epoch)
    block = played(block, site, lambda time: options.progress(time - trace.epoch))
    spent = options.clock() - began
    return _replayed(jobs, block, trace.epoch, case.machine.processors, spent)


def _submitted_with_predictions(block: Slurm, jobs: Workload, predictor: RunTimePredictor, epoch: int) -> Slurm:
    """Let time pass until all jobs are submitted, each with the TimeMin that is predicted then; return the state.

    O(submissions x running jobs), and the passes.

    Args:
        block: the state before the first submission.
        jobs: the trace.
        predictor: of their run times.
        epoch: the site's time at second 0 of the trace.
    """
    submit, run_time, _ = trace_times(jobs)
    times, first_rows = np.unique(submit, return_index=True)
    limits, seen_starts, running = block.jobs["limit"].tolist(), 0, np.empty(0, np.int64)
    for time, row, following in zip(
        times.tolist(), first_rows.tolist(), [*first_rows[1:].tolist(), len(jobs)], strict=True
    ):
        block = advanced(block, math.nextafter(time + epoch, 0.0))
        number = int(block.count["starts"])
        running = np.append(running, np.arange(seen_starts, number))
        seen_starts, ends = number, block.starts["end"][running]
        for start in running[ends >= 0][np.argsort(ends[ends >= 0], kind="stable")].tolist():
            entry = block.starts[start]
            if entry["end"] - entry["start"] >= run_time[entry["job"]]:
                predictor.ended(int(entry["job"]))
        running = running[ends < 0]
        for job in range(row, following):
            minutes = minutes_of_prediction(predictor.expected(job), limits[job])
            block.jobs["time_min"][job] = -1 if minutes is None else minutes
    return block


def _replayed(jobs: Workload, block: Any, epoch: int, machine: int, spent: float) -> Replayed:
    """Return the result of a replay in the time of its trace."""
    starts = block.starts[: int(block.count["starts"])]
    last = np.full(len(jobs), -1)
    last[starts["job"]] = np.arange(len(starts))  # of equal rows the last one counts
    rejected = last < 0
    rows = starts[last] if len(starts) else np.zeros(len(jobs), starts.dtype)
    start, finish = (np.where(rejected, math.nan, rows[name].astype(np.float64) - epoch) for name in ("start", "end"))
    _, run_time, limit = trace_times(jobs)
    is_cut = ~rejected & (finish - start < run_time)
    is_late = is_cut & (limit == 0)
    owner, first, until = _numbered(block, rows, ~rejected)
    times = np.concatenate([jobs.submit_time, start[~rejected], finish[~rejected]])
    return Replayed(
        jobs, machine, _eligible(jobs, finish), start, finish, rejected, rejected & (block.jobs["unmet"] > 0),
        (jobs.overruns & ~rejected) | is_late, *merge_pieces(owner, first, until, len(jobs)),
        simulation_time=spent, instants=len(np.unique(times)),
        killed=is_cut & ~is_late, held=np.bincount(owner, until - first + 1, len(jobs)).astype(np.int64),
        **without_switches(start),
    )  # fmt: skip


def _eligible(jobs: Workload, finish: Array) -> Array:
    """Return when each job could be submitted: at its time, or when the jobs that it depends on have ended."""
    submit = jobs.submit_time.astype(np.float64)
    if jobs.dependencies is not None:
        pairs = jobs.dependencies
        ends = finish[pairs.before] + np.ceil(pairs.delays / 60.0) * 60.0
        are_known = ~np.isnan(ends)
        np.maximum.at(submit, pairs.after[are_known], ends[are_known])
    return submit


def _numbered(block: Any, rows: Array, ran: Array) -> tuple[Array, Array, Array]:
    """Return intervals of CPUs: the job, the first and the last number of each.

    Args:
        block: the state after the replay.
        rows: the last start of each job, of the table `starts`.
        ran: mask of the jobs that have one.
    """
    cpus, pieces = block.nodes["cpus"], block.pieces
    first_number = (np.cumsum(cpus) - cpus).tolist()
    free = [(1 << number) - 1 for number in cpus.tolist()]
    nodes, held = pieces["node"].tolist(), (pieces["cores"] * block.nodes["threads"][pieces["node"]]).tolist()
    places = list(map(range, rows["piece0"].tolist(), (rows["piece0"] + rows["pieces"]).tolist()))
    holdings = dict[int, list[tuple[int, int]]]()
    intervals = list[tuple[int, int, int]]()
    for _, kind, job in _edges(rows, ran):
        if kind == _END:
            for node, mask in holdings.pop(job):
                free[node] |= mask
            continue
        masks = [(nodes[place], _lowest(free[nodes[place]], held[place])) for place in places[job]]
        if rows["end"][job] > rows["start"][job]:
            holdings[job] = masks
        for node, mask in masks:
            free[node] &= ~mask if job in holdings else -1
            base = first_number[node]
            intervals += ((job, base + low, base + high) for low, high in _runs(mask))
    owner, first, last = np.array(intervals or np.empty((0, 3)), np.int64).reshape(-1, 3).T
    return owner, first, last


_END, _BEGIN = range(2)


def _edges(rows: Array, ran: Array) -> list[tuple[int, int, int]]:
    """Return the begins of jobs, and the ends of those that take time, by time; of equal times ends come first."""
    times = zip(np.flatnonzero(ran).tolist(), rows["start"][ran].tolist(), rows["end"][ran].tolist(), strict=True)
    edges = list[tuple[int, int, int]]()
    for job, start, end in times:
        edges += [(start, _BEGIN, job)] + [(end, _END, job)] * (end > start)
    return sorted(edges)


def _lowest(free: int, number: int) -> int:
    """Return the lowest `number` bits of a set; all of them if it has no more."""
    if number >= free.bit_count():
        return free
    rest = free
    for _ in range(number):
        rest &= rest - 1
    return free & ~rest


def _runs(mask: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each run of bits."""
    while mask:
        low = (mask & -mask).bit_length() - 1
        shifted = mask >> low
        width = (~shifted & (shifted + 1)).bit_length() - 1
        yield low, low + width - 1
        mask &= ~(((1 << width) - 1) << low)
