"""Reproduce chapter 5 of Poquet's thesis (2017), and measure the speed of replays on a network.

Conservative backfilling with five allocations, for jobs that compute and communicate on 8 clusters of 16 hosts.

Rule: jobs, factors and machines are those of section 5.5; the trace is synthetic, and given traces are also measured.
The thesis states host links of 1.25e6 bytes/s, with which no job could end within its walltime for most factors; here
they have 1.25e8, as in the Grid'5000 cluster that it names. Makespans are relative to `basic` with the same jobs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pilotfish.benchmarks.show import heading, number, table
from pilotfish.formats.replays.swf import read_swf
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.generate.communication import Factors, JobSelection, communicating
from pilotfish.simulate.generate.models import lublin
from pilotfish.simulate.model.network import Link, Network, NetworkPlace, NetworkRoute
from pilotfish.simulate.model.programs import Even, ProgramBuilder
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import Conservative, Easy
from pilotfish.simulate.replay.replay import replay

PICK = JobSelection(300, 3600.0, 14400.0, 16)
VARIANTS = ("basic", "best-effort-contiguous", "best-effort-local", "contiguous", "local")
FLOPS, PORT, SWITCH, MAIN, LATENCY = 286.097e3, 1.25e8, 1.25e9, 1.25e9, 24e-9
#: For each cluster: relative speed of its hosts and bandwidth of its switch; table 5.1, in the order o1.
ALIKE = [(1.0, 1.0)] * 8
HIGHLY = [(1.0, 2.0)] * 3 + [(2.02, 4.0)] * 3 + [(2.94, 1.0)] * 2

#: Hosts, and jobs.
GROWTH = ((100, 10_000), (1_000, 10_000), (1_000, 100_000), (4_000, 10_000))


def network(clusters: list[tuple[float, float]], hosts: int = 16) -> Network:
    """Return a network of clusters, each behind its own switch, all behind a main switch.

    Args:
        clusters: relative speed of the hosts and bandwidth of the switch of each cluster.
        hosts: hosts per cluster.
    """
    switches = [Link(f"switch {i}", SWITCH * wide) for i, (_, wide) in enumerate(clusters)]
    count = len(clusters)
    routes = [
        NetworkRoute((a,), 2 * LATENCY) if a == b else NetworkRoute((a, count, b), 3 * LATENCY)
        for a in range(count) for b in range(count)
    ]  # fmt: skip
    speeds = np.repeat([FLOPS * speed for speed, _ in clusters], hosts)
    places = [NetworkPlace(f"cluster {i}", PORT) for i in range(count)]
    return Network(speeds, np.repeat(np.arange(count), hosts), places, [*switches, Link("main", MAIN)], routes)


def on_network(jobs: Workload) -> Workload:
    """Return the jobs with programs that compute and communicate."""
    laying = ProgramBuilder()
    rows = zip(jobs.more["computation"].tolist(), jobs.more["communication"].tolist(), jobs.size.tolist(), strict=True)
    numbers = [laying.add(Even(flops, sent), size) for flops, sent, size in rows]
    more = {"program": np.array(numbers, np.int64)}
    return replace(jobs, run_time=np.full(len(jobs), np.nan), more=more, programs=laying.programs())


def workloads(folder: Path | None) -> Iterator[Workload]:
    """Yield a synthetic workload, and those given ones that have enough suitable jobs."""
    yield replace(lublin(20_000, 128, kind="untyped", load=0.8), name="lublin")
    for path in sorted(folder.glob("*.swf*")) if folder else ():
        trace = read_swf(path)
        try:
            PICK.of(trace, 0)
        except ConfigError as error:
            print(error)
        else:
            yield trace


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the tables."""
    heading("Jobs that communicate on 8 clusters of 16 hosts: makespan over that of `basic`, mean of the seeds")
    seeds, steps = (2, (0, 10, 39)) if quick else (5, (0, 5, 10, 20, 30, 39))
    rows, groups = [], [(16 * i, 16 * i + 15) for i in range(8)]
    for trace in workloads(traces):
        for kind, clusters in (("alike", ALIKE), ("differ", HIGHLY)):
            for step in steps:
                spans = np.array([
                    [_makespan(trace, network(clusters), groups, 1e7 * step, variant, seed) for variant in VARIANTS]
                    for seed in range(seeds)
                ])  # fmt: skip
                shares = (spans / spans[:, :1]).mean(axis=0)
                rows.append([f"{trace.name}, {kind}", f"{step}e7", *(f"{share:.3f}" for share in shares)])
    table(("trace, clusters", "F_comm", *VARIANTS), rows)
    _speed(2_000 if quick else 10_000)
    _growth(GROWTH[:2] if quick else GROWTH)


def _makespan(
    trace: Workload, joined: Network, groups: list[tuple[int, int]], factor: float, allocation: str, seed: int
) -> float:
    jobs = on_network(communicating(PICK.of(trace, seed), Factors(1e6, factor, 1e3)))
    replayed = replay(jobs, 128, Conservative(allocation=allocation), groups=groups, network=lambda: joined)
    return float(np.nanmax(replayed.finish_time))


def _speed(jobs: int) -> None:
    """Jobs/s in the engine."""
    heading("EASY on 16 clusters of 16 hosts: jobs/s in the engine, best of 3, and run time relative to no network")
    trace, rows = lublin(jobs, 256, kind="untyped", load=0.9), []
    alone = min(replay(trace, 256, Easy(), clock=time.process_time).simulation_time for _ in range(3))
    rows.append(["run times as they are", number(jobs / alone), "1.0"])
    for sent in (0.0, 1e5, 1e6, 1e7):
        spent = _seconds(trace, network(ALIKE * 2), sent)
        rows.append([f"{sent:g} bytes/s to each other host", number(jobs / spent), f"{spent / alone:.1f}"])
    table((f"{jobs:,} jobs", "jobs/s", "x"), rows)


def _growth(sizes: Sequence[tuple[int, int]]) -> None:
    """Jobs/s in the engine, by hosts and jobs."""
    heading("EASY on clusters of 25 hosts, 1e5 bytes/s to each other host: jobs/s in the engine, best of 3")
    rows = []
    for hosts, jobs in sizes:
        trace = lublin(jobs, hosts, kind="untyped", load=0.9)
        spent = _seconds(trace, network([(1.0, 1.0)] * (hosts // 25), 25), 1e5)
        rows.append([number(hosts), number(jobs), number(jobs / spent)])
    table(("hosts", "jobs", "jobs/s"), rows)


def _seconds(trace: Workload, joined: Network, sent: float) -> float:
    """Return the CPU seconds of a replay in which each host sends so many bytes/s to each other host of its job."""
    jobs = on_network(communicating(trace, Factors(FLOPS, sent, 0.0), arrivals=True))
    return min(
        replay(jobs, len(joined.speeds), Easy(), network=lambda: joined, clock=time.process_time).simulation_time
        for _ in range(3)
    )
