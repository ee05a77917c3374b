"""The SQLite file of the profile store: opening, checking, creating, reading and writing.

Rule: an invalid store is left unchanged and named in the error; a damaged run or score is left out and logged once. A
write is one transaction; no lock is waited for
longer than `patience_s`. The file holds command lines: only its owner can read it, and it must be trusted (see
`trust`). Processes may read and write at once (WAL), and threads of a process may share the file.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ..formats.documents.file_version import UnknownVersionError, Upgrade, copy_before, keep_copy, upgrade
from ..simulate.errors import ConfigError
from ..trust import prepare_database

log = logging.getLogger("pilotfish.profiles")
Row = TypeVar("Row", bound=tuple[Any, ...])
Value = TypeVar("Value")
APPLICATION_ID = 0x70666973  # "pfis"
VERSION = 1
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNREADABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
#: Version of a store -> its upgrade to the next version.
UPGRADES: dict[int, Upgrade] = {}
TABLES = (
    "CREATE TABLE profile (name TEXT PRIMARY KEY, document TEXT NOT NULL, given TEXT) WITHOUT ROWID",
    "CREATE TABLE run (id INTEGER PRIMARY KEY, name TEXT NOT NULL, document TEXT NOT NULL)",
    "CREATE INDEX run_of ON run (name, id)",
    "CREATE TABLE score (name TEXT, cpu_model TEXT, document TEXT NOT NULL, PRIMARY KEY (name, cpu_model))"
    " WITHOUT ROWID",
    "CREATE TABLE dropped (what TEXT PRIMARY KEY, number INTEGER NOT NULL, latest TEXT NOT NULL) WITHOUT ROWID",
)


class LockedError(ConfigError):
    """Another process has locked the file for longer than the timeout."""


class StoreFile:
    """The file, opened on first use.

    Args:
        path: it and its directory are created by the first write.
        patience_s: lock timeout, seconds.
        forget: called when the content may have changed.
        skip: takes one line if this user may not read the file, which then counts as absent; None: it is an error.
    """

    def __init__(
        self, path: Path, patience_s: float, forget: Callable[[], None], skip: Callable[[str], None] | None = None
    ) -> None:
        self.path, self._patience_s, self._forget, self._skip = path, patience_s, forget, skip
        self._skipped = False
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._data_version = -1
        #: Table and first value of each row that was left out, because it is damaged.
        self.unreadable: set[tuple[str, object]] = set()
        #: Number of times that the content may have changed.
        self.changes = 0

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Yield the open file, None if it does not exist yet. Raises ConfigError."""
        with self._lock, self._guard():
            connection = self._found()
            if connection is None:
                yield None
                return
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            if version != self._data_version:
                self._data_version = version
                self._changed()
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the open file inside one transaction; nested calls share the outer one. Raises ConfigError."""
        with self._lock, self._guard():
            connection = self._open()
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise
            finally:
                self._changed()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection, self._data_version = None, -1
            self._changed()

    def _changed(self) -> None:
        self.changes += 1
        self._forget()

    def readable(self, table: str, rows: Iterable[Row], make: Callable[[Row], Value]) -> list[Value]:
        """Return what is made of the rows that can be read.

        Args:
            table: its name.
            rows: their first value tells them apart.
            make: makes a value of a row; raises ConfigError for a damaged one.
        """
        values = []
        for row in rows:
            try:
                values.append(make(row))
            except ConfigError as error:
                if (table, row[0]) not in self.unreadable:
                    self.unreadable.add((table, row[0]))
                    log.warning(
                        "%s: row %.80r of the table %s is left out: %.300s", self.path, row[0], table, error.problem
                    )
        return values

    def invalid(self, problem: str) -> ConfigError:
        """Return the error for a file that is not a valid store."""
        allowed = "a profile store of pilotfish; this file is left as it is: move it away to begin a new one"
        return ConfigError(str(self.path), "", problem, allowed)

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """Turn errors of SQLite and the file system into one sentence for the operator."""
        try:
            yield
        except (sqlite3.OperationalError, OSError) as problem:
            kind = LockedError if getattr(problem, "sqlite_errorcode", 0) & 0xFF in _LOCKED else ConfigError
            reason = getattr(problem, "strerror", None) or problem
            raise kind(str(self.path), "", f"the profile store cannot be used: {reason}") from None
        except sqlite3.DatabaseError as problem:
            raise self.invalid(f"not a sound profile store: {problem}") from None

    def _found(self) -> sqlite3.Connection | None:
        """Return the open file, None if it is absent or skipped."""
        if self._skipped:
            return None
        try:
            return None if self._connection is None and not self.path.exists() else self._open()
        except (OSError, sqlite3.OperationalError) as problem:
            denied = getattr(problem, "sqlite_errorcode", 0) & 0xFF in _UNREADABLE
            if self._skip is None or not (denied or isinstance(problem, PermissionError)):
                raise
            reason = getattr(problem, "strerror", None) or problem
            self._skipped = True
            self._skip(f"the profile store {self.path} cannot be read and is not used: {reason}")
            return None

    def _address(self) -> str:
        """Return the file as SQLite's URI; it is read-only where this user may not write it or its directory."""
        name = self.path.absolute().as_uri()
        if not self.path.exists() or all(os.access(path, os.W_OK) for path in (self.path, self.path.parent)):
            return name
        logged = self.path.with_name(f"{self.path.name}-wal").exists()  # immutable: SQLite need not write a lock file
        return f"{name}?mode=ro" if logged else f"{name}?mode=ro&immutable=1"

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            prepare_database(self.path)
            connection = sqlite3.connect(
                self._address(), self._patience_s, isolation_level=None, check_same_thread=False, uri=True
            )
            connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check that the file is ours and of this version; create the tables of a new one."""
        if _identity(connection) == [0, 0] and _is_empty(connection):
            self._switch_to_wal(connection)
            connection.execute("BEGIN IMMEDIATE")
            if _is_empty(connection):  # no other process was faster
                for statement in TABLES:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        application, version = _identity(connection)
        if application != APPLICATION_ID:
            raise self.invalid("an SQLite file of another program")
        if version != VERSION:
            self._upgrade(connection)

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        keep_copy(connection, self.path, VERSION)
        connection.execute("BEGIN IMMEDIATE")
        try:
            upgrade(connection, VERSION, UPGRADES)
        except UnknownVersionError as error:
            copy = copy_before(self.path, error.version)
            before = f"; {copy} is the store before its upgrade" if copy.exists() else ""
            raise self.invalid(
                f"found schema version {error.version}, this pilotfish reads {VERSION}{before}"
            ) from None
        connection.execute("COMMIT")

    def _switch_to_wal(self, connection: sqlite3.Connection) -> None:
        """Set write-ahead logging; SQLite does not wait for locks during this switch, so this does."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


def _identity(connection: sqlite3.Connection) -> list[int]:
    return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]


def _is_empty(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,))
