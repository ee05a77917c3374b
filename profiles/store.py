"""The store of profiles: named profiles and every run that was measured, in one SQLite file.

Rule: nothing is lost. A file that is not a sound store is left as it is and named in the error; runs are
only ever added, or marked as aged; a write is one transaction. Processes may read and write at once (WAL); in
one process, threads may share it.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..simulate.errors import ConfigError, InvalidJobError
from ..simulate.formats.shape import from_source, inside
from ..simulate.formats.shape import name as as_name
from ..simulate.job import Job, Profile
from . import library
from .estimate import Statistics, estimate, statistics
from .measurement import Measurement
from .prediction import relatives
from .schema import dump_entry, parse_entry, read_profiles, write_text
from .signature import signature

APPLICATION_ID = 0x70666973  # "pfis"
VERSION = 1
BUSY_S = 10.0
_TABLES = """
CREATE TABLE profile (name TEXT PRIMARY KEY, document TEXT NOT NULL, given TEXT) WITHOUT ROWID;
CREATE TABLE run (id INTEGER PRIMARY KEY, name TEXT NOT NULL, document TEXT NOT NULL);
CREATE INDEX run_of ON run (name, id);
"""
#: "!" is what comes after a blank.
_OF_PROGRAM = """
SELECT name FROM run WHERE name = ? OR name >= ? AND name < ? GROUP BY name ORDER BY MAX(id) DESC LIMIT 1000
"""


class ProfileStore:
    """Named profiles, with the runs behind them; other names are looked up in the shipped library.

    Args:
        path: the SQLite file; it and its directory are made when something is first written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._seen: dict[str, Profile | None] = {}
        self._ran: dict[str, tuple[str, Sequence[str]]] = {}
        self._data_version = -1

    def __call__(self, name: str) -> Profile | None:
        """Return the profile of that name: the store as the workflow reader wants it."""
        return self.get(name)

    def get(self, name: str) -> Profile | None:
        """Return a profile of the store or of the shipped library, None if neither has it. O(1).

        Raises:
            ConfigError: the file is not a sound store.
        """
        with self._reading() as connection:
            if connection is not None and name not in self._seen:
                row = connection.execute("SELECT document FROM profile WHERE name = ?", (name,)).fetchone()
                self._seen[name] = self._profile(name, row[0]) if row else None
            found = self._seen.get(name) if connection is not None else None
        return found if found is not None else library.profiles().get(name)

    def own_names(self) -> list[str]:
        """Return the names in the store itself, sorted."""
        with self._reading() as connection:
            rows = (
                connection.execute("SELECT name FROM profile ORDER BY name").fetchall() if connection else []
            )
        return [name for (name,) in rows]

    def names(self) -> list[str]:
        """Return the names in the store and in the shipped library, sorted."""
        return sorted({*self.own_names(), *library.profiles()})

    def put(self, profile: Profile) -> None:
        """Store a profile under its name, in place of an earlier one; its runs stay, later ones refine it."""
        check_name(profile.name)
        document = json.dumps(dump_entry(profile))
        parse_entry(profile.name, json.loads(document))
        with self._writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO profile VALUES (?, ?, ?)", (profile.name, document, document)
            )

    def record(self, name: str, measurement: Measurement) -> Profile | None:
        """Add a run and return the profile that all runs make; one that failed is only kept."""
        check_name(name)
        with self._writing() as connection:
            self._add(connection, name, measurement)
            row = connection.execute("SELECT given FROM profile WHERE name = ?", (name,)).fetchone()
            given = row[0] if row else None
            known = self._profile(name, given) if given else None
            profile = estimate(name, self._runs(connection, name), known)
            if profile is not None:
                values = (name, json.dumps(dump_entry(profile)), given)
                connection.execute("INSERT OR REPLACE INTO profile VALUES (?, ?, ?)", values)
        return profile

    def relearn(self, name: str, latest: int, date: str, runs: Sequence[Measurement] = ()) -> Profile | None:
        """Let all runs but the latest cease to count, and return the profile that those make; None if none ended well.

        Args:
            latest: how many runs still count, >= 1.
            date: of the day, ISO 8601.
            runs: more of them, the oldest first, which are added before.
        """
        check_name(name)
        known = self.get(name)
        with self._writing() as connection:
            for run in runs:
                self._add(connection, name, run)
            row = connection.execute("SELECT given FROM profile WHERE name = ?", (name,)).fetchone()
            old = "SELECT id, document FROM run WHERE name = ? ORDER BY id DESC LIMIT -1 OFFSET ?"
            for number, document in connection.execute(old, (name, latest)).fetchall():
                run_then = json.loads(document)
                run_then["aged"] = run_then.get("aged") or date
                connection.execute("UPDATE run SET document = ? WHERE id = ?", (json.dumps(run_then), number))
            profile = estimate(name, self._runs(connection, name), known)
            if profile is not None:
                values = (name, json.dumps(dump_entry(profile)), row[0] if row else None)
                connection.execute("INSERT OR REPLACE INTO profile VALUES (?, ?, ?)", values)
        return profile

    def history(self, name: str) -> list[Measurement]:
        """Return every run recorded under a name, oldest first."""
        with self._reading() as connection:
            return self._runs(connection, name) if connection else []

    def statistics(self, name: str) -> Statistics | None:
        """Return how the runs of a name scatter, None if none ended well."""
        return statistics(self.history(name))

    def for_job(self, job: Job) -> Profile | None:
        """Return what is known of a job by its command, None if it has none or it never ran."""
        name = signature(job)
        return self.get(name) if name else None

    def expected(self, job: Job) -> Profile | None:
        """Return what is known of a job by its command, or predicted from runs of its program; None if neither is."""
        name = signature(job)
        if name is None:
            return None
        known = self.get(name)
        if known is not None:
            return known
        common, others = self._relatives(name)
        profiles = [profile for other in others if (profile := self.get(other))]
        return relatives.predicted(name, common, profiles, job.walltime, job.memory)

    def record_job(self, job: Job, measurement: Measurement) -> Profile | None:
        """Add a run of a job under its command's name. Raises InvalidJobError if it has no command."""
        name = signature(job)
        if name is None:
            raise InvalidJobError(
                f"job {job.id!r} has no command, so that its run cannot be kept for later ones"
            )
        return self.record(name, measurement)

    def import_file(self, path: str | Path) -> list[str]:
        """Store the profiles of a YAML or JSON file, all or none; return their names. Raises ConfigError."""
        return self.put_all(read_profiles(path))

    def put_all(self, profiles: Mapping[str, Profile]) -> list[str]:
        """Store profiles, all or none; return their names."""
        with self._writing():
            for profile in profiles.values():
                self.put(profile)
        return list(profiles)

    def export_text(self, *, as_json: bool = False) -> str:
        """Return the store's own profiles as the text of a file that `import_file` reads."""
        profiles = {name: profile for name in self.own_names() if (profile := self.get(name))}
        return write_text(profiles, as_json=as_json)

    def close(self) -> None:
        """Let go of the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection, self._seen, self._ran, self._data_version = None, {}, {}, -1

    def _relatives(self, name: str) -> tuple[str, Sequence[str]]:
        """What a command has in common with those to go by, and their names; looked up once for all of its shape."""
        program, shape = relatives.program(name), relatives.shape(name)
        with self._reading() as connection:
            if connection is None or program is None:
                return "", ()
            if shape not in self._ran:
                found = connection.execute(_OF_PROGRAM, (program, f"{program} ", f"{program}!")).fetchall()
                self._ran[shape] = relatives.chosen(name, [other for (other,) in found])
            return self._ran[shape]

    @staticmethod
    def _add(connection: sqlite3.Connection, name: str, measurement: Measurement) -> None:
        document = json.dumps(measurement.to_dict())
        connection.execute("INSERT INTO run (name, document) VALUES (?, ?)", (name, document))

    def _runs(self, connection: sqlite3.Connection, name: str) -> list[Measurement]:
        rows = connection.execute("SELECT document FROM run WHERE name = ? ORDER BY id", (name,)).fetchall()
        try:
            return [Measurement.from_dict(json.loads(document)) for (document,) in rows]
        except (ValueError, TypeError, KeyError) as problem:
            raise self._unsound(f"a run of {name!r} cannot be read: {problem}") from None

    def _profile(self, name: str, document: str) -> Profile:
        try:
            return parse_entry(name, json.loads(document))
        except (ValueError, TypeError, ConfigError) as problem:
            raise self._unsound(f"the profile {name!r} cannot be read: {problem}") from None

    def _unsound(self, problem: str) -> ConfigError:
        allowed = "a profile store of pilotfish; this file is left as it is: move it away to begin a new one"
        return ConfigError(str(self.path), "", problem, allowed)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """Give the open file, None if there is none yet; forget what others have changed."""
        with self._lock, self._guard():
            if self._connection is None and not self.path.exists():
                yield None
                return
            connection = self._open()
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            if version != self._data_version:
                self._seen, self._ran, self._data_version = {}, {}, version
            yield connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Give the open file inside one transaction; inside another `_writing`, the outer one's."""
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
                self._seen, self._ran = {}, {}

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """Turn what SQLite and the file system complain of into one sentence for the operator."""
        try:
            yield
        except sqlite3.OperationalError as problem:
            raise ConfigError(str(self.path), "", f"the profile store cannot be used: {problem}") from None
        except sqlite3.DatabaseError as problem:
            raise self._unsound(f"not a sound profile store: {problem}") from None
        except OSError as problem:
            reason = f"the profile store cannot be used: {problem.strerror or problem}"
            raise ConfigError(str(self.path), "", reason) from None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            connection = sqlite3.connect(self.path, BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check that the file is ours and of this version; lay out a new one."""
        if self._identity(connection) == (0, 0) and self._is_empty(connection):
            _switch_to_wal(connection)
            connection.execute("BEGIN IMMEDIATE")
            if self._is_empty(connection):  # nobody was faster
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        application, version = self._identity(connection)
        if application != APPLICATION_ID:
            raise self._unsound("an SQLite file of another program")
        if version != VERSION:
            raise self._unsound(f"found schema version {version}, this pilotfish knows {VERSION}")

    @staticmethod
    def _identity(connection: sqlite3.Connection) -> tuple[Any, Any]:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return application, version

    @staticmethod
    def _is_empty(connection: sqlite3.Connection) -> bool:
        return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,))


def check_name(name: str) -> None:
    """Raise ConfigError for a name that a profile cannot have."""
    from_source("profile", inside, "name", as_name, name)


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Set write-ahead logging; SQLite does not wait for others while it is switched, so this does."""
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
