"""The kinds of faults: what each does to a world, for how long, and what must not be touched by two at a time.

Rule: a fault draws from its own generator only, and what it does has ended when its generator function ends. It yields
the seconds until it goes on.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from fault_oracle import Job
from fault_shims import FAKETIME, READS, WRITES
from fault_world import PENDING, World
from real_world import COMMAND
from slurm_site import OPERATOR

Steps = Iterator[float]
#: Seconds that slurmctld needs to write its state.
WRITING_S = 1.0
#: Seconds by which a user moves the begin time of a job that is about to be placed.
LATER_S = 30.0
#: Seconds that Slurm needs after an outage: credentials that expired, nodes that report again.
BACK_S = 12.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: its steps, how often it is drawn, and what it has to itself while it lasts."""

    steps: Callable[[World, random.Random], Steps]
    weight: float
    touches: tuple[str, ...] = ()


def kill_daemon(world: World, draw: random.Random) -> Steps:
    """Kill the daemon, and start it again some seconds later."""
    world.kill_daemon(draw.choice((0.2, 1.0, 3.0, 8.0)))
    yield from served(world)


def served(world: World) -> Steps:
    """Wait until a daemon serves, so that the next fault hits one, and a little longer."""
    for _ in range(40):
        if not world.serves:
            yield 0.5
    yield 2.0


def stop_daemon(world: World, draw: random.Random) -> Steps:
    """Freeze the daemon; what it read is old when it goes on."""
    process = world.daemon.process
    if process is not None:
        process.send_signal(signal.SIGSTOP)
        yield draw.choice((0.5, 2.5, 5.0, 12.0))
        process.send_signal(signal.SIGCONT)


def end_daemon(world: World, draw: random.Random) -> Steps:
    """End the daemon as systemd does, and start it again."""
    if world.daemon.process is not None:
        world.serving = False
        world.daemon.process.terminate()
        yield draw.choice((1.0, 4.0))
        world.serving = True
        yield from served(world)


def end_controller(number: signal.Signals, world: World, draw: random.Random) -> Steps:
    """End slurmctld, and start it again. Killed with -9, or because it did not end, it has not written all."""
    patience, before = 12.0, _written(world)
    if draw.random() < 0.5:  # right after it has written its state, it loses little
        for _ in range(30):
            if _written(world) == before:
                yield 0.2
    since = time.time()
    os.kill(world.site.pid("slurmctld"), number)
    while world.site.pid("slurmctld"):
        yield 0.2
        patience -= 0.2
        if patience < 0:
            number = signal.SIGKILL
            os.kill(world.site.pid("slurmctld"), number)
    world.kills.append((_written(world) - WRITING_S * (number is signal.SIGKILL), time.time()))
    yield draw.choice((0.5, 3.0, 8.0))
    while not world.site.controller_answers():  # without slurmdbd it may end at once, and is started again
        world.site.launch_controller()
        yield 1.0
    world.outage(since, BACK_S)


def _written(world: World) -> float:
    """When slurmctld last wrote what it knows of its jobs; while it replaces the file there is the one before."""
    for name in ("job_state", "job_state.old"):
        with suppress(FileNotFoundError):
            return (world.site.path / "controller" / name).stat().st_mtime
    return 0.0


def freeze(who: str, world: World, draw: random.Random) -> Steps:
    """Freeze a service for less, and for more, than any command waits."""
    since = time.time()
    with suppress(AssertionError):
        world.site.signal(who, signal.SIGSTOP)
    yield draw.choice((1.0, 4.0, 7.0, 12.0))
    with suppress(AssertionError):
        world.site.signal(who, signal.SIGCONT)
    if who != "slurmdbd":
        world.outage(since, BACK_S)


def no_munge(world: World, draw: random.Random) -> Steps:
    """Munge is away."""
    since = time.time()
    with suppress(AssertionError):
        world.site.signal("munged", signal.SIGTERM)
    yield draw.choice((1.0, 4.0, 8.0))
    world.site.start_munge()
    world.outage(since, BACK_S)


