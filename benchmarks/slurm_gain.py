"""The same jobs under plain Slurm and with pilotfish, in pairs: turnaround, makespan and slowdown.

Rule: each pair runs the same jobs at the same times, once under Slurm alone and once with pilotfish; which comes first
alternates. Two nodes have one core each and some slots; jobs compute, stream memory or sleep. REAL: the core is a CPU
of this machine, to which the node's busy jobs are bound; Slurm and the daemon also use it. EMULATED: the core is a lock
that busy jobs hold in turns of 50 ms, so the figures do not depend on the machine's load; nothing stands for memory.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from pilotfish.benchmarks.show import heading, number, table
from pilotfish.benchmarks.slurm_overhead import a_slurm, served
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.job import Profile, ThreadGroup

REAL = Path(__file__).parents[1] / "tests" / "real"
sys.path[:0] = [str(REAL / "slurm"), str(REAL), str(REAL.parent)]
from slurm_cluster import PLAIN, SlurmCluster, missing  # noqa: E402
from slurm_daemon import SlurmDaemon  # noqa: E402
from slurm_work import Run, Work  # noqa: E402

#: Turnaround over the run time alone, which counts as at least so many seconds (as in `simulate.replay.metrics`).
TAU_S = 10.0
SLOTS = 3
#: Of a node in the cluster file, bytes/s.
MEMORY_BANDWIDTH = 1e10
_SLICES = """/usr/bin/env python3 -S -c '
import fcntl, sys, time
core, left = open(sys.argv[1], "a"), {seconds}
while left > 0:
    fcntl.flock(core, fcntl.LOCK_EX)
    began = time.monotonic()
    time.sleep(min(0.05, left))
    left -= time.monotonic() - began
    fcntl.flock(core, fcntl.LOCK_UN)
    time.sleep(0.0005)
' {folder}/core.$SLURMD_NODENAME"""
_SPIN = """/usr/bin/env python3 -S -c '
import os, sys, time
os.sched_setaffinity(0, [sorted(os.sched_getaffinity(0))[int(sys.argv[1][1:]) - 1]])
while time.process_time() < {seconds}:
    pass' $SLURMD_NODENAME"""
_STREAM = """/usr/bin/env python3 -S -c '
import os, sys
os.sched_setaffinity(0, [sorted(os.sched_getaffinity(0))[int(sys.argv[1][1:]) - 1]])
source, target = bytes({block}), bytearray({block})
for _ in range(int({seconds} * {rate})):
    target[:] = source' $SLURMD_NODENAME"""
#: Bytes that a streaming job copies at once: more than a core's caches hold.
BLOCK = 24 * 2**20
#: Command of each kind of busy job, by what a core is.
CORES = {"EMULATED": {"spin": _SLICES, "stream": _SLICES}, "REAL": {"spin": _SPIN, "stream": _STREAM}}


@dataclass(frozen=True, slots=True)
class Load:
    """Jobs that arrive over a time: their number, least and most seconds alone, and the share that is busy."""

    jobs: int
    shortest: int
    longest: int
    over_s: float
    busy: float = 2 / 3
    slots: int = 1  # of a node, that each job takes

    def drawn(self, seed: int) -> list[tuple[float, str, int]]:
        """Return each job's arrival (seconds), kind and seconds."""
        draw = random.Random(seed)
        times = sorted(draw.uniform(0.0, self.over_s) for _ in range(self.jobs))
        kinds = [("spin", "stream")[number % 2] for number in range(round(self.busy * self.jobs))]
        kinds += ["nap"] * (self.jobs - len(kinds))
        draw.shuffle(kinds)
        return [(at, kind, draw.randint(self.shortest, self.longest)) for at, kind in zip(times, kinds, strict=True)]


