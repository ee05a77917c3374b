"""Slurm's backfill with TimeMin from predicted run times, in the twin: mean waits against those with time limits alone.

Rule: the same jobs, nodes and phases of the clocks; jobs are predicted when they are submitted, from those that ended
before. TimeMin is a soft limit, so that no job may end earlier; the column `cut` counts those that do. `longest` is the
change of the longest wait: jobs that run over their TimeMin delay the ones that backfill had planned behind them.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from pilotfish.benchmarks.show import heading, table
from pilotfish.benchmarks.trace_replay import made
from pilotfish.formats.replays.swf import read_swf
from pilotfish.profiles.prediction.online_run_times import OnlineRunTimes
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.replay.metrics import summarise
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.slurm.site import PriorityRules, SchedulerRules, Site, SiteNode, SitePartition, SiteRules
from pilotfish.simulate.slurm.site_policy import SlurmRules

#: Traces whose limits differ from their run times; nodes, cores of a node, and the first jobs that are replayed.
TRACES = (("metacentrum_1w_1361306800.swf.gz", 210, 16, 20_000), ("curie_1w_50027000.swf.gz", 5040, 16, 1500))
GENERATED_JOBS = 3000
SEEDS = 3


def rules(nodes: int, cores: int) -> SlurmRules:
    """Return a site of one partition, first come first served with backfill, whose TimeMin is soft.

    Args:
        nodes: number of nodes.
        cores: cores of each.
    """
    scheduler = SchedulerRules(
        time_min_as_soft_limit=True, bf_continue=True, bf_window_min=7 * 1440, bf_max_job_test=1000,
        default_queue_depth=500,
    )  # fmt: skip
    names = tuple(f"n{number}" for number in range(nodes))
    site = Site(
        SiteRules(version=(23, 11), scheduler=scheduler, priority=PriorityRules(age=1000.0)),
        tuple(SiteNode(name, cores, cores) for name in names), (SitePartition("all", names, is_default=True),), (),
    )  # fmt: skip
    return SlurmRules("slurm:one-partition", site)


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the mean waits of traces with and without predictions.

    Args:
        quick: one seed and a tenth of the jobs.
        traces: folder of TRACES.
    """
    heading("TimeMin from predicted run times in Slurm's backfill (the twin, soft limits)")
    workloads: list[tuple[str, Workload, int, int]] = [("generated", *made(GENERATED_JOBS), 1)]
    for name, nodes, cores, most in TRACES:
        if traces is not None and (traces / name).is_file():
            jobs = read_swf(traces / name)
            workloads.append((name.partition(".")[0], jobs.take(np.arange(len(jobs)) < most), nodes, cores))
    rows = []
    for name, jobs, nodes, cores in workloads:
        chosen = jobs.take(np.arange(len(jobs)) < len(jobs) // 10) if quick else jobs
        rows.append((name, f"{len(chosen):,}", *_compared(chosen, rules(nodes, cores), range(1 if quick else SEEDS))))
    columns = ("trace", "jobs", "limits", "TimeMin", "change", "slowdown", "with TimeMin", "longest", "cut", "took")
    table(columns, rows)


def _compared(jobs: Workload, policy: SlurmRules, seeds: range) -> tuple[str, ...]:
    """Return mean waits and bounded slowdowns of both sides over the seeds, and how many jobs end earlier."""
    began, waits, slowdowns, longest, cut = time.perf_counter(), np.zeros(2), np.zeros(2), np.zeros(2), 0
    for seed in seeds:
        base = replay(jobs, policy.machine, policy, seed=seed)
        early = replay(jobs, policy.machine, policy, seed=seed, run_times=OnlineRunTimes(jobs))
        for side, result in enumerate((base, early)):
            summary = summarise(result)
            waits[side] += (summary.mean_waiting_time or 0.0) / len(seeds)
            slowdowns[side] += (summary.mean_bounded_slowdown or 0.0) / len(seeds)
            longest[side] += np.nanmax(result.start_time - jobs.submit_time) / len(seeds)
        cut += int((early.finish_time - early.start_time < base.finish_time - base.start_time).sum())
    return (
        f"{waits[0]:,.0f} s", f"{waits[1]:,.0f} s", _change(waits), f"{slowdowns[0]:,.1f}", f"{slowdowns[1]:,.1f}",
        _change(longest), str(cut), f"{time.perf_counter() - began:.1f} s",
    )  # fmt: skip


def _change(sides: np.ndarray) -> str:
    return f"{100 * (sides[1] / sides[0] - 1):+.1f} %" if sides[0] else "-"
