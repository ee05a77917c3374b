"""The SQLite file of the profile store: opened, checked, laid out, read and written.

Rule: a file that is not a sound store is left as it is and named in the error; a write is one transaction; nobody is
waited for longer than was said. Processes may read and write at once (WAL); in one process, threads may share it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..simulate.errors import ConfigError

APPLICATION_ID = 0x70666973  # "pfis"
VERSION = 1
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
#: Those after the first three may be missing in a file of an earlier pilotfish, until something is written into it.
TABLES = (
    "CREATE TABLE IF NOT EXISTS profile (name TEXT PRIMARY KEY, document TEXT NOT NULL, given TEXT) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS run (id INTEGER PRIMARY KEY, name TEXT NOT NULL, document TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS run_of ON run (name, id)",
    "CREATE TABLE IF NOT EXISTS score (name TEXT, cpu_model TEXT, document TEXT NOT NULL,"
    " PRIMARY KEY (name, cpu_model)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS dropped (what TEXT PRIMARY KEY, number INTEGER NOT NULL, latest TEXT NOT NULL)"
    " WITHOUT ROWID",
)


class LockedError(ConfigError):
    """Somebody else has locked the file, for longer than was to be waited."""


class StoreFile:
    """The file, opened on first use.

    Args:
        path: it and its directory are made when something is first written.
        patience_s: how long is waited for who has locked it, seconds.
        forget: is called when the content may have changed.
    """

    def __init__(self, path: Path, patience_s: float, forget: Callable[[], None]) -> None:
        self.path, self._patience_s, self._forget = path, patience_s, forget
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._data_version = -1
        #: How often the content may have changed since this was made.
        self.changes = 0

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Give the open file, None if there is none yet. Raises ConfigError."""
        with self._lock, self._guard():
            if self._connection is None and not self.path.exists():
                yield None
                return
            connection = self._open()
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            if version != self._data_version:
                self._data_version = version
                self._changed()
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give the open file inside one transaction; inside another `writing`, the outer one's. Raises ConfigError."""
        with self._lock, self._guard():
            connection = self._open()
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                _lay_out(connection)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise
            finally:
                self._changed()

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection, self._data_version = None, -1
            self._changed()

    def _changed(self) -> None:
        self.changes += 1
        self._forget()

    def unsound(self, problem: str) -> ConfigError:
        """Return what is raised of a file that cannot be understood."""
        allowed = "a profile store of pilotfish; this file is left as it is: move it away to begin a new one"
        return ConfigError(str(self.path), "", problem, allowed)

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """Turn what SQLite and the file system complain of into one sentence for the operator."""
        try:
            yield
        except sqlite3.OperationalError as problem:
            kind = LockedError if getattr(problem, "sqlite_errorcode", 0) & 0xFF in _LOCKED else ConfigError
            raise kind(str(self.path), "", f"the profile store cannot be used: {problem}") from None
        except sqlite3.DatabaseError as problem:
            raise self.unsound(f"not a sound profile store: {problem}") from None
        except OSError as problem:
            reason = f"the profile store cannot be used: {problem.strerror or problem}"
            raise ConfigError(str(self.path), "", reason) from None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            connection = sqlite3.connect(self.path, self._patience_s, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check that the file is ours and of this version; lay out a new one."""
        if _identity(connection) == (0, 0) and _is_empty(connection):
            self._switch_to_wal(connection)
            connection.execute("BEGIN IMMEDIATE")
            if _is_empty(connection):  # nobody was faster
                _lay_out(connection)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        application, version = _identity(connection)
        if application != APPLICATION_ID:
            raise self.unsound("an SQLite file of another program")
        if version != VERSION:
            raise self.unsound(f"found schema version {version}, this pilotfish knows {VERSION}")

    def _switch_to_wal(self, connection: sqlite3.Connection) -> None:
        """Set write-ahead logging; SQLite does not wait for others while it is switched, so this does."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Whether the file has a table by now, see `TABLES`."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,))
    return found.fetchone() is not None


def _lay_out(connection: sqlite3.Connection) -> None:
    for statement in TABLES:
        connection.execute(statement)


def _identity(connection: sqlite3.Connection) -> tuple[Any, Any]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def _is_empty(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,))