LOADS = {
    "jobs of 1 s": Load(24, 1, 1, 24.0),
    "jobs of 3 to 6 s": Load(24, 3, 6, 24.0),
    "jobs of 20 to 36 s": Load(15, 20, 36, 45.0),
    "jobs of 20 to 36 s at once": Load(15, 20, 36, 0.0),
    "jobs that only sleep": Load(15, 10, 20, 30.0, busy=0.0),
}
#: One job after the other on each node.
CHAINS = Load(24, 2, 5, 0.0, busy=0.0, slots=SLOTS)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to hand jobs over: held by a begin time or free to start, with or without profiles and events.

    A run follows another one of the daemon, since it looks rarely while nothing was handed over for two minutes.

    Args:
        script: job_submit.lua decides which are held; the daemon has seen the same load before.
        place: all jobs are placed, also where that gains nothing.
    """

    held: bool = True
    profiles: bool = True
    events: bool = False
    script: bool = False
    place: bool = False

    def __str__(self) -> str:
        return ", ".join((
            "job_submit.lua" if self.script else "held" if self.held else "free",
            "profiles" if self.profiles else "no profiles",
            "events" if self.events else "no events",
        ))  # fmt: skip


WAYS = (Way(), Way(events=True), Way(profiles=False), Way(held=False, events=True), Way(events=True, script=True))


@dataclass(frozen=True, slots=True)
class Result:
    """Makespan, means over jobs of turnaround and waiting, in seconds, and of the bounded slowdown.

    Args:
        gap: median over jobs of the time from the end before it on its node to its first line, seconds.
    """

    makespan: float
    turnaround: float
    waiting: float
    slowdown: float
    gap: float


NAMES = ("makespan", "turnaround", "waiting", "slowdown")
#: Phases of a placement, as in `pilotfish_placement_latency_seconds`.
PHASES = ("seen", "decided", "sent", "started")


def measure(quick: bool) -> None:
    """Print the tables."""
    if why_not := missing():
        print(f"skipped: {why_not}")
        return
    heading(f"{CHAINS.jobs} jobs, one after the other on two nodes, placed even where that gains nothing")
    rows, shares = [], []
    for events in (False, True):
        mode, phases, label = Way(events=events, place=True), list[list[str]](), "events" if events else "no events"
        pairs = [compare("EMULATED", CHAINS, mode, seed, phases) for seed in range(1 if quick else 3)]
        gaps = ([result.gap for result in results] for results in zip(*pairs, strict=True))
        rows.append([label, *map(_spread, gaps)])
        shares += [[label if number == 0 else "", *durations] for number, durations in enumerate(phases)]
    table(("seconds from an end to the next first line", "Slurm alone", "with pilotfish"), rows)
    table(("mean milliseconds, a line for each run", *PHASES), shares)
    print(
        "seen: from an end, which Slurm states in whole seconds, to the snapshot that shows it; started: by then, also."
    )
    for core in CORES:
        if core == "REAL" and (quick or len(os.sched_getaffinity(0)) < 2):
            print("REAL cores are skipped: they need 2 CPUs and more than --quick")
            continue
        for name, load in LOADS.items():
            modes = WAYS[:2] if quick else WAYS
            heading(f"{load.jobs} {name}, two nodes of {SLOTS} slots whose cores are {core}")
            rows = []
            for mode in modes:
                pairs = [compare(core, load, mode, seed) for seed in range(1 if quick else 5)]
                rows += _rows(str(mode), pairs)
            table(("handed over", "", "Slurm alone", "with pilotfish", "change"), rows)


def compare(core: str, load: Load, way: Way, seed: int, phases: list[list[str]] | None = None) -> tuple[Result, Result]:
    """Run one pair; return the results under Slurm alone and with pilotfish. `phases` gets the latencies by phase."""
    drawn = load.drawn(seed)
    with a_site(way) as (slurm, prepare):
        runs: dict[bool, Result] = {}
        for with_daemon in (False, True) if seed % 2 else (True, False):
            if not with_daemon:
                runs[with_daemon] = _run(slurm, core, drawn, None, load.slots)
                continue
            with served(slurm, prepare) as daemon:
                _run(slurm, core, load.drawn(seed + 1000) if way.script else [(0.0, "nap", 1)], way)
                runs[with_daemon] = _run(slurm, core, drawn, way, load.slots)
                assert daemon.process and daemon.process.poll() is None, daemon.log.read_text()
                if phases is not None:
                    phases.append([number(1000 * _mean_latency(daemon, phase)) for phase in PHASES])
    return runs[False], runs[True]


def _mean_latency(daemon: SlurmDaemon, phase: str) -> float:
    """Return the mean seconds of a phase of the placements so far; nan if there were none."""
    total, count = (
        daemon.metric(f'pilotfish_placement_latency_seconds_{suffix}{{phase="{phase}"}}') for suffix in ("sum", "count")
    )
    return total / count if count else math.nan


@contextmanager
def a_site(way: Way) -> Iterator[tuple[SlurmCluster, Callable[[SlurmDaemon], None]]]:
    """Run a Slurm that sends events if the way wants them; yield it with what prepares the daemon's files."""
    with tempfile.TemporaryDirectory(prefix="events-") as name:
        folder, job_end = Path(name), REAL.parents[1] / "systemd" / "pilotfish-job-end.sh"
        folder.chmod(0o755)
        socket, epilog = folder / "events.sock", folder / "epilog"
        epilog.write_text(f"#!/bin/sh\nPILOTFISH_EVENTS={socket} exec sh {folder / 'job-end.sh'}\n")
        (folder / "job-end.sh").write_text(job_end.read_text())
        epilog.chmod(0o755)
        extra = PLAIN + (f"EpilogSlurmctld={epilog}\n" if way.events else "")
        lua = _script(folder / "unheld") if way.script else ""
        if way.script:
            extra += "JobSubmitPlugins=lua\n"
        with a_slurm(nodes=2, cpus=SLOTS, extra=extra, script=lua) as slurm:

            def prepare(daemon: SlurmDaemon) -> None:
                _prepare(daemon, way, folder)

            yield slurm, prepare


