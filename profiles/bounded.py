"""How much the store keeps: so many runs of a name, and so many commands that were learned by themselves.

Rule: what is dropped is the oldest, is counted, and no profile rests on it: of runs more are kept than count, and of
commands and kinds of jobs that nobody named those go that have not run for longest. Profiles that a user named or gave
stay.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from .measurement import Measurement

#: Runs of a name that ended well, of which LATEST count (see `estimate`), and those that failed.
MOST_RUNS, MOST_FAILED = 100, 20
#: Commands; looked at once in so many runs.
MOST_COMMANDS, EVERY = 5000, 100
#: "!" is what comes after a blank.
_COMMANDS = "(name >= 'cmd: ' AND name < 'cmd:!' OR name >= 'job: ' AND name < 'job:!')"
_OLDEST = f"SELECT name FROM run WHERE {_COMMANDS} GROUP BY name ORDER BY MAX(id) DESC LIMIT -1 OFFSET ?"


@dataclass(frozen=True, slots=True)
class Dropped:
    """How much the store has let go: `what` is runs or commands; `latest`: when last, ISO 8601."""

    what: str
    number: int
    latest: str


def superfluous(runs: Sequence[Measurement]) -> list[int]:
    """Return the places of the runs to drop, oldest first, of runs in that order."""
    well = [i for i, run in enumerate(runs) if not run.exit_code]
    failed = [i for i, run in enumerate(runs) if run.exit_code]
    return sorted(well[: max(0, len(well) - MOST_RUNS)] + failed[: max(0, len(failed) - MOST_FAILED)])


def drop_runs(connection: sqlite3.Connection, numbers: Sequence[int], date: str) -> None:
    """Delete runs by their ids, and count them."""
    connection.executemany("DELETE FROM run WHERE id = ?", [(number,) for number in numbers])
    _count(connection, "runs", len(numbers), date)


def drop_commands(connection: sqlite3.Connection, date: str, most: int = MOST_COMMANDS) -> None:
    """Delete the commands beyond the bound, those that have not run for longest, with their runs; count them."""
    names = connection.execute(_OLDEST, (most,)).fetchall()
    connection.executemany("DELETE FROM run WHERE name = ?", names)
    connection.executemany("DELETE FROM profile WHERE name = ? AND given IS NULL", names)
    _count(connection, "commands", len(names), date)


def dropped(connection: sqlite3.Connection) -> list[Dropped]:
    """Return what was dropped so far."""
    rows = connection.execute("SELECT what, number, latest FROM dropped ORDER BY what").fetchall()
    return [Dropped(*row) for row in rows]


def _count(connection: sqlite3.Connection, what: str, number: int, date: str) -> None:
    if number:
        more = "ON CONFLICT (what) DO UPDATE SET number = number + excluded.number, latest = excluded.latest"
        connection.execute(f"INSERT INTO dropped VALUES (?, ?, ?) {more}", (what, number, date))
