"""Makespan and waiting of the same jobs under plain Slurm and with pilotfish, and the forecast of the simulation.

Rule: the contention between jobs is known. Half of the jobs compute, half sleep; two nodes have two slots and one core
each. REAL: the core is a CPU of this machine, to which the node's computing jobs are bound; Slurm and the daemon also
use it. EMULATED: the core is a lock that jobs hold in turns of 50 ms, so the figures do not depend on the machine's
load.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pilotfish.benchmarks.show import heading, number, table
from pilotfish.benchmarks.slurm_overhead import a_slurm, served
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import Plan
from pilotfish.simulate.planning.planner import plan

REAL = Path(__file__).parents[1] / "tests" / "real"
sys.path[:0] = [str(REAL / "slurm"), str(REAL)]
from slurm_cluster import SlurmCluster, missing  # noqa: E402
from slurm_daemon import SlurmDaemon  # noqa: E402
from slurm_work import Work  # noqa: E402

SECONDS, EACH = 6.0, 8
KIND = NodeType("t", 1, 4 * 2.0**30, 1e10)
CLUSTER = Cluster("two", (Node("n1", KIND), Node("n2", KIND)), 2.0)
PROFILES = {
    "spin": Profile((ThreadGroup(1, SECONDS),), name="spin"),
    "nap": Profile((ThreadGroup(1, SECONDS / 100, 0.01),), name="nap"),
}
SLICES = f"""/usr/bin/env python3 -S -c '
import fcntl, sys, time
core, left = open(sys.argv[1], "a"), {SECONDS}
while left > 0:
    fcntl.flock(core, fcntl.LOCK_EX)
    began = time.monotonic()
    time.sleep(min(0.05, left))
    left -= time.monotonic() - began
    fcntl.flock(core, fcntl.LOCK_UN)
    time.sleep(0.0005)
' {{folder}}/core.$SLURMD_NODENAME"""
SPIN = f"""/usr/bin/env python3 -S -c '
import os, sys, time
os.sched_setaffinity(0, [sorted(os.sched_getaffinity(0))[int(sys.argv[1][1:]) - 1]])
while time.process_time() < {SECONDS}:
    pass' $SLURMD_NODENAME"""
CORES = {"EMULATED": SLICES, "REAL": SPIN}


@dataclass(frozen=True, slots=True)
class Result:
    """Makespan, and mean turnaround and waiting time over jobs, in seconds."""

    makespan: float
    turnaround: float
    waiting: float


def measure(quick: bool) -> None:
    """Print the table."""
    for what, spin in CORES.items():
        heading(f"{EACH} jobs that compute for {SECONDS:g} s, {EACH} that sleep, two nodes whose cores are {what}")
        if why_not := missing():
            print(f"skipped: {why_not}")
        elif what == "REAL" and len(os.sched_getaffinity(0)) < 2:
            print("skipped: it needs 2 CPUs")
        else:
            with a_slurm(nodes=2, cpus=2) as slurm:
                _in_turns(slurm, lines_of(spin), 1 if quick else 3)


def lines_of(spin: str) -> dict[str, str]:
    """Return the command line of each kind of job."""
    return {"spin": spin, "nap": f"sleep {SECONDS}"}


def compare(slurm: SlurmCluster, lines: Mapping[str, str], turn: int) -> tuple[Result, Result, Result]:
    """Run one turn; return the results under Slurm alone, with pilotfish, and simulated."""
    kinds = random.Random(turn).sample(["spin", "nap"] * EACH, 2 * EACH)
    alone = _run(slurm, lines, kinds, pilotfish=False)
    with served(slurm, _prepare) as daemon:
        shared = _run(slurm, lines, kinds, pilotfish=True)
        assert daemon.process and daemon.process.poll() is None, daemon.log.read_text()
    return alone, shared, _simulated(kinds)


def _in_turns(slurm: SlurmCluster, lines: Mapping[str, str], turns: int) -> None:
    alone, shared, planned = zip(*(compare(slurm, lines, turn) for turn in range(turns)), strict=True)
    rows = []
    for name, what in (("makespan", "makespan s"), ("turnaround", "mean turnaround s"), ("waiting", "mean waiting s")):
        ours, theirs, plans = ([getattr(result, name) for result in results] for results in (shared, alone, planned))
        change = [b / a - 1 for a, b in zip(theirs, ours, strict=True)]
        error = [b / p - 1 for p, b in zip(plans, ours, strict=True)]
        rows.append([what, _spread(theirs), _spread(ours), _shares(change), _spread(plans), _shares(error)])
    table(("", "Slurm alone", "with pilotfish", "change", "simulated", "run against it"), rows)
    print(f"medians of {turns} turns, both on the same jobs in the same order (least to most). Slurm alone packs: two")
    print("that compute may share one core while both on the other node sleep. The simulation ignores that Slurm takes")
    print("a second to start a job, and the daemon up to its cycle of 1 s to see an end: for each job on it.")


def _simulated(kinds: Sequence[str]) -> Result:
    """Return the forecast of `pilotfish plan`."""
    jobs = tuple(Job(f"j{i}", PROFILES[kind]) for i, kind in enumerate(kinds))
    made: Plan = plan(Workflow("jobs", jobs), CLUSTER, policy="lookahead")
    starts, ends = ([getattr(job, name) for job in made.jobs] for name in ("start_time", "finish_time"))
    return Result(max(ends), statistics.mean(ends), statistics.mean(starts))


def _prepare(daemon: SlurmDaemon) -> None:
    """Configure one core and two slots on each node, and profiles by name."""
    cluster = daemon.config.with_name("cluster.yaml")
    cluster.write_text(cluster.read_text().replace("cores: 2", "cores: 1") + "oversubscription: 2.0\n")
    with closing(ProfileStore(daemon.folder / "profiles.sqlite")) as store:
        for profile in PROFILES.values():
            store.put(profile)


def _run(slurm: SlurmCluster, lines: Mapping[str, str], kinds: Sequence[str], *, pilotfish: bool) -> Result:
    """Submit all jobs at once and wait for their end."""
    with tempfile.TemporaryDirectory(dir=slurm.shared()) as name:
        folder, work = Path(name), Work.of(slurm, "gain")
        ended = folder / "ended"
        for each in (folder, ended):
            each.mkdir(exist_ok=True)
            each.chmod(0o777)
        alone = () if pilotfish else ("--begin=now", "--comment=none")
        for kind in kinds:
            line = f"{lines[kind]}; date +%s.%N >{ended}/$SLURM_JOB_ID".replace("{folder}", str(folder))
            work.add(line, "--cpus-per-task=1", "--mem=64M", *alone, tags=f";profile={kind}")
        slurm.until(lambda: len(list(ended.iterdir())) == len(kinds), "the end of all jobs")
        time.sleep(0.5)
        ends = {int(path.name): float(path.read_text()) for path in ended.iterdir()}
    work.wait()
    began, submitted = {job: runs[0].began for job, runs in work.runs().items()}, work.submitted
    return Result(
        max(ends.values()) - min(submitted.values()),
        statistics.mean(ends[job] - submitted[job] for job in work.jobs),
        statistics.mean(began[job] - submitted[job] for job in work.jobs),
    )


def _spread(values: Sequence[float]) -> str:
    return f"{number(statistics.median(values))} ({number(min(values))} to {number(max(values))})"


def _shares(values: Sequence[float]) -> str:
    return f"{statistics.median(values):+.0%} ({min(values):+.0%} to {max(values):+.0%})"