def _script(unheld: Path) -> str:
    """Return job_submit.lua with that file, which does not look for the socket."""
    text = (REAL.parents[1] / "docs" / "slurm" / "job_submit.lua").read_text()
    marker = unheld.with_name("asked")
    marker.touch()
    paths = {"/run/pilotfish/unheld": unheld, "/run/pilotfish-asked/job": marker, "/run/pilotfish/pilotfish.sock": ""}
    for old, new in paths.items():
        assert old in text, old
        text = text.replace(old, str(new))
    return text


def _prepare(daemon: SlurmDaemon, mode: Way, folder: Path) -> None:
    """Configure one core and some slots on each node, and profiles by name."""
    cluster = daemon.config.with_name("cluster.yaml")
    text = cluster.read_text().replace(f"cores: {SLOTS}", "cores: 1")
    cluster.write_text(text + f"oversubscription: {float(SLOTS)}\n")
    config = yaml.safe_load(daemon.config.read_text()) | {
        "without_gain": "place" if mode.place else "release", "metrics": {"port": 0},
    }  # fmt: skip
    if mode.events:
        config["events"] = {"users": ["slurm"], "path": str(folder / "events.sock")}
    if mode.script:
        config["adapter"]["options"] = {
            "unheld_prefix": str(folder / "unheld"),
            "asked_file": str(folder / "asked"),
        }
    daemon.config.write_text(yaml.safe_dump(config))
    if mode.profiles:
        with closing(ProfileStore(daemon.folder / "profiles.sqlite")) as store:
            for seconds in range(1, 61):
                for profile in _profiles(float(seconds)):
                    store.put(profile)


def _profiles(seconds: float) -> list[Profile]:
    moved = 2 * BLOCK * _copies_per_second()  # read and written
    groups = {
        "spin": ThreadGroup(1, seconds),
        "stream": ThreadGroup(1, seconds, bandwidth=min(moved, MEMORY_BANDWIDTH)),
        "nap": ThreadGroup(1, seconds / 100, 0.01),
    }
    return [Profile((group,), name=f"{kind}-{seconds:g}") for kind, group in groups.items()]