def no_accounting(world: World, draw: random.Random) -> Steps:
    """slurmdbd is killed, and started again."""
    world.site.signal("slurmdbd", signal.SIGKILL)
    yield draw.choice((2.0, 8.0))
    world.site.start_accounting()


def node(how: str, world: World, draw: random.Random) -> Steps:
    """A node with a job dies, is set down or drained, and comes back or stays away; at most three are away at a time."""
    busy = [job.nodes for job in world.jobs.values() if job.state == "RUNNING" and re.fullmatch(r"n\d+", job.nodes)]
    name, away_s = draw.choice(busy or [f"n{draw.randint(1, world.site.nodes)}"]), draw.choice((3, 12, 120, 120))
    if name in world.down or len(world.down) >= 3:
        return
    world.down.add(name)
    while not world.answers:
        yield 0.5
    if how == "die":
        world.kill_node(name)
    state, heard = f"State={'DRAIN' if how == 'drain' else 'DOWN'}", list[bool]()
    while not any(heard):  # else Slurm would not know that its jobs are gone
        argv = ("scontrol", "update", f"NodeName={name}", state, "Reason=fault")
        world.as_user("root", *argv, then=lambda code, out: heard.append(code == 0))
        yield 2.0
    for _ in range(away_s):
        if not world.ending:
            yield 1.0
    world.down.discard(name)


def command(name: str, mode: str, world: World, draw: random.Random) -> Steps:
    """A command of the daemon's goes wrong, once at an exact moment or for some seconds."""
    world.shims.set(name, mode)
    if mode.startswith("kill"):
        for _ in range(50):
            if world.shims.is_set(name):
                yield 0.2
        if not world.shims.is_set(name):
            world.sprung += 1
            yield from served(world)
    else:
        yield 8.0 if mode in ("slow", "late") else draw.choice((1.5, 4.0))
    world.shims.set(name, "")


def clock(world: World, draw: random.Random) -> Steps:
    """The clock of the daemon and of its commands is stepped, and back."""
    world.shims.set("clock", draw.choice(("-3600", "+3600", "+30", "-30", "+4")))
    yield draw.choice((2.0, 6.0))
    world.shims.set("clock", "+0")


def full_state(world: World, draw: random.Random) -> Steps:
    """The disk with the state directory is full."""
    filling = world.folder / "state" / "filling"
    with suppress(OSError), filling.open("wb", buffering=0) as file:
        for size in (65536, 4096, 512):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)
    yield draw.choice((2.0, 6.0))
    filling.unlink(missing_ok=True)


def read_only_state(world: World, draw: random.Random) -> Steps:
    """No file can be made or removed in the state directory."""
    folders = [path for path in (world.folder / "state").rglob("*") if path.is_dir()] + [world.folder / "state"]
    for folder in folders:
        with suppress(OSError):
            folder.chmod(0o500)
    yield draw.choice((2.0, 6.0))
    for folder in folders:
        with suppress(OSError):
            folder.chmod(0o700)


def deleted_state(world: World, draw: random.Random) -> Steps:
    """Somebody deletes everything in the state directory; an administrator restarts the daemon."""
    for job in world.jobs.values():
        job.known = False
    for path in (world.folder / "state").glob("*"):
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    yield 5.0
    if world.daemon.process is not None:  # which has said that it goes on without a journal
        world.daemon.process.terminate()
        yield 0.5
    yield from served(world)


