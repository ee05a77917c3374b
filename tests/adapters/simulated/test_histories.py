"""Random histories of the daemon beside a resource manager whose users, nodes and answers do what they like.

After each: every job ran exactly once, or once more for each requeue of the manager; no pin of ours kept a job longer
than an allowance, and no hold grew longer; nothing of others was changed; no pin of ours is left. For more of them:
`PILOTFISH_HISTORIES=10000 python -m pytest -q tests/adapters/simulated/test_histories.py`.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.apply import Live
from pilotfish.daemon.assembly import Deciding, assemble
from pilotfish.daemon.due_releases import lapsed, overdue
from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.planning.problem import Options
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.queue import Submission
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.snapshot import JobState, NodeState
from tests.support import effort
from tests.support.played_adapter import Answer, HandOverAdapter
from tests.support.played_manager import QueuedJob, SimulatedManager

KIND = NodeType("small", 2, 1e9, 1e10)
CLUSTER = Cluster("lab", tuple(Node(f"n{i}", KIND) for i in range(1, 4)))
#: How many; 10,000 take about five minutes.
HISTORIES = effort.of(int(os.environ.get("PILOTFISH_HISTORIES", "200")))
#: The reaper runs that often and lets pins become that old, seconds, as its timer does.
REAP_EVERY_S, OLDER_S = 30.0, 30.0
#: Longest time for which a pin of ours may keep a job from starting while the manager answers, seconds.
ALLOWANCE_S = OLDER_S + REAP_EVERY_S + 5.0


#: How each job of a workflow ends.
STATES = {"a": JobState.COMPLETED, "b": JobState.COMPLETED, "bad": JobState.FAILED, "never": JobState.CANCELLED}


class Killed(BaseException):
    """Simulates kill -9: no handler runs."""


class History:
    """A manager, a daemon that may be dead, and a reaper on its timer."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.chance, self.path = chance, folder / "journal.sqlite"
        self.manager = SimulatedManager(
            CLUSTER, start_time=1.7e9, pass_s=chance.choice((0.5, 4.0)), exit_code=lambda job: job.id == "bad"
        )
        self.answers: dict[bool, list[Answer]] = {False: [], True: []}  # those to come, of reads and of changes
        self.deadly: int | None = None  # calls until the daemon dies
        self.reap_at = self.manager.time + REAP_EVERY_S
        self.pinned_s: dict[int, float] = {}  # how long the present pin of a waiting job has kept it, while all answer
        self.workflows: list[str] = []
        self.given_up: set[str] = set()
        self.begun = self.manager.time
        self.restless = True
        self.journal: Journal | None = None
        self.steps: list[str] = []
        self.start()

    # The daemon.

    def answer(self, change: bool) -> Answer:
        return self.answers[change].pop() if self.answers[change] else Answer.GIVEN

    def start(self) -> None:
        """Start the daemon, on the journal of the one before."""
        self.journal = Journal(self.path)
        adapter = HandOverAdapter(self.manager, self.answer)
        self.journal.keep_handed_over(adapter.name, self.manager.time)
        watched, guard = self.tripwire(adapter), Guard(bound=0.5, window=3, fallback="slf", enabled=False)
        journal, options = self.tripwire(self.journal), Options(policy="slf")
        self.cycle = assemble(
            watched, Live(watched), journal, Metrics(), Deciding(guard, options), lambda: self.manager.time
        )

    def die(self) -> None:
        """Let what the daemon has not written be lost."""
        self.steps.append("    the daemon dies")
        if self.journal:
            self.journal.close()
        self.journal, self.deadly = None, None

    def tripwire(self, thing):
        outer = self

        class Watched:
            def __getattr__(self, name):
                member = getattr(thing, name)
                if name not in {"snapshot", "refresh", "recall", "apply", "intend", "save", "probe"}:
                    return member

                def call(*args, **kwargs):
                    outer.fate()
                    result = member(*args, **kwargs)
                    outer.fate()
                    return result

                return call

        return Watched()

    def fate(self) -> None:
        """Between two steps of the daemon: it may die, or the world may change."""
        if self.deadly is not None:
            self.deadly -= 1
            if self.deadly < 0:
                raise Killed
        if self.restless and self.chance.random() < 0.1:
            (do,) = self.chance.choices((self.mind, self.node, self.hand_over, self.tick), (6, 1, 1, 3))
            self.note(f"    {do.__name__} meanwhile", do)

    def tick(self) -> None:
        self.advance(1.0)

    def run(self) -> None:
        """One cycle, if the daemon lives."""
        if self.journal is None:
            return
        try:
            self.cycle.run()
        except AdapterError:
            pass
        except Killed:
            self.die()

    # Time.

    def advance(self, seconds: float) -> None:
        """Let time pass; the reaper runs when it is due."""
        target = self.manager.time + seconds
        while self.manager.time < target:
            step = min(target, self.reap_at) - self.manager.time
            before = {number: record.pinned_at for number, record in self.pinned()}
            self.manager.advance(step)
            now = {number: record.pinned_at for number, record in self.pinned()}
            for number in now:
                same = before.get(number) == now[number]
                self.pinned_s[number] = (self.pinned_s.get(number, 0.0) if same else 0.0) + step * (
                    same and not self.manager.away
                )
                assert self.pinned_s[number] <= ALLOWANCE_S, f"job {number} waits for its pin"
            self.pinned_s = {
                number: seconds_pinned for number, seconds_pinned in self.pinned_s.items() if number in now
            }
            if self.manager.time >= self.reap_at:
                self.reap_at += REAP_EVERY_S
                self.reap()

    def pinned(self) -> Iterator[tuple[int, QueuedJob]]:
        for number, record in self.manager.jobs.items():
            if record.pin and not record.key and record.state is JobState.PENDING:
                yield number, record

    def reap(self) -> None:
        """Release what is overdue, without the daemon and its journal."""
        reaper = HandOverAdapter(self.manager)
        try:
            snapshot = reaper.snapshot()
            for release in overdue(snapshot, OLDER_S) + lapsed(snapshot, OLDER_S):
                reaper.apply(release)
        except AdapterError:
            self.pinned_s.clear()  # it comes again, REAP_EVERY_S later

    # What happens.

    def happen(self) -> None:
        """Let one thing happen, often a cycle of the daemon."""
        pick = self.chance.random()
        if pick < 0.45:
            self.note("cycle", self.run)
            self.advance(self.chance.choice((0.2, 1.0, 1.0, 3.0)))
        else:
            weights = {
                self.hand_over: 6, self.submit: 2, self.mind: 6, self.node: 4, self.lose: 4, self.leave: 1, self.give_up: 1,
                self.kill: 3, self.revive: 2, self.idle: 3,
            }  # fmt: skip
            (do,) = self.chance.choices([*weights], [*weights.values()])
            self.note(do.__name__, do)

    def note(self, what: str, do: Callable[[], None]) -> None:
        self.steps.append(f"{self.manager.time - 1.7e9:.1f} {what}")
        do()

    def job(self, name: str, *after: str) -> Job:
        seconds, threads = self.chance.choice((1.0, 5.0, 20.0)), self.chance.choice((1, 2))
        nodes = self.chance.choice((1, 1, 1, 2))
        return Job(name, Profile((ThreadGroup(threads, seconds),)), nodes=nodes, after=after, command=("true",))

    def hand_over(self) -> None:
        self.manager.submit(
            self.job("user"),
            comment=self.chance.choice(("pilotfish", "pilotfish", "pilotfish", "mine")),
            hold_s=self.chance.choice((None, None, 10.0, 30.0, 120.0)),
        )

    def submit(self) -> None:
        """Submit a workflow to the daemon."""
        if self.journal is None:
            return
        name = f"w.{len(self.workflows) + 1}"
        jobs = self.job("a"), self.job("b", "a"), self.job("bad", "b"), self.job("never", "bad")
        flow = Workflow("w", jobs[: self.chance.randint(1, 4)])
        submission = Submission(name, flow, self.manager.time)
        self.journal.submit(submission, None)
        self.workflows.append(name)
        self.cycle.tracker.add(submission)

    def give_up(self) -> None:
        """Let the owner of a workflow cancel it."""
        if self.journal is None or not self.open():
            return
        name = self.chance.choice(self.open())
        self.given_up.add(name)
        entries = self.cycle.tracker.queue.submissions[name].entries.values()
        try:
            self.cycle.tracker.cancel([entry for entry in entries if not entry.state.ended])
        except Killed:
            self.die()

    def mind(self) -> None:
        """Let the user of one job change their mind."""
        waiting = [record for record in self.manager.jobs.values() if not record.key and not record.state.ended]
        if not waiting:
            return
        record = self.chance.choice(waiting)
        number, now = record.number, self.manager.time
        change, minds = self.manager.change, self.chance.randrange(9)
        self.steps.append(f"    mind {minds} of {number}")
        if minds == 0:
            self.manager.cancel(number)
        elif minds == 1:
            self.manager.requeue(number)
        elif minds == 2:
            self.manager.suspend(number)
        elif minds in (3, 4):
            change(number, user_held=not record.user_held)
        elif minds in (5, 6):
            change(number, begin=now + self.chance.choice((0.0, 5.0, 60.0)))
        else:
            change(number, comment=self.chance.choice(("", "pilotfish", "other words")))

    def node(self) -> None:
        """Let a node fail, rather one that a job is pinned to, or come back."""
        states = (NodeState.UP, NodeState.DRAINED, NodeState.DOWN)
        pinned_names = [name for _, record in self.pinned() for name in record.pin]
        names = pinned_names or [node.name for node in CLUSTER.nodes]
        self.manager.set_node(self.chance.choice(names), self.chance.choice(states))

    def lose(self) -> None:
        change = self.chance.random() < 0.7
        self.answers[change] += self.chance.choices([*Answer], k=self.chance.randint(1, 4))

    def leave(self) -> None:
        self.manager.away = not self.manager.away

    def kill(self) -> None:
        self.deadly = self.chance.randrange(16)

    def revive(self) -> None:
        if self.journal is None:
            self.start()

    def idle(self) -> None:
        self.advance(self.chance.choice((5.0, 40.0)))

    # The end.

    def settle(self, *, alive: bool) -> None:
        """Let everything be well again, and time pass until all jobs have ended."""
        self.manager.away, self.restless, self.answers = False, False, {False: [], True: []}
        for node in CLUSTER.nodes:
            self.manager.set_node(node.name, NodeState.UP)
        for record in self.manager.jobs.values():
            if record.state is JobState.SUSPENDED:
                self.manager.suspend(record.number)
            self.manager.change(record.number, user_held=False)
        self.deadly = None
        if alive and self.journal is None:
            self.start()
        if not alive:
            self.die()
        for _ in range(400):
            self.run()
            self.advance(2.0)
            if all(record.state.ended for record in self.manager.jobs.values()) and (not alive or not self.open()):
                return
        raise AssertionError("not all jobs have ended")

    def open(self) -> list[str]:
        """Return the workflows that have not ended."""
        return [name for name in self.workflows if name in self.cycle.tracker.queue.submissions]

    def check(self, *, alive: bool) -> None:
        """Assert what holds after every history."""
        for record in self.manager.jobs.values():
            least = 0 if record.state is JobState.CANCELLED or record.skipped else 1
            assert least <= record.starts <= 1 + record.requeues, f"job {record.number} ran {record.starts} times"
            assert record.starts or record.skipped or record.state is JobState.CANCELLED
        keys = [record.key for record in self.manager.jobs.values() if record.key and not record.skipped]
        assert len(keys) == len(set(keys))
        assert not dict(self.pinned())
        for change in self.manager.changes:
            fields, before = change.fields, change.before
            assert not before.key and fields.keys() <= {"pin", "pinned_at", "begin", "let_go"}
            if fields.get("pin"):
                assert before.handed_over and not before.user_held
                assert before.begin <= change.time or before.held_for_us(change.time)
            elif "begin" in fields:
                assert before.held_for_us(change.time)
            assert fields.get("begin", before.begin) <= before.begin, "no hold grows longer"
        if alive:
            for name in self.workflows:
                for entry in self.journal.find(name).entries.values():
                    job_record = self.manager.find(entry.key)
                    if name in self.given_up:  # a request that was given up may still be carried out after the cancel
                        assert entry.state.ended and entry.finish_time >= self.begun, entry
                    else:
                        assert entry.state == (
                            job_record.state if job_record and not job_record.skipped else JobState.CANCELLED
                        ), entry
                        assert entry.state == STATES[entry.job.id], entry


@contextmanager
def history(chance: random.Random) -> Iterator[History]:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    created = History(folder, chance)
    try:
        yield created
    except Exception as error:
        raise AssertionError(f"{error}\n" + "\n".join(created.steps)) from error
    finally:
        created.die()
        shutil.rmtree(folder)


@pytest.mark.parametrize("number", range(HISTORIES))
def test_every_job_runs_once_whatever_happens(number: int) -> None:
    chance = random.Random(number)
    with history(chance) as events:
        alive = chance.random() < 0.7
        for _ in range(chance.choice((10, 30, 60))):
            events.happen()
        events.settle(alive=alive)
        events.check(alive=alive)