@cache
def _copies_per_second() -> float:
    """Return how often a job alone copies a block in a second on this machine."""
    source, target = bytes(BLOCK), bytearray(BLOCK)
    seconds = []
    for _ in range(50):
        began = time.perf_counter()
        target[:] = source
        seconds.append(time.perf_counter() - began)
    return 1.0 / statistics.median(seconds)


def _run(
    slurm: SlurmCluster, core: str, drawn: Sequence[tuple[float, str, int]], mode: Way | None, slots: int = 1
) -> Result:
    """Submit the jobs at their times, wait for their end, and return the result; way None: Slurm alone."""
    with tempfile.TemporaryDirectory(dir=slurm.shared()) as name:
        folder, work = Path(name), Work.of(slurm, "gain")
        ended = folder / "ended"
        for directory in (folder, ended):
            directory.mkdir(exist_ok=True)
            directory.chmod(0o777)
        began, alone = time.monotonic(), dict[int, int]()
        for at, kind, seconds in drawn:
            time.sleep(max(0.0, began + at - time.monotonic()))
            line = CORES[core].get(kind, "sleep {seconds}")
            line = line.replace("{folder}", str(folder)).replace("{seconds}", str(seconds))
            line = line.replace("{block}", str(BLOCK)).replace("{rate}", f"{_copies_per_second():.3f}")
            line += f"; date +%s.%N >{ended}/$SLURM_JOB_ID"
            options = f"--cpus-per-task={slots}", "--mem=64M", f"--job-name={kind}", *_handing(mode, kind, seconds)
            job = (work.add_plain if mode and mode.script else work.add)(line, *options)
            alone[job] = seconds
        while len(list(ended.iterdir())) < len(drawn):
            time.sleep(0.2)
        time.sleep(0.5)
        ends = {int(path.name): float(path.read_text()) for path in ended.iterdir()}
    work.wait()
    firsts, submitted = {job: runs[0] for job, runs in work.runs().items()}, work.submitted
    first = {job: run.began for job, run in firsts.items()}
    turnaround = {job: ends[job] - submitted[job] for job in work.jobs}
    return Result(
        max(ends.values()) - min(submitted.values()),
        statistics.mean(turnaround.values()),
        statistics.mean(first[job] - submitted[job] for job in work.jobs),
        statistics.mean(max(1.0, turnaround[job] / max(alone[job], TAU_S)) for job in work.jobs),
        statistics.median([*_gaps(firsts.values(), ends)] or [math.nan]),
    )


def _gaps(firsts: Iterable[Run], ends: Mapping[int, float]) -> Iterator[float]:
    """Yield the seconds from the last end on its node to the first line of each job but the first ones."""
    runs = list(firsts)
    for run in runs:
        before = [ends[earlier.job] for earlier in runs if earlier.node == run.node and ends[earlier.job] <= run.began]
        if before:
            yield run.began - max(before)


def _handing(mode: Way | None, kind: str, seconds: int) -> tuple[str, ...]:
    """Return the options that replace those with which `Work` hands a job over."""
    if mode is None:
        return "--begin=now", "--comment=none"
    tag = f";profile={kind}-{seconds}" if mode.profiles else ""
    if mode.script:
        return (f"--comment=pilotfish:{tag[1:]}",)
    return (f"--comment=pilotfish:hold=600{tag}",) if mode.held else ("--begin=now", f"--comment=pilotfish:{tag[1:]}")


def _rows(label: str, pairs: Sequence[tuple[Result, Result]]) -> list[list[str]]:
    rows = list[list[str]]()
    for name in NAMES:
        alone, with_daemon = ([getattr(result, name) for result in results] for results in zip(*pairs, strict=True))
        change = [b / a - 1 if a else 0.0 for a, b in zip(alone, with_daemon, strict=True)]
        rows.append([label if not rows else "", name, _spread(alone), _spread(with_daemon), _shares(change)])
    return rows


def _spread(values: Sequence[float]) -> str:
    return f"{number(statistics.median(values))} ({number(min(values))} to {number(max(values))})"


def _shares(values: Sequence[float]) -> str:
    return f"{statistics.median(values):+.0%} ({min(values):+.0%} to {max(values):+.0%})"
