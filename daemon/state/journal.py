"""The journal: what must survive a kill -9, in one SQLite file.

Rule: an intent is on the disk (WAL, synchronous=FULL) before it is carried out, so that a restart looks up
what happened instead of guessing. A journal that cannot be read is never replaced by an empty one: that
would forget jobs; the daemon says what is wrong and does not start.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

from ..simulate.errors import InvalidJobError, PilotfishError
from ..simulate.job import DEFAULT_PROFILE, Job
from ..simulate.plan import Action, Start
from ..simulate.snapshot import JobState
from .accuracy import Foretold
from .codec import decode, encode
from .guard import Judged
from .journal_file import identity, open_copy, open_file, unusable
from .offers import offers_of
from .queue import Entry, Forecast, Queue, Submission
from .wanted import Wanted

_JOB_COLUMNS = (
    "workflow, job, position, state, nodes, start_time, finish_time, exit_code, signal, reason,"
    " forecast_start, forecast_finish, isolated_run_time, contention_slowdown, promised, expected, handed,"
    " cancel_wanted, attempts, not_before, since, forecast_earliest,"
    " forecast_latest"
)
_SAVE = f"INSERT OR REPLACE INTO jobs ({_JOB_COLUMNS}) VALUES ({', '.join('?' * 23)})"

_WANT = "INSERT OR REPLACE INTO books (key, name, since, ended, due, tries) VALUES (?, ?, ?, ?, ?, ?)"


#: instead of a definition: the jobs are the resource manager's (see `offers`)
_OFFERS = ""
_OLD_OFFERS = (
    "SELECT workflow, job FROM jobs JOIN workflows ON id = workflow WHERE definition = ? AND jobs.finish_time < ?"
)
#: with what was said of each job at its last choice
_FORETOLD = (
    "SELECT workflow || '/' || job, finish_time, forecast_finish - forecast_start, finish_time - start_time,"
    " (SELECT data FROM story WHERE key = workflow || '/' || job AND kind = 'chosen' ORDER BY story.id DESC LIMIT 1)"
    " FROM jobs WHERE state = ? AND forecast_start IS NOT NULL AND start_time IS NOT NULL AND finish_time >= start_time"
    " ORDER BY finish_time DESC LIMIT ?"
)


class JournalError(PilotfishError):
    """The journal cannot be written at the moment (a full disk, as a rule); nothing may be started."""


class Journal:
    """One SQLite file, held exclusively while open.

    Args:
        path: the file; made with its folder if missing, both for their owner alone.
        in_memory: work on a copy of the file in memory (a dry run) and leave the file itself untouched.

    Raises:
        ConfigError: held by another daemon, damaged, of another version, or not to be opened.
    """

    def __init__(self, path: Path, *, in_memory: bool = False) -> None:
        self.path = path
        self._db = open_copy(path) if in_memory else open_file(path)
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

    def submit(self, submission: Submission, idempotency_key: str | None) -> None:
        """Write a new workflow and its jobs, all or nothing. Raises JournalError."""
        with self._transaction() as run:
            run(
                "INSERT INTO workflows (id, number, name, idempotency_key, definition, submit_time, state)"
                " VALUES (?, (SELECT coalesce(max(number), 0) + 1 FROM workflows), ?, ?, ?, ?, ?)",
                (
                    submission.id,
                    submission.workflow.name,
                    idempotency_key,
                    encode(submission.workflow),
                    submission.submit_time,
                    str(submission.state),
                ),
            )
            for entry in submission.entries.values():
                run(_SAVE, _row(entry))

    def keep_offers(self, name: str, time: float) -> None:
        """Keep what comes through the resource manager of that name from now on. Raises JournalError."""
        if not self._read("SELECT 1 FROM workflows WHERE id = ?", (name,)):
            with self._transaction() as run:
                run(
                    "INSERT INTO workflows (id, number, name, definition, submit_time, state)"
                    " VALUES (?, (SELECT coalesce(max(number), 0) + 1 FROM workflows), ?, ?, ?, ?)",
                    (name, name, _OFFERS, time, str(JobState.RUNNING)),
                )

    def submitted_as(self, idempotency_key: str) -> tuple[str, str] | None:
        """The id and the definition of the workflow that came with this key, if one did."""
        query = "SELECT id, definition FROM workflows WHERE idempotency_key = ?"
        row: tuple[str, str] | None = self._db.execute(query, (idempotency_key,)).fetchone()
        return row

    def save(
        self,
        entries: Iterable[Entry],
        *,
        ended: Iterable[Submission] = (),
        outcomes: Iterable[tuple[int, str]] = (),
        story: Iterable[tuple[Any, ...]] = (),
        errors: Iterable[tuple[Judged, float]] = (),
        wanted: Iterable[Wanted] = (),
    ) -> None:
        """Write how far jobs have come, in one transaction. Raises JournalError.

        Args:
            ended: workflows whose last job has ended.
            outcomes: (intent, outcome) of intents that came to one.
            story: (key, time, cycle, kind, text, data) records, for `explain`.
            errors: (what was judged, forecast error of a run time), for the guard after a restart.
            wanted: jobs that are to be looked up in the books.
        """
        with self._transaction() as run:
            for entry in entries:
                run(_SAVE, _row(entry))
            for submission in ended:
                finish = max(e.finish_time or 0.0 for e in submission.entries.values())
                run(
                    "UPDATE workflows SET state = ?, finish_time = ? WHERE id = ?",
                    (str(submission.state), finish, submission.id),
                )
            for intent, outcome in outcomes:
                run("UPDATE intents SET outcome = ? WHERE id = ?", (outcome, intent))
            for key, time, cycle, kind, text, data in story:
                run(
                    "INSERT INTO story (key, time, cycle, kind, text, data) VALUES (?, ?, ?, ?, ?, ?)",
                    (key, time, cycle, kind, text, json.dumps(data) if data else None),
                )
            for (model, source), ratio in errors:
                run("INSERT INTO errors (model, source, ratio) VALUES (?, ?, ?)", (model, source, ratio))
            for each in wanted:
                run(_WANT, astuple(each))

    def intend(
        self, actions: Iterable[Action], entries: Iterable[Entry], *, cycle: int, time: float
    ) -> dict[str, int]:
        """Write the actions that are about to be carried out; returns key -> intent. Raises JournalError.

        When this returns, they are on the disk.
        """
        intents: dict[str, int] = {}
        with self._transaction() as run:
            for entry in entries:
                run(_SAVE, _row(entry))
            for action in actions:
                kind = type(action).__name__.lower()
                nodes = json.dumps(action.nodes) if isinstance(action, Start) else None
                cursor = run(
                    "INSERT INTO intents (cycle, key, action, nodes, time) VALUES (?, ?, ?, ?, ?)",
                    (cycle, action.key, kind, nodes, time),
                )
                intents[action.key] = int(cursor.lastrowid or 0)
        return intents

    def probe(self) -> None:
        """Try whether the disk takes a few pages again. Raises JournalError."""
        with self._transaction() as run:
            run("INSERT INTO story (key, time, kind, text) VALUES ('', 0, 'probe', zeroblob(65536))")
        with self._transaction() as run:
            run("DELETE FROM story WHERE key = ''")

    def load(self) -> Queue:
        """Rebuild the queue: every workflow that has not ended, with its open intents."""
        queue = Queue()
        select = "SELECT id, definition, submit_time FROM workflows WHERE finish_time IS NULL ORDER BY number"
        try:
            for row in self._read(select):
                queue.add(self._submission(*row))
        except (sqlite3.Error, InvalidJobError, ValueError, KeyError) as error:
            raise unusable(self.path, sqlite3.DatabaseError(str(error))) from None
        for intent, key, action in self._read("SELECT id, key, action FROM intents WHERE outcome IS NULL"):
            entry = queue.find(key)
            if entry and action == "start" and not entry.state.ended:
                entry.intent = intent
        return queue

    def _submission(self, workflow: str, definition: str, submit_time: float) -> Submission:
        rows = self._read(f"SELECT {_JOB_COLUMNS} FROM jobs WHERE workflow = ?", (workflow,))
        if definition == _OFFERS:  # what the jobs ask for is in the resource manager's queue
            submission: Submission = offers_of(workflow, submit_time)
            submission.entries = {row[1]: Entry(workflow, Job(row[1], DEFAULT_PROFILE), row[2]) for row in rows}
        else:
            submission = Submission(workflow, decode(definition), submit_time)
        for row in rows:
            _restore(submission.entries[row[1]], row)
        return submission

    def recent(self, limit: int) -> list[Submission]:
        """The last `limit` workflows, the newest last, ended or not."""
        rows = self._read(
            "SELECT id, definition, submit_time FROM workflows ORDER BY number DESC LIMIT ?", (limit,)
        )
        return [self._submission(*row) for row in reversed(rows)]

    def find(self, workflow: str) -> Submission | None:
        """The workflow of that id, ended or not."""
        rows = self._read("SELECT id, definition, submit_time FROM workflows WHERE id = ?", (workflow,))
        return self._submission(*rows[0]) if rows else None

    def workflows_with(self, job: str) -> list[str]:
        """Ids of the workflows that have a job of that id, the newest first."""
        query = "SELECT id FROM workflows JOIN jobs ON workflow = id WHERE job = ? ORDER BY number DESC"
        return [row[0] for row in self._read(query, (job,))]

    def story(self, key: str) -> list[dict[str, Any]]:
        """All that was recorded of a job, in order."""
        rows = self._read("SELECT time, cycle, kind, text, data FROM story WHERE key = ? ORDER BY id", (key,))
        names = ("time", "cycle", "kind", "text", "data")
        return [dict(zip(names, (*row[:4], json.loads(row[4] or "null")), strict=True)) for row in rows]

    def last_errors(self, count: int) -> list[tuple[Judged, float]]:
        """The last `count` forecast errors of run times, each after what was judged, the oldest first."""
        rows = self._read("SELECT model, source, ratio FROM errors ORDER BY id DESC LIMIT ?", (count,))
        return [(Judged(model, source), ratio) for model, source, ratio in reversed(rows)]

    def foretold(self, most: int) -> list[Foretold]:
        """The jobs that completed and had been foretold, the last `most` to end, the oldest first. O(jobs).

        One that ended before it began, by a clock that was set back, is none of them. Raises ConfigError: damaged.
        """
        rows = self._read(_FORETOLD, (str(JobState.COMPLETED), most))
        try:
            return [_foretold(*row) for row in reversed(rows)]
        except ValueError as error:
            raise unusable(self.path, sqlite3.DatabaseError(str(error))) from None

    def books_due(self, now: float, most: int) -> list[Wanted]:
        """The jobs that are to be looked up in the books now, the first `most` of them, and most overdue. Raises
        JournalError.
        """
        query = "SELECT key, name, since, ended, due, tries FROM books WHERE due <= ? ORDER BY due, key LIMIT ?"
        try:
            return [Wanted(*row) for row in self._read(query, (now, most))]
        except sqlite3.Error as error:
            raise JournalError(f"{self.path}: cannot be read: {error}") from None

    def settle_books(self, done: Iterable[str], later: Iterable[Wanted]) -> None:
        """Drop jobs that need not be looked up any more, and note when others are to be. Raises JournalError."""
        with self._transaction() as run:
            for key in done:
                run("DELETE FROM books WHERE key = ?", (key,))
            for each in later:
                run(_WANT, astuple(each))

    def expired(self, before: float) -> list[str]:
        """Keys of the jobs whose workflows ended before that time."""
        query = "SELECT workflow || '/' || job FROM jobs JOIN workflows ON id = workflow"
        return [row[0] for row in self._read(f"{query} WHERE workflows.finish_time < ?", (before,))]

    def prune(self, before: float) -> int:
        """Drop workflows that ended before that time, with all that belongs to them; returns how many."""
        with self._transaction() as run:
            old = "SELECT id FROM workflows WHERE finish_time < ?"
            for table in ("story", "intents"):
                run(f"DELETE FROM {table} WHERE substr(key, 1, instr(key, '/') - 1) IN ({old})", (before,))
            for name, job in self._read(_OLD_OFFERS, (_OFFERS, before)):
                run("DELETE FROM jobs WHERE workflow = ? AND job = ?", (name, job))
                for table in ("story", "intents"):
                    run(f"DELETE FROM {table} WHERE key = ?", (f"{name}/{job}",))
            run("DELETE FROM books WHERE ended < ?", (before,))
            run("DELETE FROM errors WHERE id < (SELECT max(id) FROM errors) - 1000")
            return run("DELETE FROM workflows WHERE finish_time < ?", (before,)).rowcount

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def _read(self, query: str, arguments: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return self._db.execute(query, arguments).fetchall()


def _row(entry: Entry) -> tuple[Any, ...]:
    forecast = entry.forecast
    foretold: tuple[float | None, ...] = (None,) * 4
    if forecast:
        foretold = (
            forecast.start_time,
            forecast.finish_time,
            forecast.isolated_run_time,
            forecast.contention_slowdown,
        )
    return (
        entry.workflow,
        entry.job.id,
        entry.position,
        str(entry.state),
        json.dumps(entry.nodes),
        entry.start_time,
        entry.finish_time,
        entry.exit_code,
        entry.signal,
        entry.reason,
        *foretold,
        entry.promised,
        entry.expected,
        entry.handed,
        entry.cancel_wanted,
        entry.attempts,
        entry.not_before,
        entry.since,
        *(forecast.within if forecast and forecast.within else (None, None)),
    )


def _restore(entry: Entry, row: tuple[Any, ...]) -> None:
    entry.state, entry.nodes = JobState(row[3]), tuple(json.loads(row[4]))
    entry.start_time, entry.finish_time, entry.exit_code, entry.signal, entry.reason = row[5:10]
    within = (row[21], row[22]) if row[21] is not None else None
    entry.forecast = Forecast(row[10], row[11], row[12], row[13], within) if row[10] is not None else None
    entry.promised, entry.expected = row[14:16]
    entry.handed, entry.cancel_wanted, entry.attempts, entry.not_before, entry.since = (
        bool(row[16]),
        bool(row[17]),
        *row[18:21],
    )


def _foretold(key: str, time: float, forecast_s: float, actual_s: float, data: str | None) -> Foretold:
    told = json.loads(data or "{}")
    if not isinstance(told, dict):
        raise ValueError(f"what was foretold of {key} is no record")
    named = [told.get(name) for name in ("profile", "model", "policy", "source", "class")]
    within = told.get("run_within") or (None, None)
    numbers = isinstance(within, list) and len(within) == 2 and all(isinstance(bound, int | float) for bound in within)
    if not all(name is None or isinstance(name, str) for name in named) or not (numbers or within == (None, None)):
        raise ValueError(f"what was foretold of {key} cannot be read")
    return Foretold(key, time, forecast_s, actual_s, *named, *within)
