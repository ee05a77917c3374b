"""Faults in a real Slurm and in the daemon next to it, by a seed, while users' jobs come and go.

    python tests/real/slurm/faults.py --faults 1000 --seed 7

Rule: the seed decides which faults and which jobs come, in which order and when; a failure can be run again. Nothing is
lost, doubled, late, resized, loosened, changed, and no pin stays (`fault_oracle` says what each means).
"""

from __future__ import annotations

import argparse
import heapq
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(folder) for folder in (HERE, HERE.parent, HERE.parents[1]) if str(folder) not in sys.path]

import guardian
from fault_kinds import KINDS, Steps
from fault_oracle import CLASSES, Violation, forgotten, lateness, resizes, starts, violations
from fault_shims import BREAKS
from fault_world import World
from real_world import own_faults
from slurm_site import OPERATOR, SlurmSite

#: Kinds of jobs: how often each comes.
JOBS = {"held": 8, "free": 4, "other": 3, "still": 1, "after": 3, "wide": 2, "range": 3, "named": 1, "scribbler": 2}
#: Seconds around a fault in which a violation may be due to it.
AROUND_S = (30.0, 5.0)
#: Seconds within which all jobs have ended after the last fault, on a machine however busy.
DRAIN_S = 400.0
#: Priority of it all: it needs little of a processor, but at once, else a busy machine has placed nothing that a fault hits.
NICE = -10
#: Seconds between two faults of Slurm's own, in which jobs are placed.
REST_S = 6.0


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """A fault, or a job that is submitted, seconds after the beginning."""

    at: float
    number: int
    kind: str
    fault: bool


@dataclass(slots=True)
class Report:
    """How a campaign ended."""

    seed: int
    injected: list[tuple[float, str]] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    jobs: int = 0
    handed: int = 0
    forgotten: int = 0
    unsure: int = 0
    runs: int = 0
    sprung: int = 0
    pins: int = 0
    latest_s: float = 0.0
    began: float = 0.0

    def table(self) -> str:
        """The outcomes by kind of fault, and each violation."""
        counts = Counter(kind for _, kind in self.injected)
        near: Counter[tuple[str, str]] = Counter()
        for each in self.violations:
            before, after = AROUND_S
            kinds = {kind for at, kind in self.injected if -after < each.time - self.began - at < before}
            near.update((kind, each.kind) for kind in kinds)
        lines = [f"{'fault':24} {'count':>5}  " + "  ".join(f"{name:>8}" for name in CLASSES) + "   (near it)"]
        for kind in sorted(counts):
            lines.append(f"{kind:24} {counts[kind]:5}  " + "  ".join(f"{near[kind, name]:8}" for name in CLASSES))
        total = Counter(each.kind for each in self.violations)
        lines.append(f"{'all':24} {len(self.injected):5}  " + "  ".join(f"{total[name]:8}" for name in CLASSES))
        lines += [
            f"{each.kind}: {each.job} at {each.time - self.began:.1f} s: {each.words}" for each in self.violations
        ]
        lines += self.problems
        return "\n".join([*lines, self.summary()])

    def summary(self) -> str:
        """One line."""
        return (
            f"seed {self.seed}: {len(self.injected)} faults ({self.sprung} kills in a placement), {self.pins} pins, {self.jobs} jobs ({self.handed} handed over, {self.runs} "
            f"runs; {self.forgotten} forgotten by a killed slurmctld, {self.unsure} with an answer that was lost): "
            f"{len(self.violations)} violations; the latest began {self.latest_s:.1f} s after its hold"
        )


