"""Overhead next to a real Slurm with 1,000 waiting jobs: time of a cycle, start latency, load of the controller.

Rule: each figure is printed with that of Slurm alone, or of a plain `squeue`, from the same run; cycles start no jobs.
Slurm and its 8 nodes run on this machine and use its CPUs.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from pilotfish.adapters.slurm.transport.runner import CommandRunner
from pilotfish.benchmarks.show import heading, ms, number, table, timed
from pilotfish.benchmarks.slurm_snapshot import Watch, cycle_on
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType

REAL = Path(__file__).parents[1] / "tests" / "real"
sys.path[:0] = [str(REAL / "slurm"), str(REAL), str(REAL.parent)]
from slurm_cluster import PLAIN, SlurmCluster, missing  # noqa: E402
from slurm_daemon import SlurmDaemon  # noqa: E402
from slurm_work import Work  # noqa: E402

MANY = 1_000
_CALL = re.compile(r"(REQUEST_\w+)\s*\(\s*\d+\)\s*count:(\d+)\s*ave_time:\d+\s*total_time:(\d+)")


@contextmanager
def a_slurm(nodes: int, cpus: int = 4, extra: str = PLAIN, script: str = "") -> Iterator[SlurmCluster]:
    """Run a temporary Slurm, with `script` as its job_submit.lua; commands of this process use it."""
    with tempfile.TemporaryDirectory(prefix="bench-slurm-", ignore_cleanup_errors=True) as name:
        slurm, before = SlurmCluster(Path(name) / "slurm", nodes=nodes, cpus=cpus, extra=extra), dict(os.environ)
        if script:
            slurm.config.parent.mkdir(parents=True)
            slurm.config.with_name("job_submit.lua").write_text(script)
        try:
            slurm.up()
            os.environ |= slurm.environment
            yield slurm
        finally:
            slurm.down()
            os.environ.clear()
            os.environ |= before


def submit_many(slurm: SlurmCluster, count: int, *options: str) -> None:
    """Submit identical jobs, one `sbatch` after the other."""
    line = " ".join(("sbatch --parsable --output=/dev/null --chdir=/tmp --wrap=true", *options))
    loop = f"for i in $(seq {count}); do {line} >/dev/null || exit 1; done"
    slurm.run("sh", "-c", loop, user="games")


def measure(quick: bool) -> None:
    """Print the tables."""
    heading(f"Next to a real Slurm; targets: a cycle over {MANY:,} waiting jobs in 250 ms, with at most 3 requests")
    if why_not := missing():
        print(f"skipped: {why_not}")
        return
    with a_slurm(nodes=8) as slurm:
        latency = [_latency("an empty queue", slurm, 5 if quick else 15)]
        load = _load(slurm, 15.0 if quick else 60.0)
        cycles = _cycles("600 s from now", slurm, ["--begin=now+6000"], quick)
        cycles += _cycles("handed over", slurm, ["--begin=now+6000", "--comment=pilotfish:hold=6000"], quick)
        slurm.clear()
        slurm.submit("sleep 3600", "--nodelist=n1", "--cpus-per-task=4")
        submit_many(slurm, MANY, "--nodelist=n1", "--cpus-per-task=4")
        latency.append(_latency(f"{MANY:,} foreign jobs wait for n1", slurm, 5 if quick else 15))
        load += _load(slurm, 15.0 if quick else 60.0)
    table(("waiting jobs", "cycle", "ms", "most", "commands", "requests", "squeue ms", "its own"), cycles)
    print("commands: time spent in them; squeue: a plain one in the same run; its own: the daemon's. Medians.\n")
    table(("seconds from sbatch to the first line", "median", "least", "most", "Slurm alone", "most"), latency)
    print("the daemon with a cycle of 1 s; Slurm alone: the same job without --begin, as Slurm starts it itself.\n")
    table(("on slurmctld, in a minute", "calls", "ms of its time", "squeue every 2 s", "ms of its time"), load)


def _cycles(label: str, slurm: SlurmCluster, options: Sequence[str], quick: bool) -> list[list[str]]:
    slurm.clear()
    submit_many(slurm, MANY, *options)
    kind = NodeType("t", slurm.cpus, slurm.memory * 2.0**20, 1e10)
    cluster = Cluster("pilot", tuple(Node(f"n{n}", kind) for n in range(1, slurm.nodes + 1)))
    calls: list[Sequence[str]] = []
    commands = CommandRunner()

    def counted(argv: Sequence[str]) -> str:
        calls.append(argv)
        return commands(argv)

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch()
        cycle = cycle_on(counted, cluster, Path(folder), watch)
        cycle.run()
        for news in (False, True):
            seconds, inside, call_counts = list[float](), list[float](), list[int]()
            for _ in range(5 if quick else 20):
                if news:
                    slurm.submit("true", *options)
                calls.clear()
                watch.seconds.clear()
                seconds += timed(cycle.run, 1)
                inside.append(watch.seconds["command"])
                call_counts.append(len(calls))
            plain = timed(lambda: commands(["squeue"]), 5)
            own_query = timed(lambda: commands(next(argv for argv in calls if argv[0] == "squeue")), 5)
            rows.append([
                f"{MANY:,} {label}", "one more" if news else "nothing new", ms(statistics.median(seconds)),
                ms(max(seconds)), ms(statistics.median(inside)), f"{statistics.median(call_counts):g}",
                ms(statistics.median(plain)), ms(statistics.median(own_query)),
            ])  # fmt: skip
    return rows


def _latency(label: str, slurm: SlurmCluster, repeats: int) -> list[str]:
    with served(slurm) as daemon:
        waits = _waits(slurm, repeats, lambda work: work.add("true"))
        assert daemon.process and daemon.process.poll() is None, daemon.log.read_text()
    alone = _waits(slurm, repeats, lambda work: work.add("true", "--begin=now", "--comment=none"))
    return [label, *(number(find(waits)) for find in (statistics.median, min, max)),
            number(statistics.median(alone)), number(max(alone))]  # fmt: skip


def _has_run(work: Work, job: int) -> bool:
    """Return whether a job has run."""
    return bool(work.runs()[job])


def _waits(slurm: SlurmCluster, repeats: int, submit: Callable[[Work], int]) -> list[float]:
    """Return the seconds from each submission, one after the other, until the job's first line ran."""
    work, waits = Work.of(slurm, "latency"), list[float]()
    for _ in range(repeats):
        job = submit(work)
        slurm.until(partial(_has_run, work, job), f"the start of {job}")
        waits.append(work.runs()[job][0].began - work.submitted[job])
    return waits


