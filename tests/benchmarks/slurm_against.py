"""The same jobs by plain Slurm, and by Slurm with pilotfish; and the same jobs simulated.

Rule: interference must be certain. A node is one core of this machine with two of Slurm's CPUs on it: every job ties
itself to that core, so that two that compute take twice as long, and one that sleeps costs nobody anything. Slurm
counts CPUs and cannot know; pilotfish has profiles of both. Rounds of both kinds take turns; nothing else differs.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.formats.cluster import read_cluster
from pilotfish.simulate.job import Job, Profile, Provenance, ThreadGroup, Workflow
from pilotfish.simulate.planner import plan

from .show import heading, number, table
from .slurm_beside import a_slurm

from slurm_cluster import SlurmCluster, missing  # isort: skip
from slurm_daemon import SlurmDaemon  # isort: skip
from slurm_work import Work  # isort: skip

SECONDS = 5.0
CORES = sorted(os.sched_getaffinity(0))[:2]
LINES = {
    "spin": "python3 -c 'import time\nwhile time.thread_time() < {seconds}: pass'",
    "nap": "sleep {seconds}",
}
PROFILES = {
    "spin": Profile((ThreadGroup(1, SECONDS),), name="spin", provenance=Provenance("given")),
    "nap": Profile((ThreadGroup(1, 0.001 * SECONDS, utilisation=0.001),), name="nap", provenance=Provenance("given")),
}
CLUSTER = {
    "schema": "pilotfish/cluster/v1",
    "name": "halves",
    "node_types": {"core": {"cores": 1, "memory": "4GiB", "memory_bandwidth": "10GB/s"}},
    "nodes": [{"names": f"n[1-{len(CORES)}]", "type": "core"}],
    "oversubscription": 2.0,
}


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one: seconds from the first submission to the last end, and in the mean from each to its end, and
    to its start."""

    makespan: float
    turnaround: float
    waiting: float


def measure(quick: bool) -> None:
    """Print the tables."""
    heading("The same jobs by plain Slurm, and with pilotfish beside it")
    if why_not := missing() or ("" if len(CORES) == 2 else "it takes two CPUs"):
        print(f"left out: {why_not}")
        return
    rounds = 2 if quick else 4
    orders = [_order(seed) for seed in range(rounds)]
    with a_slurm(nodes=2, cpus=2) as slurm:
        _tie(slurm)
        plain, placed = list[Round](), list[Round]()
        for kinds in orders:
            plain.append(_round(slurm, kinds, held=False))
            with _daemon(slurm):
                placed.append(_round(slurm, kinds, held=True))
    rows = [_row("plain Slurm", plain), _row("with pilotfish", placed)]
    table(("seconds, mean +- standard deviation", "makespan", "turnaround", "waiting"), rows)
    pairs = zip(plain, placed, strict=True)
    gains = [(1 - ours.makespan / theirs.makespan, 1 - ours.turnaround / theirs.turnaround) for theirs, ours in pairs]
    for what, found in zip(("makespan", "mean turnaround"), zip(*gains, strict=True), strict=True):
        print(f"{what}: {100 * statistics.mean(found):+.0f} % shorter with pilotfish, in pairs of rounds "
              f"{', '.join(f'{100 * gain:+.0f} %' for gain in found)}")  # fmt: skip
    _simulated(orders, placed)


def _order(seed: int) -> list[str]:
    kinds = ["spin"] * 5 + ["nap"] * 5
    random.Random(seed).shuffle(kinds)
    return kinds


def _tie(slurm: SlurmCluster) -> None:
    """A script that users put before a job: to the core of the node."""
    script = slurm.shared() / "tied"
    cases = " ".join(f"n{i}) cpu={cpu};;" for i, cpu in enumerate(CORES, 1))
    script.write_text(f'#!/bin/sh\ncase $SLURMD_NODENAME in {cases} esac\nexec taskset -c $cpu sh -c "$1"\n')
    script.chmod(0o755)


def _round(slurm: SlurmCluster, kinds: list[str], *, held: bool) -> Round:
    slurm.clear()
    work = Work.of(slurm, "against")
    for kind in kinds:
        line = LINES[kind].format(seconds=SECONDS).replace('"', '\\"')
        free = [] if held else ["--begin=now", "--comment=none"]
        work.add(f'{slurm.shared()}/tied "{line}"; date +%s.%N > {work.trail}.$SLURM_JOB_ID', *free, "--time=2",
                 tags=f";profile={kind}")  # fmt: skip
    slurm.until(work.ended, "the round")
    work.each_ran_once()
    submitted = min(work.submitted.values())
    ends = {job: float(Path(f"{work.trail}.{job}").read_text()) for job in work.jobs}
    starts = {job: runs[0].began for job, runs in work.runs().items()}
    return Round(
        max(ends.values()) - submitted,
        statistics.mean(ends[job] - work.submitted[job] for job in work.jobs),
        statistics.mean(starts[job] - work.submitted[job] for job in work.jobs),
    )


@contextmanager
def _daemon(slurm: SlurmCluster) -> Iterator[SlurmDaemon]:
    with tempfile.TemporaryDirectory() as name, closing(SlurmDaemon(Path(name), slurm.nodes, slurm.cpus)) as daemon:
        (Path(name) / "cluster.yaml").write_text(yaml.safe_dump(CLUSTER))
        with closing(ProfileStore(Path(name) / "profiles.sqlite")) as store:
            for profile in PROFILES.values():
                store.put(profile)
        daemon.start()
        yield daemon


def _row(what: str, rounds: list[Round]) -> list[str]:
    cells = []
    for field in ("makespan", "turnaround", "waiting"):
        values = [getattr(each, field) for each in rounds]
        cells.append(f"{number(statistics.mean(values))} +- {number(statistics.stdev(values))}")
    return [what, *cells]


def _simulated(orders: list[list[str]], placed: list[Round]) -> None:
    heading("The same rounds simulated")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "cluster.yaml"
        path.write_text(yaml.safe_dump(CLUSTER))
        cluster = read_cluster(path)
    rows = []
    for i, (kinds, real) in enumerate(zip(orders, placed, strict=True), 1):
        jobs = tuple(Job(f"{k}", replace(PROFILES[kind])) for k, kind in enumerate(kinds))
        made = plan(Workflow("round", jobs), cluster)
        waiting = statistics.mean(job.start_time for job in made.jobs)
        error = made.makespan / real.makespan - 1
        rows.append([f"round {i}", number(made.makespan), number(real.makespan), f"{100 * error:+.0f} %",
                     number(waiting), number(real.waiting), number(real.waiting - waiting)])  # fmt: skip
    table(("", "makespan s", "real s", "error", "mean waiting s", "real s", "missed by s"), rows)
    print("what the simulation leaves out: from a free node to the next start, for each wave of jobs (a look at the "
          "queue every 0.5 s, Slurm's own launch), and what else runs on this machine.")  # fmt: skip
