"""The journal: what must survive a kill -9, in one SQLite file.

Rule: an intent is on disk (WAL, synchronous=FULL) before it is carried out, so that a restart looks up what happened
instead of guessing. A journal that cannot be read is never replaced by an empty one, which would forget jobs; the
daemon reports what is wrong and does not start.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from ...simulate.errors import ConfigError, PilotfishError
from ...simulate.model.snapshot import JobState
from . import audit, journal_rows
from .audit import AuditedChange, AuditQuestion, Decision
from .codec import JOBS_AT_ONCE, decode_steps, encode
from .damage import REAL, TEXT, UNREADABLE, WHOLE, Damage, checked, json_object, kinds_of, optional, text_of
from .divided_work import Steps, finish
from .forecasts import Forecaster
from .handed_over import handed_over
from .job_stages import STATES, JobStage
from .journal_db import LAST_TIME, identity, open_copy, open_file, unusable
from .journal_rows import FORECASTS, JOB_COLUMNS, NAMED, RECENT, SAVE, STORY_COLUMNS, SUMMARY_COLUMNS, WITH_JOB
from .members import Member
from .old_records import OldRecords
from .pending_usage import PendingUsage
from .queue import Queue, Submission
from .queue_entry import Entry
from .recorded_outcome import ForecastOutcome, QueueRecord, recorded_outcome
from .unsaved import Unsaved

_MEMBERS = ", ".join(each.name for each in fields(Member))
#: Jobs with a group that are compared at most.
MOST_MEMBERS = 50_000
_QUEUED = ", ".join(each.name for each in fields(QueueRecord))
#: Intents by which a job may be in the resource manager.
_STARTS = ("place", "submit", "submitahead")
_WORKFLOWS = "SELECT id, definition, submit_time, owner, finish_time FROM workflows"
_WORKFLOW_KINDS = (TEXT, TEXT, REAL, optional(WHOLE), optional(REAL))
_ENDED = frozenset(str(state) for state in JobState if state.ended)
#: Not of a job that has ended at a known time; true also of a damaged row.
_NOT_ENDED = f"NOT (state IN ({', '.join(map(repr, sorted(_ENDED)))}) AND typeof(finish_time) = 'real') IS TRUE"
#: In place of a definition: the jobs are the resource manager's (see `handed_over`).
_HANDED_OVER = ""


class JournalError(PilotfishError):
    """The journal cannot be written now (usually a full disk), so no job may be started; or it cannot be read."""


class Journal:
    """One SQLite file, held exclusively while open.

    Args:
        path: the file; made with its folder if missing, both accessible to their owner only.
        in_memory: work on a copy of the file in memory (a dry run) and leave the file untouched.

    Raises:
        ConfigError: the file is in use by another daemon, damaged, of another version, or cannot be opened.
    """

    def __init__(self, path: Path, *, in_memory: bool = False) -> None:
        self.path = path
        self._db = open_copy(path) if in_memory else open_file(path)
        self._db.text_factory = text_of
        self.damage = Damage(path)  #: rows that cannot be read and are left out
        self._file = None if in_memory else identity(path)

    @contextmanager
    def _transaction(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        if self._file and identity(self.path) != self._file:
            raise JournalError(f"{self.path}: was removed or replaced while in use")
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db.execute
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise JournalError(f"{self.path}: cannot be written: {error}") from None
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def submit(self, submission: Submission, idempotency_key: str | None, definition: str = "") -> None:
        """Write a new workflow and its jobs, all or nothing. Raises JournalError.

        Args:
            submission: the workflow.
            idempotency_key: chosen by the user, of whom it is unique; None = none.
            definition: the encoded workflow, if it is known.
        """
        with self._transaction() as run:
            definition = definition or encode(submission.workflow)
            journal_rows.insert(run, submission, definition, idempotency_key)
            self._db.executemany(SAVE, map(journal_rows.row_of, submission.entries.values()))

    def keep_handed_over(self, name: str, time: float) -> None:
        """Keep the jobs handed over through a resource manager from now on. Raises JournalError.

        Args:
            name: of the resource manager.
            time: now, epoch seconds.
        """
        if not self._read("SELECT 1 FROM workflows WHERE id = ?", (name,)):
            with self._transaction() as run:
                journal_rows.insert(run, handed_over(name, time), _HANDED_OVER)

    def submitted_as(self, idempotency_key: str, owner: int) -> tuple[str, str] | None:
        """Return the id and the definition of the workflow that a user submitted with this key, if there is one.

        Args:
            idempotency_key: chosen by the user.
            owner: uid of the user; a workflow whose owner is not known counts, too.
        """
        query = (
            "SELECT id, definition FROM workflows"
            " WHERE idempotency_key = ? OR (idempotency_key = ? AND owner IS NULL) LIMIT 1"
        )
        rows = self._read(query, (journal_rows.owned(idempotency_key, owner), idempotency_key))
        try:
            return (rows[0][0], checked(rows[0], (TEXT, TEXT))[1]) if rows else None
        except ValueError as error:
            raise self._damaged(error) from None

    def note_change(self, change: AuditedChange) -> None:
        """Record a change of what the daemon may do, or a request that changed something. Raises JournalError."""
        with self._transaction() as run:
            audit.write_change(run, change)

    def last_mode(self) -> tuple[str, str]:
        """Return the last change of mode, its kind and the mode after it, "" without one, and if it is damaged."""
        query = "SELECT kind, after FROM changes WHERE kind IN ('start', 'stop', 'mode') ORDER BY id DESC LIMIT 1"
        return next(iter(self.damage.readable("changes", self._read(query), audit.mode_in)), ("", ""))

    def audited(self, question: AuditQuestion) -> list[dict[str, Any]]:
        """Return lines of the audit, as `audit.read_lines`. Raises JournalError."""
        return audit.read_lines(self._read, self.damage, question)

    def save(
        self, entries: Iterable[Entry], *, ended: Iterable[Submission] = (), unsaved: Unsaved | None = None
    ) -> None:
        """Write how far jobs have come, in one transaction. Raises JournalError.

        Args:
            entries: the jobs.
            ended: workflows whose last job has ended.
            unsaved: all else that is new.
        """
        unsaved = unsaved or Unsaved()
        with self._transaction() as run:
            for entry in entries:
                run(SAVE, journal_rows.row_of(entry))
            for submission in ended:
                finish = max(e.finish_time or 0.0 for e in submission.entries.values())
                ending = (str(submission.state), finish, submission.id)
                run("UPDATE workflows SET state = ?, finish_time = ? WHERE id = ?", ending)
            for intent, outcome in unsaved.outcomes.items():
                run("UPDATE intents SET outcome = ? WHERE id = ?", (outcome, intent))
            for key, time, cycle, kind, text, data in unsaved.records:
                run(
                    "INSERT INTO story (key, time, cycle, kind, text, data) VALUES (?, ?, ?, ?, ?, ?)",
                    (key, time, cycle, kind, text, json.dumps(data) if data else None),
                )
            for (model, source), ratio, user in unsaved.errors:
                run("INSERT INTO errors (model, source, ratio, user) VALUES (?, ?, ?, ?)", (model, source, ratio, user))
            for usage in unsaved.pending:
                journal_rows.put(run, "accounting", usage)
            for record in unsaved.queued.values():
                journal_rows.put(run, "queued", record)
            for member in unsaved.members.values():
                journal_rows.put(run, "members", member)
            for name, state in unsaved.kept.items():
                run("INSERT OR REPLACE INTO kept (name, state) VALUES (?, ?)", (name, json.dumps(state)))
            for change in unsaved.changes:
                audit.write_change(run, change)
            for time, decision in unsaved.would_be.values():
                audit.write_would_be(run, decision, time)

    def intend(
        self, decisions: Iterable[Decision], entries: Iterable[Entry], *, cycle: int, time: float
    ) -> dict[str, int]:
        """Write the actions that are about to be carried out; return the intent's row by key. Raises JournalError.

        When this returns, they are on disk.

        Args:
            decisions: the actions, with what decided them.
            entries: jobs whose state is written in the same transaction.
            cycle: number of the cycle.
            time: of its snapshot, epoch seconds.
        """
        intents: dict[str, int] = {}
        with self._transaction() as run:
            for entry in entries:
                run(SAVE, journal_rows.row_of(entry))
            for decision in decisions:
                intents[decision.action.key] = audit.write_intent(run, decision, cycle=cycle, time=time)
        return intents

    def probe(self) -> None:
        """Write and delete a few pages, to see if the disk takes them again. Raises JournalError."""
        with self._transaction() as run:
            run("INSERT INTO story (key, time, kind, text) VALUES ('', 0, 'probe', zeroblob(65536))")
        with self._transaction() as run:
            run("DELETE FROM story WHERE key = ''")

    def load(self) -> Queue:
        """Return the queue: every workflow that has not ended, with its open intents."""
        queue, intents = Queue(), list[tuple[Any, ...]]()
        alive = "finish_time IS NULL OR typeof(finish_time) NOT IN ('real', 'integer')"
        query = "SELECT id, key, action, outcome FROM intents WHERE outcome IS NULL OR action = 'submitahead'"
        try:
            for row in self._read(f"{_WORKFLOWS} WHERE {alive} ORDER BY number"):
                submission = finish(self._submission(row, _NOT_ENDED))
                submission.drop_ended()
                queue.add(submission)
            for row in self._read(query):
                intents.append(tuple(checked(row, (WHOLE, TEXT, TEXT, optional(TEXT)))))
        except (JournalError, *UNREADABLE) as error:
            raise self._damaged(error) from None
        for intent, key, action, outcome in intents:
            entry = queue.find(key)
            if entry and action in _STARTS and not entry.state.ended:
                if outcome is None and entry.state in STATES[JobStage.UNSETTLED]:  # else its row was written later
                    entry.stage, entry.intent = JobStage.UNSETTLED, intent
                elif entry.stage is JobStage.WAITING:  # it was submitted ahead, until a snapshot shows that it is not
                    entry.stage = JobStage.AHEAD
        return queue

    def _submission(self, row: tuple[Any, ...], handed_over_jobs: str = "TRUE") -> Steps[Submission]:
        """Return a workflow with its jobs, those handed over on a condition, in steps. Raises one of UNREADABLE."""
        workflow, definition, submit_time, owner, _ = checked(row, _WORKFLOW_KINDS)
        chosen = handed_over_jobs if definition == _HANDED_OVER else "TRUE"
        rows = self._read(f"SELECT {JOB_COLUMNS} FROM jobs WHERE workflow = ? AND {chosen}", (workflow,))
        if definition == _HANDED_OVER:  # the jobs' requests are in the resource manager's queue
            submission: Submission = handed_over(workflow, submit_time)
            entries = (self._handed_over_entry(columns) for columns in rows)
            submission.entries = {entry.job.id: entry for entry in entries if entry is not None}
            return submission
        jobs = yield from decode_steps(definition)
        yield
        submission = Submission(workflow, jobs, submit_time, owner=owner)
        for number, columns in enumerate(rows):
            if number % JOBS_AT_ONCE == 0:
                yield
            journal_rows.restore(submission.entries[columns[1]], columns)
        return submission

    def _handed_over_entry(self, row: tuple[Any, ...]) -> Entry | None:
        """Return a job; None if its row is damaged and it has ended. Raises one of UNREADABLE if it has not."""
        try:
            entry = journal_rows.handed_over_entry(row)
            journal_rows.restore(entry, row)
        except UNREADABLE as error:
            if row[3] not in _ENDED:
                raise
            self.damage.note("jobs", row[:2], error)
            return None
        return entry

    def _damaged(self, error: Exception) -> ConfigError:
        return unusable(self.path, sqlite3.DatabaseError(str(error)))

    def recent(self, limit: int, owner: int | None = None) -> dict[str, int | None]:
        """Return the ids of workflows, the newest last, ended or not, each with its owner.

        Args:
            limit: so many of all, and so many of the owner.
            owner: uid of a user, whose workflows others cannot displace; None: no user.
        """
        return self._owners(self._read(RECENT, (limit, owner, limit))[::-1])

    def _owners(self, rows: Iterable[tuple[Any, ...]]) -> dict[str, int | None]:
        def owned(row: tuple[Any, ...]) -> tuple[str, int | None]:
            id, owner = checked(row, (TEXT, optional(WHOLE)))
            return id, owner

        return dict(self.damage.readable("workflows", rows, owned))

    def bytes_of(self, owner: int) -> int:
        """Return how many bytes the workflows of a user take here, ended ones included."""
        return int(self._read("SELECT coalesce(sum(size), 0) FROM workflows WHERE owner = ?", (owner,))[0][0])

    def total_bytes(self) -> int:
        """Return how many bytes the workflows of all users take here, ended ones included. O(workflows)."""
        return int(self._read("SELECT coalesce(sum(size), 0) FROM workflows")[0][0])

    def summary(self, workflow: str) -> dict[str, Any] | None:
        """Return a workflow as `status` shows it, without its jobs; None: damaged. O(jobs), without its definition."""
        rows = self._read(f"SELECT {SUMMARY_COLUMNS} FROM workflows WHERE id = ?", (workflow,))
        counts = self._read("SELECT state, count(*) FROM jobs WHERE workflow = ? GROUP BY state", (workflow,))
        states = self.damage.readable("jobs", counts, lambda row: (str(JobState(row[0])), row[1]))
        summaries = self.damage.readable("workflows", rows, journal_rows.workflow_summary)
        return summaries[0] | {"job_counts": dict(states)} if summaries else None

    def find(self, workflow: str) -> Submission | None:
        """Return the workflow of that id, ended or not; None: no such workflow, or its row is damaged."""
        return finish(self.find_steps(workflow))

    def find_steps(self, workflow: str) -> Steps[Submission | None]:
        """Return what `find` returns, in steps."""
        for row in self._read(f"{_WORKFLOWS} WHERE id = ?", (workflow,)):
            try:
                return (yield from self._submission(row))
            except UNREADABLE as error:
                self.damage.note("workflows", row[0], error)
        return None

    def handed_over_entry(self, workflow: str, job: str) -> Entry | None:
        """Return a job that was handed over, ended or not, by the name of its resource manager and its id there."""
        rows = self._read(f"SELECT {JOB_COLUMNS} FROM jobs WHERE workflow = ? AND job = ?", (workflow, job))
        return next(iter(self.damage.readable("jobs", rows, self._handed_over_entry)), None)

    def workflows_with(self, job: str) -> dict[str, int | None]:
        """Return the ids of the workflows that have a job of that id, the newest first, each with the job's owner.

        Of the workflows that have ended, only the last NAMED are looked through.
        """
        return self._owners(self._read(WITH_JOB, (NAMED, job)))

    def records(self, key: str) -> list[dict[str, Any]]:
        """Return all records of a job, in order."""
        rows = self._read(f"SELECT {STORY_COLUMNS} FROM story WHERE key = ? ORDER BY id", (key,))
        return self.damage.readable("story", rows, journal_rows.story_record)

    def last_errors(self, count: int) -> list[tuple[Forecaster, float, int | None]]:
        """Return the last `count` forecast errors of run times, with forecaster and user, the oldest first."""
        rows = self._read("SELECT id, model, source, ratio, user FROM errors ORDER BY id DESC LIMIT ?", (count,))
        kinds = (WHOLE, TEXT, TEXT, REAL, optional(WHOLE))
        errors = self.damage.readable("errors", reversed(rows), lambda row: checked(row, kinds))
        return [(Forecaster(model, source), ratio, user) for _, model, source, ratio, user in errors]

    def forecasts(self, most: int) -> list[ForecastOutcome]:
        """Return the completed jobs that had a forecast, the last `most` to end, the oldest first. O(most).

        A job that ended before it began, by a clock that was set back, is left out.
        """
        return finish(self.forecasts_steps(most))

    def forecasts_steps(self, most: int) -> Steps[list[ForecastOutcome]]:
        """Return what `forecasts` returns, in steps."""
        rows = self._read(FORECASTS, (str(JobState.COMPLETED), most))
        return (yield from self.damage.readable_steps("story", rows, lambda row: recorded_outcome(*row)))[::-1]

    def queued(self, most: int) -> list[QueueRecord]:
        """Return jobs of the resource manager's queue, the last `most` to end, start or be seen, the oldest first."""
        return finish(self.queued_steps(most))

    def queued_steps(self, most: int) -> Steps[list[QueueRecord]]:
        """Return what `queued` returns, in steps."""
        rows = self._read(f"SELECT {_QUEUED} FROM queued ORDER BY {LAST_TIME} DESC LIMIT ?", (most,))
        kinds = kinds_of(QueueRecord)
        records = self.damage.readable_steps("queued", rows, lambda row: QueueRecord(*checked(row, kinds)))
        return (yield from records)[::-1]

    def kept(self, name: str = "policy") -> dict[str, Any]:
        """Return what must be known after a restart, as `Unsaved.kept`. Raises ConfigError: it is damaged."""
        rows = self._read("SELECT state FROM kept WHERE name = ?", (name,))
        try:
            return json_object(checked(rows[0], (TEXT,))[0]) if rows else {}
        except UNREADABLE as error:
            raise self._damaged(error) from None

    def members(
        self, *, open_only: bool = False, since: float = 0.0, most: int = MOST_MEMBERS, key: str = ""
    ) -> list[Member]:
        """Return jobs that have a group of the canary, the last `most` to be submitted, the oldest first.

        Args:
            open_only: those that have not ended.
            since: submitted no earlier, epoch seconds.
            most: jobs to return.
            key: of the only one; "": of all.
        """
        which = f"{' AND finish_time IS NULL' * open_only}{' AND key = ?' * bool(key)}"
        query = f"SELECT {_MEMBERS} FROM members WHERE submit_time >= ?{which} ORDER BY submit_time DESC, key LIMIT ?"
        rows, kinds = self._read(query, (since, *[key] * bool(key), most)), kinds_of(Member)
        return self.damage.readable("members", rows, lambda row: Member(*checked(row, kinds)))[::-1]

    def usage_due(self, now: float, most: int) -> list[PendingUsage]:
        """Return the jobs to look up in the accounting, the most overdue first. Raises JournalError.

        Args:
            now: epoch seconds.
            most: jobs to return.
        """
        columns = ", ".join(field.name for field in fields(PendingUsage))
        query = f"SELECT {columns} FROM accounting WHERE due <= ? ORDER BY due, key LIMIT ?"
        rows, kinds = self._read(query, (now, most + self.damage.number()["accounting"])), kinds_of(PendingUsage)
        return self.damage.readable("accounting", rows, lambda row: PendingUsage(*checked(row, kinds)))[:most]

    def settle_usage(self, done: Iterable[str], later: Iterable[PendingUsage]) -> None:
        """Note which jobs need no lookup in the accounting any more, and when others do. Raises JournalError.

        Args:
            done: keys of the jobs to drop.
            later: jobs to look up again.
        """
        with self._transaction() as run:
            for key in done:
                run("DELETE FROM accounting WHERE key = ?", (key,))
            for usage in later:
                journal_rows.put(run, "accounting", usage)

    def prune_steps(self, before: float) -> Iterator[list[str]]:
        """Drop what ended before that time in steps, and yield the keys of the jobs that go before they do."""
        return OldRecords(self._read, self._transaction, _HANDED_OVER, before).steps()

    def prune(self, before: float) -> None:
        """Drop what ended before that time, with all its records, at once. Raises JournalError."""
        for _ in self.prune_steps(before):
            pass

    def content(self) -> bytes:
        """Return the whole database, as a file of it would be."""
        return self._db.serialize()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _read(self, query: str, arguments: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query, arguments).fetchall()
        except sqlite3.Error as error:
            raise JournalError(f"{self.path}: cannot be read: {error}") from None
