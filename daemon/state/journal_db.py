"""The journal's file: its tables, and how it is opened or copied.

Rule: only its owner can read it, and it is trusted, because its commands are run (see `trust`). A file that is damaged,
emptied or of a newer version is refused, never replaced. A copy leaves the original untouched: SQLite never opens the
original, since even a reader would leave files next to it; a file that changes during the copy is copied again, so that
the copy is consistent. Before a migration the file is copied.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from io import BufferedReader
from pathlib import Path

from ... import __version__
from ...formats.documents.file_version import UnknownVersionError, Upgrade, copy_before, keep_copy, upgrade
from ...simulate.errors import ConfigError
from ...trust import check_file, new_file, prepare_database
from . import audit, members

log = logging.getLogger("pilotfish.service")
#: Attempts to copy a file that keeps changing.
COPIES = 100
#: A file that changed less than this ago may change again without a new time: the kernel's clock ticks every 10 ms.
TICK_NS = 20_000_000
#: Bytes of the header of a write-ahead log.
LOG_HEADER = 32


def _opened(path: Path) -> BufferedReader:
    return path.open("rb")


def copy_database(path: Path, folder: Path, opened: Callable[[Path], BufferedReader] = _opened) -> Path:
    """Copy a SQLite file and its -wal, if they exist, into `folder`, while others may write; return the copy's path.

    A write-ahead log may grow meanwhile: up to any length it is a state that was committed. The file itself must not
    change, and the log not begin again (file format of SQLite, section 4: the salts of its header).

    Args:
        path: the file.
        folder: an existing directory.
        opened: opens a file for reading.

    Raises:
        OSError: a file cannot be read, or the copy not written.
        sqlite3.OperationalError: it changed during every attempt.
    """
    log_path = path.with_name(f"{path.name}-wal")
    for _ in range(COPIES):
        for name in (path.name, log_path.name):
            (folder / name).unlink(missing_ok=True)
        with ExitStack() as stack:
            try:
                files = [stack.enter_context(opened(path))]
            except FileNotFoundError:
                return folder / path.name
            is_fresh = time.time_ns() - os.fstat(files[0].fileno()).st_mtime_ns < TICK_NS
            with suppress(FileNotFoundError):
                files.append(stack.enter_context(opened(log_path)))
            before = _state_of(files, is_fresh)
            for file, name in zip(files, (path.name, log_path.name), strict=False):
                with new_file(folder / name) as copy:
                    shutil.copyfileobj(file, copy, 2**20)
            again = [files[0]]
            with suppress(FileNotFoundError):
                again.append(stack.enter_context(opened(log_path)))
            if before == _state_of(again, is_fresh):
                return folder / path.name
    raise sqlite3.OperationalError("it changes all the time")


def content_of(path: Path) -> bytes:
    """Return a SQLite file as it is now, while others may write. Raises OSError, sqlite3.Error."""
    with tempfile.TemporaryDirectory(prefix="pilotfish-") as folder:
        copy = sqlite3.connect(copy_database(path, Path(folder)))
        try:
            return copy.serialize()
        finally:
            copy.close()


def temporary_copy(path: Path, stack: ExitStack) -> Path:
    """Copy a SQLite file for a dry run, because even reading leaves files; return its path, which may have no file.

    Args:
        path: the file; without it, and if it cannot be read, there is no copy, and the log says so.
        stack: removes the copy.
    """
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilotfish-")))
    try:
        return copy_database(path, folder)
    except (OSError, sqlite3.Error) as error:
        log.warning("%s: cannot be read, so the dry run has no profiles: %s", path, error)
        return folder / path.name


def _state_of(files: Sequence[BufferedReader], is_fresh: bool) -> list[object]:
    """Return values that change whenever the copy of a database and its log must be made again.

    Args:
        files: the database and, if there is one, its log.
        is_fresh: the database changed so lately that its next change may leave its time as it is.
    """
    about = os.fstat(files[0].fileno())
    state: list[object] = [about.st_ino, about.st_size, about.st_mtime_ns]
    if is_fresh:
        files[0].seek(0)
        state.append(hashlib.file_digest(files[0], "sha256").digest())
        files[0].seek(0)
    for log_file in files[1:]:
        log_file.seek(0)
        state += [os.fstat(log_file.fileno()).st_ino, log_file.read(LOG_HEADER)]
        log_file.seek(0)
    return state


VERSION = 1
#: Version of a journal -> its upgrade to the next version.
UPGRADES: dict[int, Upgrade] = {}
#: Of a row of `queued`: when its job ended, started or was seen last.
LAST_TIME = "coalesce(finish_time, start_time, said_time, submit_time, 0)"
_SCHEMA = f"""
CREATE TABLE workflows (
    id TEXT PRIMARY KEY, number INTEGER UNIQUE, name TEXT, idempotency_key TEXT UNIQUE, definition TEXT NOT
    NULL, submit_time REAL NOT NULL, state TEXT NOT NULL, finish_time REAL, owner INTEGER, size INTEGER);
CREATE TABLE jobs (
    workflow TEXT NOT NULL REFERENCES workflows ON DELETE CASCADE, job TEXT NOT NULL, position INTEGER,
    state TEXT NOT NULL, nodes TEXT, start_time REAL, finish_time REAL, exit_code INTEGER, signal INTEGER,
    reason TEXT, forecast_start REAL, forecast_finish REAL, isolated_run_time REAL, contention_slowdown REAL,
    promised REAL, expected REAL, handed INTEGER, cancel_wanted INTEGER, attempts INTEGER, not_before REAL,
    since REAL, plain_end REAL, forecast_earliest REAL, forecast_latest REAL, owner INTEGER, about TEXT,
    PRIMARY KEY (workflow, job)) WITHOUT ROWID;
{audit.SCHEMA}CREATE TABLE story (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, time REAL NOT NULL, cycle INTEGER, kind TEXT NOT NULL,
    text TEXT NOT NULL, data TEXT);
