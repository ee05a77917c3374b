"""Dropping of old records of the journal, in steps of bounded work.

Rule: a step drops a bounded number of jobs, or of rows of one table, so that the loop never waits for long, however
many days the journal has. A workflow goes in one transaction with all that is its own. A row with a damaged time stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from .journal_db import LAST_TIME

#: Jobs, or rows of a table, that are looked at in one step.
AT_ONCE = 1000
Run = Callable[..., Any]
#: Table, its key, and which of its rows are older than a time.
_BY_TIME = (
    ("accounting", "key", "ended < ?"),
    ("intents", "id", "time < ? AND outcome IS NOT NULL AND action != 'submitahead'"),
    ("would_be", "key, action", "time < ?"),
    ("changes", "id", "time < ?"),
    ("queued", "key", f"{LAST_TIME} < ?"),
    ("members", "key", "finish_time < ?"),
)


class OldRecords:
    """Drops what is older than a time.

    Args:
        read: returns the rows of a query.
        transaction: runs statements, all or none of them.
        handed_over: definition of the workflows whose jobs were handed over, which never end themselves.
        before: epoch seconds.
    """

    def __init__(
        self,
        read: Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]],
        transaction: Callable[[], AbstractContextManager[Run]],
        handed_over: str,
        before: float,
    ) -> None:
        self._read, self._transaction, self._handed_over, self._before = read, transaction, handed_over, before

    def steps(self) -> Iterator[list[str]]:
        """Drop in steps; before each, yield the keys of the workflows' jobs that it drops."""
        yield from self._workflows()
        for (workflow,) in self._read("SELECT id FROM workflows WHERE definition = ?", (self._handed_over,)):
            yield from self._handed_over_jobs(workflow)
        for table, key, is_old in _BY_TIME:
            yield from self._rows(table, key, is_old)
        with self._transaction() as run:
            run("DELETE FROM errors WHERE id < (SELECT max(id) FROM errors) - 1000")

    def _workflows(self) -> Iterator[list[str]]:
        old = self._read("SELECT id FROM workflows WHERE finish_time < ?", (self._before,))
        while old:
            part, keys = list[str](), list[str]()
            while old and len(keys) < AT_ONCE:
                (workflow,) = old.pop()
                part.append(workflow)
                keys += (
                    f"{workflow}/{job}" for (job,) in self._read("SELECT job FROM jobs WHERE workflow = ?", (workflow,))
                )
            yield keys
            with self._transaction() as run:
                for workflow in part:
                    for table in ("story", "intents"):  # '0' is the character after '/'
                        run(f"DELETE FROM {table} WHERE key > ? AND key < ?", (f"{workflow}/", f"{workflow}0"))
                    run("DELETE FROM workflows WHERE id = ?", (workflow,))

    def _handed_over_jobs(self, workflow: str) -> Iterator[list[str]]:
        query = "SELECT job, finish_time < ? FROM jobs WHERE workflow = ? AND job > ? ORDER BY job LIMIT ?"
        last = ""
        while part := self._read(query, (self._before, workflow, last, AT_ONCE)):
            last = part[-1][0]
            old = [job for job, is_old in part if is_old]
            with self._transaction() as run:
                for job in old:
                    run("DELETE FROM jobs WHERE workflow = ? AND job = ?", (workflow, job))
                    for table in ("story", "intents"):
                        run(f"DELETE FROM {table} WHERE key = ?", (f"{workflow}/{job}",))
            yield []

    def _rows(self, table: str, key: str, is_old: str) -> Iterator[list[str]]:
        query = f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {is_old} LIMIT ?)"
        number = AT_ONCE
        while number == AT_ONCE:
            with self._transaction() as run:
                number = run(query, (self._before, AT_ONCE)).rowcount
            yield []