def plan(seed: int, faults: int, every_s: float, jobs_per_fault: float = 2.5) -> list[Event]:
    """Return the faults and the submissions of a seed, in order; `every_s`: mean seconds between two faults."""
    draw, events, number, at = random.Random(seed), list[Event](), count(), 8.0
    kinds = draw.sample([*KINDS], min(faults, len(KINDS)))  # each kind comes, if there are enough
    kinds += draw.choices([*KINDS], [kind.weight for kind in KINDS.values()], k=faults - len(kinds))
    for kind in draw.sample(kinds, faults):
        at += draw.expovariate(1.0 / every_s)
        events.append(Event(at, next(number), kind, True))
    job_at = 0.0
    while job_at < at:
        job_at += draw.expovariate(jobs_per_fault / every_s)
        events.append(Event(job_at, next(number), draw.choices([*JOBS], [*JOBS.values()])[0], False))
    return sorted(events)


class Campaign:
    """Carries a plan out, and judges what became of the jobs.

    Args:
        world: What it happens to.
        seed: The seed of the plan.
        say: Called with a line for each fault.
    """

    def __init__(self, world: World, seed: int, say: Callable[[str], None] = lambda line: None) -> None:
        self.world, self.seed, self.say = world, seed, say
        self.report = Report(seed, began=world.began)
        self._going: list[tuple[float, int, Steps]] = []

    def run(self, events: Sequence[Event]) -> Report:
        """Carry out all events, wait for the end of all jobs, and return the report."""
        for event in events:
            self._wait_until(event.at)
            draw = random.Random(f"{self.seed} {event.number}")
            if event.fault:
                self._advance(event.number, self._steps(event.kind, draw))
            elif not self.world.crowded:
                self.world.submit(f"f{event.number}-{event.kind}", draw, event.kind)
        self.world.ending = True
        more, draw = count(len(events)), random.Random(f"{self.seed} more")
        while self._going:  # what waits for a placement needs jobs
            self._wait_until(self._now() + 2.0)
            self.world.submit(f"f{next(more)}-held", draw, "held")
        self.say(f"{self._now():8.1f} s  the last fault has ended")
        self._drain()
        self.say(f"{self._now():8.1f} s  the last job has ended")
        self._judge()
        return self.report

    def _now(self) -> float:
        return time.time() - self.world.began

    def _steps(self, kind: str, draw: random.Random) -> Steps:
        """A fault, once no other one has what it touches; one that fails has ended, and is reported."""
        touches, touched = set(KINDS[kind].touches), self.world.touched
        while touches & touched:
            yield 0.3
        touched |= touches
        self.report.injected.append((self._now(), kind))
        self.say(f"{self._now():8.1f} s  {kind}")
        try:
            yield from KINDS[kind].steps(self.world, draw)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            self.report.problems.append(f"{self._now():.1f} s: {kind}: {str(error)[:200]}")
        touched -= touches - {"rest"}
        if "rest" in touches:
            yield REST_S
            touched.discard("rest")

    def _advance(self, number: int, steps: Steps) -> None:
        """Let a fault take its next step."""
        with suppress(StopIteration):
            wait_s = next(steps)
            heapq.heappush(self._going, (self._now() + wait_s, number, steps))

    def _wait_until(self, at: float) -> None:
        while True:
            while self._going and self._going[0][0] <= self._now():
                _, number, steps = heapq.heappop(self._going)
                self._advance(number, steps)
            self.world.tend()
            if (left := at - self._now()) <= 0:
                return
            time.sleep(min(left, 0.1))

    def _drain(self) -> None:
        """Let all jobs end, with the daemon dead for good: the reaper alone is there."""
        world, began = self.world, time.time()
        world.look()
        for job in world.jobs.values():
            if job.name.endswith("still") and job.id:
                job.cancelled = time.time()
                world.as_user("root", "scancel", str(job.id))
        world.serving, world.draining = False, True
        world.kill_daemon(0.0)
        while time.time() - began < DRAIN_S and not world.all_over(began):
            self._wait_until(self._now() + 1.0)

    def _judge(self) -> None:
        world, report = self.world, self.report
        world.look()
        world.read_trail()
        names = {job.id: job.name for job in world.jobs.values() if job.id}
        log = world.slurmctld_log()
        lost, started = forgotten(log, world.kills), starts(log)
        for job in world.jobs.values():
            if not job.id:
                continue  # Slurm never took it
            job.forgotten = any(job.id == number and job.submitted < killed for number, killed in lost)
            job.started = started.get(job.id, [])
            report.violations += violations(job, world.outages)
            if job.handed and not (job.unsure or job.forgotten or job.tied or job.restarts):
                report.latest_s = max(report.latest_s, lateness(job, world.outages))
        for at, job_id, nodes in resizes(log):
            if job_id in names:
                report.violations.append(Violation("resized", names[job_id], at, f"to {nodes}"))
        jobs = [job for job in world.jobs.values() if job.id]
        report.jobs, report.handed = len(jobs), sum(job.handed for job in jobs)
        report.runs = sum(len(job.runs) for job in jobs)
        report.sprung = world.sprung
        report.pins = len(re.findall(r" JobId=\d+ .*ReqNodeList=\w", (world.folder / "shims" / "sent").read_text()))
        report.forgotten, report.unsure = sum(job.forgotten for job in jobs), sum(job.unsure for job in jobs)
        if strange := [name for name in world.ghosts if not world.jobs[name].forgotten]:
            report.problems.append(f"Slurm did not notice the end of {', '.join(sorted(strange))}")
        said = world.daemon.log.read_text() + "\n".join(world.said)
        report.violations += [
            Violation("ended", "", at, f"exit code {code}")
            for at, code in world.ends
            if code not in (0, 1, -signal.SIGTERM)
        ]
        report.violations += [Violation("fault", "", world.began, line) for line in own_faults(said)]


