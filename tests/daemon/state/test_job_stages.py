"""The stages of a job: the table of moves, its drawing, and laws that hold whatever snapshots show and users want."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pilotfish.daemon.state import job_stages
from pilotfish.daemon.state.applied import Applied
from pilotfish.daemon.state.audit import Decision
from pilotfish.daemon.state.handed_over import take_in
from pilotfish.daemon.state.job_stages import FINAL, MOVES, OURS, STAGE_OF, STATES, TAKEN, JobStage
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.queue import Submission
from pilotfish.daemon.state.queue_entry import Entry
from pilotfish.daemon.state.unsaved import Unsaved
from pilotfish.daemon.state.write_ahead import WriteAhead
from pilotfish.simulate.errors import InvariantError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Workflow
from pilotfish.simulate.model.plan import Place, Submit, SubmitAhead
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot

PAGES = Path(job_stages.__file__).resolve().parents[2] / "docs"
CLUSTER = Cluster("lab", (Node("n1", NodeType("t", 8, 1e9, 1e10)),))


def in_stage(stage: JobStage) -> Entry:
    entry = Entry("w", Job("a", DEFAULT_PROFILE), 0)
    entry.stage, entry.state = stage, sorted(STATES[stage])[0]
    return entry


def test_every_stage_has_its_moves_and_every_state_its_stage() -> None:
    assert set(MOVES) == set(STATES) == set(JobStage) and set(STAGE_OF) == set(JobState)
    assert all(MOVES[stage] == frozenset() for stage in FINAL)
    reached = {JobStage.WAITING}
    while more := {later for stage in reached for later in MOVES[stage]} - reached:
        reached |= more
    assert reached == set(JobStage)


@pytest.mark.parametrize(("before", "after"), list(product(JobStage, JobStage)))
def test_a_job_moves_only_as_the_table_says(
    before: JobStage, after: JobStage, caplog: pytest.LogCaptureFixture
) -> None:
    state = sorted(STATES[after])[0]
    if after is before or after in MOVES[before]:
        entry = in_stage(before)
        entry.move(after, state)
        assert (entry.stage, entry.state) == (after, state)
        return
    with pytest.raises(InvariantError, match=f"moves from {before} to {after}"):
        in_stage(before).move(after, state)


@pytest.mark.parametrize(
    ("before", "after", "stays"), [(JobStage.AHEAD, JobStage.LET_GO, False), (JobStage.ENDED, JobStage.RUNNING, True)]
)
def test_the_service_logs_an_illegal_move_and_follows_it_unless_the_job_has_ended(
    before: JobStage, after: JobStage, stays: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.undo()  # of the fixture that makes it an error
    entry = in_stage(before)
    state = entry.state
    with caplog.at_level(logging.ERROR):
        entry.move(after, JobState.RUNNING)
    assert (entry.stage, entry.state) == ((before, state) if stays else (after, JobState.RUNNING))
    assert [record.message for record in caplog.records] == [
        f"please report this fault of pilotfish: w/a moves from {before} to {after}"
    ]


def test_the_drawing_shows_the_stages_and_moves_of_the_table() -> None:
    drawing = ElementTree.parse(PAGES / "job-stages.svg").getroot()
    groups: dict[str | None, set[JobStage]] = {"taken": set(TAKEN)} | {str(stage): {stage} for stage in JobStage}
    assert {node.get("data-stage") for node in drawing.iter() if node.get("data-stage")} == set(map(str, JobStage))
    moves = set()
    for arrow in filter(None, (node.get("data-move") for node in drawing.iter())):
        sources, targets = (groups[name] for name in arrow.split(" > "))
        moves |= {(source, target) for source in sources for target in targets if source is not target}
    assert moves == {(stage, later) for stage, after in MOVES.items() for later in after if later is not stage}


@pytest.mark.parametrize(
    ("state", "handed", "about", "action", "outcome", "stage"),
    [
        ("pending", 0, None, None, None, JobStage.WAITING),
        ("pending", 1, None, None, None, JobStage.HANDED),
        ("pending", 0, None, "submit", None, JobStage.UNSETTLED),
        ("pending", 0, None, "submit", "not started", JobStage.WAITING),
        ("pending", 0, None, "submitahead", None, JobStage.UNSETTLED),
        ("pending", 0, None, "submitahead", "applied", JobStage.AHEAD),
        ("configuring", 1, None, "submit", "applied", JobStage.RUNNING),
        ("running", 1, None, "submit", None, JobStage.RUNNING),  # written after the job was seen, before the outcome
        ("resuming", 1, None, None, None, JobStage.SUSPENDED),
        ("unknown", 1, None, None, None, JobStage.LOST),
        ("unknown", 0, None, "submit", None, JobStage.UNSETTLED),
        ("running", 0, '{"let_go": "it was released"}', None, None, JobStage.LET_GO),
        ("failed", 0, None, "submit", None, JobStage.ENDED),
        ("completed", 1, None, None, None, JobStage.ENDED),
    ],
)
def test_a_row_of_the_journal_is_a_stage(
    state: str, handed: int, about: str | None, action: str | None, outcome: str | None, stage: JobStage, tmp_path: Path
) -> None:
    path = tmp_path / "journal.sqlite"
    jobs = (Job("a", DEFAULT_PROFILE), Job("b", DEFAULT_PROFILE))
    with closing(Journal(path)) as journal:
        journal.submit(Submission("w", Workflow("w", jobs), 100.0), None)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        values = (state, handed, about)
        database.execute("UPDATE jobs SET state = ?, handed = ?, about = ? WHERE job = 'a'", values)
        if action:
            query = "INSERT INTO intents (cycle, key, action, time, outcome) VALUES (1, 'w/a', ?, 100.0, ?)"
            database.execute(query, (action, outcome))
    with closing(Journal(path)) as journal:
        entry = journal.load().find("w/a")
    assert entry is not None
    assert (entry.stage, str(entry.state)) == (stage, state)
    assert (entry.intent is not None) == (stage is JobStage.UNSETTLED)


class Life(RuleBasedStateMachine):
    """Jobs of a workflow and a job that was handed over, under snapshots, decisions, users and restarts of any kind."""

    def __init__(self) -> None:
        super().__init__()
        self.journal = Journal(Path(":memory:"), in_memory=True)
        self.unsaved, self.now = Unsaved(), 100.0
        self.watched = list[tuple[Entry, JobStage]]()

    @initialize()
    def submit(self) -> None:
        jobs = (Job("a", DEFAULT_PROFILE), Job("b", DEFAULT_PROFILE, after=("a",)), Job("c", DEFAULT_PROFILE))
        submission = Submission("w", Workflow("w", jobs), self.now)
        self.journal.submit(submission, None)
        self.journal.keep_handed_over("rm", self.now)
        self.restart()

    @rule()
    def restart(self) -> None:
        """The daemon is killed, and reads the journal."""
        self.queue = self.journal.load()
        self.unsaved = Unsaved()
        self.write_ahead = WriteAhead(self.journal, self.queue, self.unsaved)

    @property
    def entries(self) -> list[Entry]:
        return list(self.queue.entries())

    @rule(data=st.data(), records=st.booleans())
    def observe(self, data: st.DataObject, records: bool) -> None:
        """The resource manager shows anything at all of any job, or its records do."""
        self.now += data.draw(st.sampled_from((1.0, 40.0, 1000.0)))
        shown = [self.view(data, key) for key in ("w/a", "w/b", "w/c", "rm/1") if data.draw(st.booleans(), label=key)]
        snapshot = Snapshot(self.now, 1, CLUSTER, (NodeState.UP,), shown)
        answers = None
        if records:
            missing = self.queue.missing(snapshot)
            answers = {key: data.draw(st.none() | st.just(self.view(data, key))) for key in missing}
        before = {entry.key: (entry, entry.stage) for entry in self.entries}
        take_in(self.queue, snapshot, lambda job: job, answers)
        self.queue.observe(snapshot, answers, late_s=5.0)
        for key, (entry, stage) in before.items():
            if stage in TAKEN and (view := snapshot.jobs.by_key.get(key)) and not view.restartable:
                assert entry.stage is STAGE_OF[view.state]

    def view(self, data: st.DataObject, key: str) -> JobView:
        offered = key == "rm/1"
        waits = data.draw(st.booleans())
        job = Job(key.partition("/")[2], DEFAULT_PROFILE)
        if waits:
            ahead = not offered and data.draw(st.booleans())
            handed_over = offered and data.draw(st.booleans())
            due = data.draw(st.none() | st.just(self.now + 60.0)) if handed_over else None
            return JobView(key, job, JobState.PENDING, restartable=True, ahead=ahead, offered=handed_over, due=due)
        state = data.draw(st.sampled_from(list(JobState)))
        times = {"start_time": self.now - 1.0} if state.takes_nodes or state.ended else {}
        return JobView(key, job, state, ("n1",), finish_time=self.now if state.ended else None, **times)

    @precondition(lambda self: any(entry.waiting for entry in self.entries))
    @rule(data=st.data(), ahead=st.booleans())
    def decide(self, data: st.DataObject, ahead: bool) -> None:
        """The plan starts a job, and the resource manager answers in any way, or the daemon is killed before."""
        entry = data.draw(st.sampled_from([entry for entry in self.entries if entry.waiting]))
        assert entry.stage in OURS  # nothing that was handed over to the resource manager is started by us
        if ahead and entry.stage is JobStage.WAITING and not entry.offered:
            action = SubmitAhead(entry.key, entry.job, (), False)
        else:
            action = (Place if entry.offered else Submit)(entry.key, entry.job, ("n1",))
        assert self.write_ahead.intend([Decision(action)], cycle=1, now=self.now) == [action]
        assert entry.stage is JobStage.UNSETTLED
        answer = data.draw(st.sampled_from(("done", "refused", "no answer", "not sent", "killed")))
        if answer == "killed":
            self.restart()
            return
        error = "" if answer == "done" else answer
        applied = Applied(action, error, transient=answer == "no answer", sent=answer != "not sent")
        self.write_ahead.conclude(applied, entry, now=self.now)

    @precondition(lambda self: any(not entry.offered and not entry.state.ended for entry in self.entries))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        alive = [entry for entry in self.entries if not entry.offered and not entry.state.ended]
        self.queue.cancel([data.draw(st.sampled_from(alive))], self.now, "cancelled by a user")

    @rule()
    def save(self) -> None:
        assert self.write_ahead.save()

    @invariant()
    def an_intent_is_open_exactly_while_the_job_is_unsettled(self) -> None:
        for entry in self.entries if hasattr(self, "queue") else ():
            assert (entry.intent is not None) == (entry.stage is JobStage.UNSETTLED), entry
            assert entry.stage is JobStage.UNSETTLED or not entry.refused, entry
            assert entry.state in STATES[entry.stage] and not (entry.offered and entry.stage is JobStage.AHEAD), entry

    @invariant()
    def a_final_stage_stays(self) -> None:
        queue = getattr(self, "queue", None)
        submissions = queue.submissions.values() if queue else ()
        for submission in submissions:
            for entry in (*submission.entries.values(), *submission.let_go.values()):
                was = next((stage for other, stage in self.watched if other is entry), None)
                assert was is None or entry.stage is was, entry
                if was is None and entry.stage in FINAL:
                    self.watched.append((entry, entry.stage))
            assert all(entry.stage is JobStage.LET_GO and not entry.waiting for entry in submission.let_go.values())

    def teardown(self) -> None:
        self.journal.close()


TestLife = Life.TestCase
