"""A site, an operator's daemon under supervision, users with jobs, and what is known of all of them.

Rule: what a user asked for counts once Slurm has accepted it; where Slurm did not answer, that job's times say nothing.
An administrator looks after it as on a site: a daemon that died is started again, nodes come back, the reaper has its
timer.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import yaml
from fault_oracle import Job, Run, Span, differences
from fault_shims import Shims
from real_world import run_as
from slurm_daemon import SlurmDaemon
from slurm_site import OPERATOR, SlurmSite

from pilotfish.formats.hostlist import fold

USERS = ("games", "news")
HOLDS_S = (8, 12, 16)
LOOK_S, REAP_S, OLDER_S = 5.0, 12.0, 3
#: Seconds after which a job that has ended, and runs for Slurm, was forgotten.
GHOST_S = 25.0
#: Seconds after which a job that may begin has no room, and how many such jobs may wait.
CROWDED_S, CROWD = 12.0, 12
#: Why a job waits that an administrator must release.
STUCK = ("launch_failed_requeued_held", "DependencyNeverSatisfied")
#: What is kept of a job's history.
TOLD = (
    "JobId", "JobState", "Reason", "Restarts", "EligibleTime", "StartTime", "ReqNodeList", "ExcNodeList", "NodeList",
    "Priority", "TimeLimit", "Comment", "AdminComment",
)  # fmt: skip
PENDING = "PENDING"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")
AWAY = frozenset(("controller", "munge"))


class World:
    """What a campaign of faults happens to.

    Args:
        site: A site whose queue is empty.
        folder: A new folder that the operator can reach.
        broken: How daemon and reaper are broken on purpose, one of `fault_shims.BREAKS`; "": not at all.
    """

    def __init__(self, site: SlurmSite, folder: Path, broken: str = "") -> None:
        self.site, self.folder = site, folder
        self.trail = site.shared() / f"trail-{time.time():.3f}"
        self.daemon = SlurmDaemon(folder, site.nodes, site.cpus, OPERATOR, timeout_s=5.0)
        config = yaml.safe_load(self.daemon.config.read_text())
        told = {"cycle_seconds": 1, "events": {"users": ["slurm"], "path": str(site.events)}}
        self.daemon.config.write_text(yaml.safe_dump(config | told))
        self.shims = Shims(folder / "shims", OPERATOR, broken)
        self.daemon.environment |= self.shims.environment | site.environment
        self.jobs: dict[str, Job] = {}
        self.down, self.outages, self.touched = set[str](), list[Span](), set[str]()
        self.kills: list[Span] = []
        self._changing, self._changed = set[str](), set[str]()
        self.start_after, self.serving, self._log_size = 0.0, True, 0
        self.ending = self.draining = False  #: whether no more faults begin, and all have ended
        self.ghosts, self.sprung = set[str](), 0
        self.said: list[str] = []
        self.ends: list[tuple[float, int]] = []
        self.configs = [self.daemon.config]
        self._pool = ThreadPoolExecutor(6)
        self._looked, self._lock, self._end = 0.0, threading.Lock(), threading.Event()
        self._pinned: dict[str, float] = {}
        self._told: dict[str, str] = {}
        self._shown, self._shown_at = set[str](), 0.0
        self._history = (folder / "history").open("w", buffering=1)
        self._reaper = threading.Thread(target=self._reap_for_ever)
        self._log = site.path / "log" / "slurmctld.log"
        self._log_from = self._log.stat().st_size
        self.daemon.start()
        self._reaper.start()
        self.began = time.time()

    @property
    def answers(self) -> bool:
        """Whether Slurm is there to answer."""
        return not self.touched & AWAY

    @property
    def crowded(self) -> bool:
        """Whether Slurm had no room for many jobs when it was asked last: more would say nothing of pilotfish."""
        before = self._shown_at - CROWDED_S
        waiting = (job for job in [*self.jobs.values()][-300:] if job.state == PENDING and job.due < before)
        return sum(not job.tied and not job.ahead for job in waiting) > CROWD

    @property
    def serves(self) -> bool:
        """Whether the daemon that runs has said that it serves."""
        return self.daemon.process is not None and b"serves cluster" in self.daemon.log.read_bytes()[self._log_size :]

    def knows(self, job: Job) -> bool:
        """Whether the daemon has noted with which begin time a job was handed over."""
        with suppress(OSError, ValueError):
            return str(job.id) in json.loads((self.folder / "state" / "slurm" / "begins.json").read_text())
        return False

    def as_user(self, user: str, *argv: str, then: Callable[[int, str], None] = lambda code, out: None) -> None:
        """Run a command as a user, in the background; `then` gets its exit code (-1: it gave up) and what it printed."""

        def run() -> None:
            words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *argv]
            if user == "root":
                words = [*argv]
            try:
                done = subprocess.run(
                    words, capture_output=True, text=True, timeout=60, env=self.site._surroundings(), cwd="/"
                )
                then(done.returncode, done.stdout.strip())
            except subprocess.TimeoutExpired:
                then(-1, "")

        self._pool.submit(run)

    def submit(self, name: str, draw: random.Random, kind: str) -> Job:
        """Let a user submit a job of some kind, and return it; the same draws make the same job."""
        user, seconds = draw.choice(USERS), draw.choice((0.5, 1, 2, 4, 8))
        hold = draw.choice(HOLDS_S) if kind not in ("free", "other", "still") else 0
        hold = 3 if kind == "short" else hold
        comment = {"free": "pilotfish", "other": "mine", "still": "not for pilotfish-"}.get(
            kind, f"  for me pilotfish:hold={hold}"
        )
        cpus, nodes = draw.choice((1, 1, 2, 4)) if kind != "short" else 1, {"wide": "2", "range": "1-2"}.get(kind, "1")
        options = [f"--cpus-per-task={cpus}", f"--nodes={nodes}", "--time=5", f"--comment={comment}"]
        own = f"n{draw.randint(1, self.site.nodes)}" if kind in ("named", "still") else ""
        excluded = f"n{draw.randint(1, self.site.nodes)}" if draw.random() < 0.2 and not own else ""
        if kind == "short":  # Slurm has no choice but to start it where the daemon does
            only = draw.randint(1, self.site.nodes)
            excluded = fold([f"n{number}" for number in range(1, self.site.nodes + 1) if number != only])
        options += [f"--nodelist={own}"] * bool(own) + [f"--exclude={excluded}"] * bool(excluded)
        options += [f"--begin=now+{hold}"] * bool(hold) + ["--begin=now+7200"] * (kind == "still")
        ahead = None
        before = [job for job in self.jobs.values() if job.user == user and job.handed and job.id and not job.cancelled]
        if kind == "after" and before:
            ahead = draw.choice(before[-6:])
            options.append(f"--dependency=afterany:{ahead.id}")
        now, asked = time.time(), {"JobName": name, "Comment": comment, "ExcNodeList": excluded or "(null)"}
        asked["TimeLimit"] = "00:05:00"
        if kind in ("other", "still"):
            asked |= {"ReqNodeList": own or "(null)", "AdminComment": ""}
        elif own:
            asked["ReqNodeList"] = own
        job = Job(name, user, kind not in ("other", "still"), now, now + hold, asked, own_nodes=bool(own), ahead=ahead)
        job.one_node = kind == "short"
        self.jobs[name] = job
        line = (
            f'say() {{ echo "$1 $SLURM_JOB_NAME $SLURM_JOB_ID ${{SLURM_RESTART_COUNT:-0}} $(date +%s.%N)" >>{self.trail}.{user}; }}'
            f"; say B; {'scontrol update JobId=$SLURM_JOB_ID Comment=mine;' if kind == 'scribbler' else ''}"
            f" sleep {seconds}; say E"
        )
        if kind == "scribbler":
            del job.asked["Comment"]

        def then(code: int, out: str) -> None:
            if code == 0 and out.split(";")[0].isdecimal():
                job.id = int(out.split(";")[0])
                job.due += time.time() - now
                job.held = (now + hold, time.time() + hold)
            else:
                job.unsure = True

        argv = ("sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", f"--job-name={name}", "--requeue")
        self.as_user(user, *argv, *options, f"--wrap={line}", then=then)
        return job

    def change(self, job: Job, *argv: str, then: Callable[[], None]) -> None:
        """Let its user change a job; `then` is called if Slurm said that it is done."""
        since, answered = time.time(), self.answers
        self._changing.add(job.name)
        self._changed.add(job.name)

        def after(code: int, out: str) -> None:
            self._changing.discard(job.name)
            if code == 0:
                then()
            elif code < 0 or not (answered and self.answers) or any(end > since for _, end in self.outages[-9:]):
                job.unsure = True  # Slurm may have done it all the same
                job.asked.clear()

        self.as_user(job.user, *argv, then=after)

    def spare(self, jobs: Iterable[Job], spared: bool = True) -> None:
        """Let users change none of these jobs, or let them again."""
        change = self._changing.update if spared else self._changing.difference_update
        change(job.name for job in jobs)

    def of_id(self, number: int) -> Job | None:
        """Return the job with an id that its user may change just now."""
        job = next((job for job in reversed([*self.jobs.values()]) if job.id == number), None)
        free = job is not None and not job.cancelled and job.handed and job.name not in self._changing
        return job if free and self.answers else None

    def some(self, draw: random.Random, *states: str) -> Job | None:
        """Return a job that is in one of these states as far as is known, and that its user does not change just now."""
        owner = {job.id: job for job in self.jobs.values()}  # Slurm gives the id of a job that it lost to another one
        found = [
            job
            for job in [*self.jobs.values()][-60:]
            if job.id and owner[job.id] is job and (job.state or PENDING) in states
            if not job.cancelled and job.name not in self._changing
        ]
        return draw.choice(found) if found else None

    def tend(self) -> None:
        """Do what an administrator and systemd do: called again and again."""
        process = self.daemon.process
        if process is not None and process.poll() is not None:
            if process.returncode != -signal.SIGKILL:
                self.ends.append((time.time(), process.poll() or 0))
            self.daemon.process, self.start_after = None, time.monotonic() + 1.5
        if self.serving and self.daemon.process is None and time.monotonic() >= self.start_after:
            self._log_size = self.daemon.log.stat().st_size
            self.daemon.spawn()
        if self.answers and time.monotonic() - self._looked > LOOK_S:
            self.look()
            self._tend_nodes()
            self._looked = time.monotonic()

    def kill_daemon(self, rest_s: float) -> None:
        """Kill it with -9; it is started again after so many seconds."""
        if self.daemon.process is not None:
            with suppress(subprocess.TimeoutExpired):
                self.daemon.stop(signal.SIGKILL)
        self.start_after = time.monotonic() + rest_s

    def kill_node(self, name: str) -> None:
        """Let a node die: its slurmd first, else a job of its would still report a failure, then its jobs."""
        with suppress(AssertionError):
            self.site.signal(f"slurmd.{name}", signal.SIGKILL)
        listed = self.site.run(
            "squeue", "-h", "--states=running,completing", f"--nodelist={name}", "--format=%A", check=False
        )
        jobs = {int(word) for word in listed.split() if word.isdecimal()}
        for process in psutil.process_iter(["cmdline"]):
            words = " ".join(process.info["cmdline"] or ())
            if any(f"slurmstepd: [{job}." in words for job in jobs) and self.site.is_ours(process.pid):
                with suppress(psutil.Error):
                    children = process.children(recursive=True)
                    process.kill()
                    for child in children:
                        with suppress(psutil.Error):
                            child.kill()

    def look(self) -> None:
        """Note how each job stands, and whether what its user asked for is still there."""
        before, at = {job.name: dict(job.asked) for job in self.jobs.values()}, time.time()
        shown = self.site.run("scontrol", "--all", "show", "job", check=False)
        now = time.monotonic()
        self.read_trail()
        listed = [(self.jobs.get(found.get("JobName", "")), found) for found in map(_fields, shown.split("\n\n"))]
        if shown:
            self._shown, self._shown_at = {job.name for job, _ in listed if job is not None}, at
            for job in self.jobs.values():
                if job.state not in ENDED and job.name not in self._shown:
                    job.state = ""
        for listed_job, found in listed:
            if listed_job is None:
                continue
            job = listed_job
            if job.name.endswith("still") and job.name not in self._told and job.name not in self._changed:
                job.asked["EligibleTime"] = found["EligibleTime"]
            told = " ".join(f"{name}={found.get(name)!r}" for name in TOLD)
            if self._told.get(job.name) != told:
                self._told[job.name] = told
                self._history.write(f"{time.time() - self.began:.1f} {job.name} {told}\n")
            job.id, job.restarts = int(found["JobId"]), int(found["Restarts"])
            job.state, job.nodes = found["JobState"].split()[0], found["NodeList"]
            if job.restarts:
                job.requeued = max(job.requeued, time.mktime(time.strptime(found["SubmitTime"], "%Y-%m-%dT%H:%M:%S")))
            job.changed |= differences(job, found, before.get(job.name, {})) if not job.unsure else {}
            pinned = job.handed and not job.own_nodes and job.state == PENDING and found["ReqNodeList"] != "(null)"
            if pinned and job.name in self._pinned:
                job.pinned_s = max(job.pinned_s, now - self._pinned[job.name])
            elif pinned:
                self._pinned[job.name] = now
            else:
                self._pinned.pop(job.name, None)
            if job.state == PENDING and found["Reason"] in STUCK + ("JobHeldUser",) * self.draining:
                job.unsure = True
                self.as_user("root", "scontrol", "release", str(job.id))
            if job.state == "RUNNING" and self._is_ghost(job):
                self.ghosts.add(job.name)
                self.as_user("root", "scancel", str(job.id))

    def all_over(self, since: float) -> bool:
        """Whether Slurm showed, after a time, no job that has not ended; what it has lost it does not show."""
        return self._shown_at > since and all(self.jobs[name].state in ENDED for name in self._shown)

    def _is_ghost(self, job: Job) -> bool:
        """Whether a job has ended and runs for Slurm: slurmctld was told of its end, and ended before it wrote it."""
        run, before = max(job.runs, key=lambda run: run.begin, default=None), time.time() - GHOST_S
        ended = run is not None and run.restart == job.restarts and run.end is not None and run.end < before
        return ended and all(until < before for _, until in self.outages[-3:])

    def outage(self, since: float, more_s: float = 0.0) -> None:
        """Note that Slurm was away until now, and that it needs so many seconds more."""
        self.outages.append((since, time.time() + more_s))
        self._pinned.clear()

    def read_trail(self) -> None:
        """Read what the jobs wrote of their runs."""
        runs: dict[tuple[str, str], list[tuple[str, float]]] = {}
        files = [*self.trail.parent.glob(f"{self.trail.name}.*")]
        for line in (line for file in files for line in file.read_text().splitlines()):
            words = line.split()
            if len(words) == 5:
                runs.setdefault((words[1], words[3]), []).append((words[0], float(words[4])))
        for job in self.jobs.values():
            job.runs.clear()
        for (name, restart), lines in runs.items():
            begins, ends = ([time for what, time in lines if what == which] for which in "BE")
            for number, begin in enumerate(sorted(begins)):
                end = sorted(ends)[number] if number < len(ends) else None
                self.jobs[name].runs.append(Run(int(restart), begin, end))

    def slurmctld_log(self) -> str:
        """What slurmctld logged since the beginning."""
        with self._log.open("rb") as file:
            file.seek(self._log_from)
            return file.read().decode(errors="replace")

    def reap(self, *, shims: bool = False) -> None:
        """Run the reaper once, under the shims or not."""
        for config in self.configs:
            argv = ["reap", "--config", str(config), "--older-than", str(OLDER_S)]
            environment = self.daemon.environment | ({} if shims else self.shims.without)
            done = run_as(OPERATOR, *argv, env=environment)
            self.said += [*done.stdout.splitlines(), *done.stderr.splitlines()]

    def close(self) -> None:
        """End what was started."""
        self._end.set()
        self._reaper.join()
        self._pool.shutdown()
        if self.daemon.process is not None:
            self.daemon.process.send_signal(signal.SIGCONT)
        self.daemon.close()

    def use_state_of(self, folder: Path) -> SlurmDaemon:
        """Return a second daemon with a state of its own, whose pins the reaper looks after, too."""
        folder.mkdir(exist_ok=True)
        config = yaml.safe_load(self.daemon.config.read_text())
        rival = SlurmDaemon(folder, self.site.nodes, self.site.cpus, OPERATOR)
        socket = {"path": str(rival.socket)}
        rival.config.write_text(yaml.safe_dump(config | {"socket": socket, "profiles": str(folder / "p.sqlite")}))
        shutil.chown(rival.config, OPERATOR)
        cache = {"PILOTFISH_CACHE": self.daemon.environment["PILOTFISH_CACHE"]}
        rival.environment |= self.site.environment | cache
        if rival.config not in self.configs:
            self.configs.append(rival.config)
        return rival

    def _reap_for_ever(self) -> None:
        while not self._end.wait(REAP_S):
            with suppress(subprocess.TimeoutExpired):
                self.reap()

    def _tend_nodes(self) -> None:
        listed = self.site.run("sinfo", "-h", "--Node", "--partition=main", "--format=%N %t", check=False)
        for name, state in (line.split() for line in listed.splitlines() if len(line.split()) == 2):
            if name in self.down:
                continue
            if not self.site.pid(f"slurmd.{name}"):
                with suppress(AssertionError):
                    self.site.start_node(name)
            if state.rstrip("*").startswith(("down", "drain", "drng", "fail")):
                self.as_user("root", "scontrol", "update", f"NodeName={name}", "State=RESUME")


def _fields(text: str) -> dict[str, str]:
    """The fields of one job of `scontrol show job`; the comments have a line of their own."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name = line.strip(" ").partition("=")[0]
        if name in ("Comment", "AdminComment"):
            found[name] = line.partition("=")[2].removesuffix(" ")
            continue
        found |= dict(word.split("=", 1) for word in line.split(" ") if "=" in word)
    return found