def second_daemon(world: World, draw: random.Random) -> Steps:
    """A second daemon is started with the same configuration."""
    argv = [*world.daemon.prefix, *COMMAND, "daemon", "--config", str(world.daemon.config)]
    second = subprocess.Popen(
        argv, env=world.daemon.environment, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    yield 4.0
    second.kill()
    second.wait()


def rival(world: World, draw: random.Random) -> Steps:
    """Another daemon, with a state of its own, places the same jobs."""
    other = world.use_state_of(world.folder / "rival")
    shutil.chown(other.folder, OPERATOR)
    other.spawn()
    yield draw.choice((4.0, 8.0))
    other.stop(draw.choice((signal.SIGKILL, signal.SIGTERM)))


def reap(world: World, draw: random.Random) -> Steps:
    """The reaper runs, with commands that go wrong if they do so for the daemon."""
    world.as_user("root", "true", then=lambda code, out: world.reap(shims=True))
    yield 0.0


def cancel(world: World, draw: random.Random) -> Steps:
    """A user cancels a job of theirs."""
    if job := world.some(draw, PENDING, "RUNNING"):
        job.cancelled = time.time()
        world.change(job, "scancel", str(job.id), then=lambda: None)
    yield 0.0


def requeue(world: World, draw: random.Random) -> Steps:
    """A user sends a running job back to the queue."""
    if job := world.some(draw, "RUNNING"):
        world.change(job, "scontrol", "requeue", str(job.id), then=lambda: None)
    yield 0.0


def hold(world: World, draw: random.Random) -> Steps:
    """A user holds a job, and releases it."""
    if job := world.some(draw, PENDING):
        held, began = [0.0], 0.0
        job.asked.pop("EligibleTime", None)

        def accepted() -> None:
            held[0] = time.time()
            job.holds.append((held[0], float("inf")))

        def released() -> None:
            job.holds[:] = [span for span in job.holds if span[0] != held[0]] + [(held[0], began)]

        world.change(job, "scontrol", "hold", str(job.id), then=accepted)
        yield draw.choice((3.0, 10.0))
        while not world.answers:
            yield 1.0
        began = time.time()
        world.change(job, "scontrol", "release", str(job.id), then=released)


def move_begin(world: World, draw: random.Random) -> Steps:
    """A user moves the begin time of a job, to earlier or later."""
    if job := world.some(draw, PENDING):
        later = draw.choice((3, 6, 12, 20))
        job.asked.pop("EligibleTime", None)
        now, known = time.time(), world.knows(job)

        def accepted(job: Job = job) -> None:
            job.known |= known
            job.begins.append((time.time(), float(int(now + later))))
            job.due = max(now + later + 2.0, time.time())

        world.change(job, "scontrol", "update", f"JobId={job.id}", f"StartTime=now+{later}", then=accepted)
    yield 0.0


def move_placed(world: World, draw: random.Random) -> Steps:
    """A user moves the begin time of a job that the daemon is about to place, after it has read the job for its plan."""
    for name in ("planning", "reading", "go"):
        world.shims.set(name, "")
    world.shims.set("squeue", "stale")
    for kind in ("held", "held", "free"):
        world.submit(f"s{len(world.jobs)}-{kind}", draw, kind)
    for _ in range(120):
        if not (read := re.search(r"--jobs=([\d,]+)", world.shims.read("reading"))):
            yield 0.1
    world.shims.set("squeue", "")
    job = world.of_id(int(draw.choice(read[1].split(",")))) if read else None
    if job is None:
        return
    until, known = float(int(time.time() + LATER_S)), world.knows(job)

    def accepted(job: Job = job) -> None:
        if world.shims.is_set("reading"):  # the daemon has read nothing since
            world.shims.set("go", "on")
            job.begins.append((time.time(), until))
            job.known |= known
            job.due = max(job.due, until + 2.0)
        else:
            job.unsure = True

    job.asked.pop("EligibleTime", None)
    world.change(job, "scontrol", "update", f"JobId={job.id}", f"StartTime=uts{until:.0f}", then=accepted)
    yield 4.0


def begins_placed(world: World, draw: random.Random) -> Steps:
    """Jobs begin by themselves while the daemon's command that pins them is on its way."""
    jobs: list[Job] = []
    world.shims.set("scontrol", "begins")
    for _ in range(3):
        for _ in range(20):
            if not (world.answers and world.serves):
                yield 0.5
        jobs += [world.submit(f"s{len(world.jobs)}-short", draw, "short") for _ in range(2)]
        world.spare(jobs)
        for _ in range(25):
            world.shims.set("caught", "\n".join(str(job.id) for job in jobs if job.id))
            yield 0.2
    world.shims.set("scontrol", "")
    world.shims.set("caught", "")
    world.spare(jobs, False)


def comment(world: World, draw: random.Random) -> Steps:
    """A user writes another comment on a job, with or without the words of pilotfish."""
    if job := world.some(draw, PENDING, "RUNNING"):
        text = draw.choice(("mine", " two  blanks ", "pilotfish", job.asked.get("Comment", "") + " more"))
        job.asked.pop("Comment", None)

        def accepted(job: Job = job) -> None:
            if job.name.partition("-")[2] != "scribbler":
                job.asked["Comment"] = text

        world.change(job, "scontrol", "update", f"JobId={job.id}", f"Comment={text}", then=accepted)
    yield 0.0


def change(world: World, draw: random.Random) -> Steps:
    """A user changes the nodes or the time limit of a job that waits."""
    if job := world.some(draw, PENDING):
        name, field, value = draw.choice(
            (("ExcNodeList", "ExcNodeList", f"n{draw.randint(1, world.site.nodes)}"), ("TimeLimit", "TimeLimit", "2"))
        )
        if job.own_nodes and name == "ExcNodeList":
            return
        job.asked.pop(field, None)

        def accepted(job: Job = job) -> None:
            job.asked[field] = "00:02:00" if field == "TimeLimit" else value
            job.one_node &= field == "TimeLimit"

        world.change(job, "scontrol", "update", f"JobId={job.id}", f"{name}={value}", then=accepted)
    yield 0.0


def _touches(name: str, mode: str) -> tuple[str, ...]:
    return (name, "daemon") if mode.startswith("kill") else (name,)


KINDS = {
    "daemon: kill -9": Kind(kill_daemon, 8, ("daemon",)),
    "daemon: SIGSTOP": Kind(stop_daemon, 4, ("daemon",)),
    "daemon: SIGTERM": Kind(end_daemon, 1, ("daemon",)),
    "daemon: a second": Kind(second_daemon, 2, ("second",)),
    "daemon: a rival": Kind(rival, 1, ("second",)),
    "reaper": Kind(reap, 3),
    "slurmctld: kill -9": Kind(partial(end_controller, signal.SIGKILL), 1.5, ("controller", "rest")),
    "slurmctld: SIGTERM": Kind(partial(end_controller, signal.SIGTERM), 1.5, ("controller", "rest")),
    "slurmctld: SIGSTOP": Kind(partial(freeze, "slurmctld"), 3, ("controller", "rest")),
    "slurmdbd: kill -9": Kind(no_accounting, 1.5, ("accounting",)),
    "slurmdbd: SIGSTOP": Kind(partial(freeze, "slurmdbd"), 1.5, ("accounting",)),
    "munge: away": Kind(no_munge, 2, ("munge", "controller", "accounting", "rest")),
    "node: dies": Kind(partial(node, "die"), 5),
    "node: down": Kind(partial(node, "down"), 3),
    "node: drained": Kind(partial(node, "drain"), 4),
    "state: full": Kind(full_state, 2, ("state",)),
    "state: read-only": Kind(read_only_state, 2, ("state",)),
    "state: deleted": Kind(deleted_state, 1, ("state", "daemon")),
    "user: cancels": Kind(cancel, 4),
    "user: requeues": Kind(requeue, 5),
    "user: holds": Kind(hold, 4),
    "user: moves the begin": Kind(move_begin, 7),
    "user: moves a placed one": Kind(move_placed, 5, ("squeue", "second")),
    "user: job begins": Kind(begins_placed, 7, ("scontrol", "second")),
    "user: comments": Kind(comment, 5),
    "user: changes": Kind(change, 3),
    **{f"squeue: {mode}": Kind(partial(command, "squeue", mode), 1, _touches("squeue", mode)) for mode in READS},
    **{
        f"scontrol: {mode}": Kind(partial(command, "scontrol", mode), 1.5, _touches("scontrol", mode))
        for mode in WRITES
    },
    **({"clock: stepped": Kind(clock, 3, ("clock",))} if FAKETIME else {}),
}