def _load(slurm: SlurmCluster, seconds: float) -> list[list[str]]:
    waiting = len(slurm.run("squeue", "--noheader").splitlines())
    with served(slurm):
        time.sleep(2.0)
        loaded = _felt(slurm, lambda: time.sleep(seconds))

    def look() -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            subprocess.run(["squeue"], stdout=subprocess.DEVNULL, check=False)
            time.sleep(2.0)

    plain = _felt(slurm, look)
    scale = 60.0 / seconds
    return [[f"{waiting:,} jobs wait", *(f"{value * scale:,.0f}" for value in (*loaded, *plain))]]


def _felt(slurm: SlurmCluster, during: Callable[[], None]) -> tuple[int, float]:
    """Return the number of calls to the controller meanwhile, without those of its nodes, and their milliseconds."""
    slurm.run("sdiag", "--reset")
    during()
    entries = _CALL.findall(slurm.run("sdiag").partition("by user")[0])
    prefixes = ("INFO", "UPDATE", "STATS")
    calls = [(int(count), int(us)) for name, count, us in entries if any(word in name for word in prefixes)]
    return sum(count for count, _ in calls), sum(us for _, us in calls) / 1e3


@contextmanager
def served(slurm: SlurmCluster, prepare: Callable[[SlurmDaemon], None] = lambda daemon: None) -> Iterator[SlurmDaemon]:
    """Run the daemon with a cycle of 1 s; `prepare` may change its files before it starts."""
    with tempfile.TemporaryDirectory() as folder, closing(SlurmDaemon(Path(folder), slurm.nodes, slurm.cpus)) as daemon:
        daemon.config.write_text(daemon.config.read_text().replace("cycle_seconds: 0.5", "cycle_seconds: 1.0"))
        prepare(daemon)
        daemon.start()
        yield daemon