def inject(
    site: SlurmSite,
    folder: Path,
    faults: int,
    seed: int,
    every_s: float,
    say: Callable[[str], None] = lambda line: None,
    broken: str = "",
) -> Report:
    """Run a campaign on a site with an empty queue.

    Args:
        site: The site.
        folder: A new folder that the operator can reach; its state directory gets a small disk.
        faults: How many.
        seed: The seed.
        every_s: Mean seconds between two faults.
        say: Called with a line for each fault.
        broken: How daemon and reaper are broken on purpose, one of `fault_shims.BREAKS`; "": not at all.

    Raises:
        CalledProcessError: The small disk cannot be made.
    """
    state = folder / "state"
    state.mkdir()
    options = f"size=4m,mode=0700,uid={site.uid(OPERATOR)}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", state], check=True, capture_output=True)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
        for who in site.services:
            os.setpriority(os.PRIO_PGRP, os.getpgid(site.pid(who)), NICE)
        with closing(World(site, folder, broken)) as world:
            return Campaign(world, seed, say).run(plan(seed, faults, every_s))
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
        subprocess.run(["umount", "--lazy", state], check=False)


def main() -> int:
    """Run a campaign in a site of its own; 1 if there was a violation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--every", type=float, default=2.5, help="mean seconds between two faults (default: 2.5)")
    parser.add_argument(
        "--keep", metavar="FOLDER", type=Path, help="keep what led to it: logs, commands, the jobs' states"
    )
    parser.add_argument("--break", dest="broken", choices=BREAKS, default="", help="break the daemon: it must be found")
    given = parser.parse_args()
    guardian.start()
    with tempfile.TemporaryDirectory(dir=guardian.folder(), ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        site = SlurmSite(Path(name) / "slurm")
        try:
            site.up()
            folder = site.shared() / "daemon"
            folder.mkdir()
            said = partial(print, flush=True)
            report = inject(site, folder, given.faults, given.seed, given.every, said, given.broken)
            print(report.table(), flush=True)
        finally:
            if given.keep:
                shutil.copytree(site.path / "log", given.keep / "slurm", dirs_exist_ok=True)
                for kept in ("log", "history", "shims/sent"):
                    shutil.copy(site.shared() / "daemon" / kept, given.keep)
            site.down()
    return bool(report.violations)


if __name__ == "__main__":
    sys.exit(main())
