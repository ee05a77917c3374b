"""Jobs of ours that the resource manager gets before they can start: who starts, cancels and forgets them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from pilotfish.daemon.apply import Live, Recording
from pilotfish.daemon.assembly import Deciding, assemble
from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.loop import Cycle
from pilotfish.daemon.planning.problem import Options
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.queue import Submission
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.snapshot import JobState
from tests.support.played_adapter import Answer, HandOverAdapter
from tests.support.played_manager import SimulatedManager

CLUSTER = Cluster("lab", (Node("n1", NodeType("small", 2, 1e9, 1e10)),))


class Site:
    """A daemon next to a manager on which a job named `bad` fails."""

    def __init__(self, path: Path) -> None:
        self.manager = SimulatedManager(CLUSTER, start_time=1.7e9, exit_code=lambda job: job.id == "bad")
        self.path, self.answers = path, list[Answer]()
        self.journal: Journal | None = None
        self.start()

    def start(self, *, dry: bool = False) -> None:
        """Start the daemon, on the journal of the one before."""
        if self.journal is not None:
            self.journal.close()
        self.journal = Journal(self.path / "journal.sqlite")
        adapter = HandOverAdapter(
            self.manager, lambda change: self.answers.pop() if change and self.answers else Answer.GIVEN
        )
        guard, self.shown = Guard(bound=0.5, window=3, fallback="slf", enabled=False), list[str]()
        applier = Recording(self.shown.append) if dry else Live(adapter)
        options, clock = Options(policy="slf"), lambda: self.manager.time
        self.cycle: Cycle = assemble(adapter, applier, self.journal, Metrics(), Deciding(guard, options), clock)

    def submit(self, **jobs: str) -> Submission:
        """Submit a workflow of jobs of ten seconds: the names of those before each, one letter or `bad`."""
        made = tuple(
            Job(name, Profile((ThreadGroup(1, 10.0),)), after=tuple(after.split()), command=("true",))
            for name, after in jobs.items()
        )
        submission = Submission("w.1", Workflow("w", made), self.manager.time)
        self.journal.submit(submission, None)
        self.cycle.tracker.add(submission)
        return submission

    def run(self, seconds: float) -> None:
        """Let time pass, with a cycle each half second."""
        for _ in range(int(2 * seconds)):
            self.cycle.run()
            self.manager.advance(0.5)

    def known(self) -> list[str]:
        """The jobs that the manager has or had, in the order in which it got them."""
        return [record.key.removeprefix("w.1/") for record in self.manager.jobs.values()]

    def states(self) -> dict[str, str]:
        """The states of the workflow's jobs in the journal."""
        return {name: str(entry.state) for name, entry in self.journal.find("w.1").entries.items()}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.journal.close()


def test_what_follows_waits_in_the_manager_and_starts_once_after_it(site: Site) -> None:
    site.submit(a="", b="a", c="b", d="a c")
    site.run(4)
    assert site.known() == ["a", "b", "c", "d"] and [record.starts for record in site.manager.jobs.values()] == [
        1,
        0,
        0,
        0,
    ]
    site.run(60)
    assert set(site.states().values()) == {"completed"} and len(site.known()) == 4
    ends = [(record.start_time, record.finish_time) for record in site.manager.jobs.values()]
    assert all(after[0] >= before[1] for before, after in pairwise(ends))
    assert [record.starts for record in site.manager.jobs.values()] == [1] * 4


def test_a_failure_removes_what_follows(site: Site) -> None:
    site.submit(bad="", b="bad", c="b", other="")
    site.run(4)
    assert set(site.known()) == {"bad", "b", "c", "other"}
    site.run(20)
    assert site.states() == {"bad": "failed", "b": "cancelled", "c": "cancelled", "other": "completed"}
    for name in "bc":
        entry = site.journal.find("w.1").entries[name]
        assert entry.reason.startswith("'bad', which it waits for, failed") or "'b', which" in entry.reason
        record = site.manager.find(f"w.1/{name}")
        assert (record.state, record.starts) == (JobState.CANCELLED, 0)


@pytest.mark.parametrize("restart", [False, True])
def test_a_cancel_removes_what_waits_there_also_right_after_a_restart(site: Site, restart: bool) -> None:
    site.submit(a="", b="a", c="b")
    site.run(4)
    if restart:
        site.start()
    queue = site.cycle.tracker.queue
    site.cycle.tracker.cancel([entry for entry in queue.entries() if entry.job.id != "a"])
    assert not queue.find("w.1/b").state.ended  # until the manager says so
    site.run(30)
    assert site.states() == {"a": "completed", "b": "cancelled", "c": "cancelled"}
    assert all(site.manager.find(f"w.1/{name}").starts == 0 for name in "bc")
    assert "cancelled by a user" in site.journal.find("w.1").entries["b"].reason


def test_what_the_manager_started_without_us_too_early_runs_later(site: Site) -> None:
    """The daemon is away for so long that the manager holds the job no more, and the job before it fails to start."""
    site.submit(a="", b="a")
    site.run(4)
    first = site.manager.find("w.1/b")
    site.manager._set(first, state=JobState.FAILED, finish_time=site.manager.time, exit_code=121, skipped=True)
    site.run(40)
    assert site.states() == {"a": "completed", "b": "completed"}
    assert site.known() == ["a", "b", "b"] and site.manager.find("w.1/b").starts == 1


@pytest.mark.parametrize("answer", [Answer.LOST, Answer.DROPPED, Answer.LATE])
def test_a_submission_without_an_answer_is_repeated_and_runs_once(site: Site, answer: Answer) -> None:
    site.submit(a="", b="a")
    site.cycle.run()  # starts a
    site.answers.append(answer)
    site.run(60)
    assert set(site.states().values()) == {"completed"}
    assert [record.starts for record in site.manager.jobs.values()] == [1, 1]


def test_a_dry_run_says_it_once_and_does_nothing(site: Site) -> None:
    site.start(dry=True)
    site.submit(a="", b="a")
    site.run(10)
    assert site.shown == ["start w.1/a on n1"] and not site.manager.jobs