CREATE INDEX story_of ON story (key);
CREATE TABLE errors (id INTEGER PRIMARY KEY, ratio REAL NOT NULL, model TEXT NOT NULL DEFAULT '',
    source TEXT NOT NULL DEFAULT '', user INTEGER);
CREATE TABLE accounting (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, since REAL NOT NULL, ended REAL NOT NULL, due REAL NOT NULL,
    tries INTEGER NOT NULL, traits TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
-- jobs of the resource manager's queue, handed over or not; see `QueueRecord`
CREATE TABLE queued (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, owner INTEGER, account TEXT NOT NULL, queue TEXT NOT NULL,
    size INTEGER NOT NULL, walltime REAL, submit_time REAL, said_time REAL, said_start REAL, said_early REAL,
    said_late REAL, compared_time REAL, compared_start REAL, manager_start REAL, start_time REAL, finish_time REAL,
    learned INTEGER NOT NULL, said_guessed INTEGER NOT NULL) WITHOUT ROWID;
-- what must be known after a restart: of the policy (`planning.kept_policy`), and the pauses (`pauses`)
CREATE TABLE kept (name TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
{members.SCHEMA}-- read without the definitions, which can be large
CREATE INDEX owned ON workflows (owner, size);
CREATE INDEX newest ON workflows (number, id, owner);
CREATE INDEX newest_of ON workflows (owner, number);
CREATE INDEX alive ON workflows (id) WHERE finish_time IS NULL;
-- of jobs with a forecast, the last to end
CREATE INDEX ended ON jobs (state, finish_time) WHERE forecast_start IS NOT NULL;
-- the last jobs of the queue
CREATE INDEX last_seen ON queued ({LAST_TIME});
"""


def open_file(path: Path) -> sqlite3.Connection:
    """Open the journal exclusively, made with its folder if missing. Raises ConfigError."""
    try:
        existed = path.exists()
        prepare_database(path)
        if existed:
            _refuse_emptied(path)
        database = sqlite3.connect(path, isolation_level=None, timeout=0.5)
        try:
            _prepare(path, database, keeps_copy=True)
        except BaseException:
            database.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise unusable(path, error) from None
    return database


def open_copy(path: Path) -> sqlite3.Connection:
    """Return a copy of the journal in memory, empty without a file. Raises ConfigError."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for file in (path, path.with_name(f"{path.name}-wal")):
            if file.exists():
                check_file(file)
        _refuse_emptied(path)
        with tempfile.TemporaryDirectory() as folder:
            source = sqlite3.connect(copy_database(path, Path(folder)))
            try:
                source.backup(database)
            finally:
                source.close()
        _prepare(path, database)
    except (sqlite3.Error, OSError) as error:
        raise unusable(path, error) from None
    return database


def identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file at `path`, None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _refuse_emptied(path: Path) -> None:
    """Raise DatabaseError for a file that lost its content; SQLite would take it for a new one."""
    if not path.is_file() or path.stat().st_size:
        return
    for companion in (path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if companion.exists():
            raise sqlite3.DatabaseError(f"it is empty, but {companion.name} exists")
    for jobs in path.parent.glob("*/jobs"):  # of an adapter that keeps records of its jobs
        if jobs.is_dir() and any(jobs.iterdir()):
            raise sqlite3.DatabaseError(f"it is empty, but there are jobs in {jobs}")


def unusable(path: Path, error: Exception) -> ConfigError:
    """Return the error for a journal that cannot be used: what is wrong, and what to do.

    Args:
        path: the journal's file.
        error: raised by SQLite or the file system.
    """
    if "locked" in str(error):
        return ConfigError(str(path), "", "another pilotfish daemon is using this journal")
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        damaged = (
            f"the journal is damaged ({error}); it was left as it is, because starting without it would forget jobs"
        )
        return ConfigError(str(path), "", f"{damaged}: restore a copy of it, or move it away to start with none")
    return ConfigError(str(path), "", f"the journal cannot be opened: {error}")


def _newer(path: Path, version: int) -> ConfigError:
    """Return the error for a journal of a version that this program does not know: what to do."""
    if version < VERSION:
        return ConfigError(str(path), "", f"it is a journal of version {version}", f"version {VERSION}")
    copy = copy_before(path, version)
    backup = str(copy) if copy.exists() else "FILE, a backup made before the upgrade"
    remedy = f"install the newer pilotfish again, or go back: pilotfish restore {backup}"
    allowed = f"version {VERSION}, which pilotfish {__version__} reads; it was left as it is: {remedy}"
    return ConfigError(str(path), "", f"it is a journal of version {version}, of another pilotfish", allowed)


def _prepare(path: Path, database: sqlite3.Connection, *, keeps_copy: bool = False) -> None:
    run = database.execute
    run("PRAGMA locking_mode=EXCLUSIVE")
    run("PRAGMA journal_mode=WAL")
    run("PRAGMA synchronous=FULL")
    run("PRAGMA foreign_keys=ON")
    if keeps_copy:
        keep_copy(database, path, VERSION)
    run("BEGIN IMMEDIATE")
    version = run("PRAGMA user_version").fetchone()[0]
    if version == 0 and not run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        for statement in filter(str.strip, _SCHEMA.split(";\n")):
            run(statement)
        run(f"PRAGMA user_version={VERSION}")
    try:
        upgrade(database, VERSION, UPGRADES)
    except UnknownVersionError as error:
        raise _newer(path, error.version) from None
    run("COMMIT")
    verdict = run("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)
