"""The store of profiles: named profiles, the runs behind them, and relative scores, in one SQLite file.

Rule: nothing that counts is lost. Runs are added, or marked as aged, and dropped when newer ones have long taken their
place (see `bounded`); what is written together is there whole or not at all.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from ..simulate.errors import ConfigError, InvalidJobError
from ..simulate.formats.shape import from_source, inside
from ..simulate.formats.shape import name as as_name
from ..simulate.job import Job, Profile
from ..simulate.platform import Cluster
from . import library
from .bounded import EVERY, Dropped, drop_commands, drop_runs, dropped, superfluous
from .estimate import Statistics, estimate, statistics
from .measurement import Measurement
from .pairs import parse_scores
from .prediction import relatives
from .schema import dump_entry, parse_entry, read_profiles, write_text
from .scored import with_scores
from .sensitivity import Scores
from .signature import signature
from .store_file import StoreFile, has_table

#: How long a command waits for who has locked the store, seconds.
PATIENCE_S = 10.0
#: "!" is what comes after a blank.
_OF_PROGRAM = """
SELECT name FROM run WHERE name = ? OR name >= ? AND name < ? GROUP BY name ORDER BY MAX(id) DESC LIMIT 1000
"""


class ProfileStore:
    """Named profiles, with the runs behind them; other names are looked up in the shipped library.

    Args:
        path: the SQLite file; it and its directory are made when something is first written.
        patience_s: how long is waited for who has locked it, seconds.
    """

    def __init__(self, path: str | Path, patience_s: float = PATIENCE_S) -> None:
        self.path = Path(path)
        self._file = StoreFile(self.path, patience_s, self._forget)
        self._forget()

    def _forget(self) -> None:
        self._seen: dict[str, Profile | None] = {}
        self._ran: dict[str, tuple[str, Sequence[str]]] = {}
        self._scored: tuple[Scores, ...] | None = None

    def __call__(self, name: str) -> Profile | None:
        """Return the profile of that name: the store as the workflow reader wants it."""
        return self.get(name)

    @property
    def version(self) -> int:
        """A number that is another one whenever the content may have changed. Raises ConfigError, as `get`."""
        with self._file.reading():
            return self._file.changes

    def get(self, name: str) -> Profile | None:
        """Return a profile of the store or of the shipped library, None if neither has it. O(1).

        Raises:
            ConfigError: the file is not a sound store.
        """
        with self._file.reading() as connection:
            if connection is not None and name not in self._seen:
                row = connection.execute("SELECT document FROM profile WHERE name = ?", (name,)).fetchone()
                self._seen[name] = self._profile(name, row[0]) if row else None
            found = self._seen.get(name) if connection is not None else None
        return found if found is not None else library.profiles().get(name)

    def own_names(self) -> list[str]:
        """Return the names in the store itself, sorted."""
        with self._file.reading() as connection:
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
        with self._file.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO profile VALUES (?, ?, ?)", (profile.name, document, document)
            )

    def record(self, name: str, measurement: Measurement) -> Profile | None:
        """Add a run and return the profile that all runs make; one that failed is only kept."""
        check_name(name)
        with self._file.writing() as connection:
            return self._record(connection, name, [measurement])

    def relearn(self, name: str, latest: int, date: str, runs: Sequence[Measurement] = ()) -> Profile | None:
        """Let all runs but the latest cease to count, and return the profile that those make; None if none ended well.

        Args:
            latest: how many runs still count, >= 1.
            date: of the day, ISO 8601.
            runs: more of them, the oldest first, which are added before.
        """
        check_name(name)
        known = self.get(name)
        with self._file.writing() as connection:
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

    def put_scores(self, scores: Scores) -> None:
        """Keep a program's relative scores, in place of earlier ones of the same program on such a processor."""
        check_name(scores.name)
        document = json.dumps(scores.to_dict())
        parse_scores(json.loads(document))
        with self._file.writing() as connection:
            values = (scores.name, scores.cpu_model, document)
            connection.execute("INSERT OR REPLACE INTO score VALUES (?, ?, ?)", values)

    def scores(self, name: str | None = None) -> tuple[Scores, ...]:
        """Return the relative scores of one program, or of all, the oldest first."""
        with self._file.reading() as connection:
            if connection is None or not has_table(connection, "score"):
                return ()
            if self._scored is None:
                rows = connection.execute("SELECT name, document FROM score").fetchall()
                self._scored = tuple(sorted((self._score(*row) for row in rows), key=lambda one: (one.date, one.name)))
            return tuple(one for one in self._scored if name is None or one.name == name)

    def scored(self, cluster: Cluster, among: Collection[str] | None = None) -> Cluster:
        """Return the cluster with what scored programs cost each other, see `scored`; itself where nothing is known.

        Args:
            among: names of profiles; None = all that were scored.
        """
        wanted = [one for one in self.scores() if among is None or one.name in among]
        return with_scores(cluster, wanted, self._counted)

    def _counted(self, name: str) -> bool:
        profile = self.get(name)
        return profile is not None and any(group.mean_bandwidth for group in profile.groups)

    def dropped(self) -> list[Dropped]:
        """Return how many runs and commands were dropped for their number so far."""
        with self._file.reading() as connection:
            return dropped(connection) if connection and has_table(connection, "dropped") else []

    def history(self, name: str) -> list[Measurement]:
        """Return every run recorded under a name, oldest first."""
        with self._file.reading() as connection:
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
        return self.record(_name_of(job), measurement)

    def record_all(self, runs: Iterable[tuple[str, Measurement]]) -> None:
        """Add runs, each under its name as `record` does, all or none. Each name's profile is made once."""
        by_name: dict[str, list[Measurement]] = {}
        for name, measurement in runs:
            check_name(name)
            by_name.setdefault(name, []).append(measurement)
        with self._file.writing() as connection:
            for name, own in by_name.items():
                self._record(connection, name, own)

    def record_jobs(self, runs: Iterable[tuple[Job, Measurement]]) -> None:
        """Add runs of jobs, each as `record_job` does, all or none."""
        self.record_all([(_name_of(job), measurement) for job, measurement in runs])

    def import_file(self, path: str | Path) -> list[str]:
        """Store the profiles of a YAML or JSON file, all or none; return their names. Raises ConfigError."""
        return self.put_all(read_profiles(path))

    def put_all(self, profiles: Mapping[str, Profile]) -> list[str]:
        """Store profiles, all or none; return their names."""
        with self._file.writing():
            for profile in profiles.values():
                self.put(profile)
        return list(profiles)

    def export_text(self, *, as_json: bool = False) -> str:
        """Return the store's own profiles as the text of a file that `import_file` reads."""
        profiles = {name: profile for name in self.own_names() if (profile := self.get(name))}
        return write_text(profiles, as_json=as_json)

    def close(self) -> None:
        """Let go of the file; the next call opens it again."""
        self._file.close()

    def _relatives(self, name: str) -> tuple[str, Sequence[str]]:
        """What a command has in common with those to go by, and their names; looked up once for all of its shape."""
        program, shape = relatives.program(name), relatives.shape(name)
        with self._file.reading() as connection:
            if connection is None or program is None:
                return "", ()
            if shape not in self._ran:
                found = connection.execute(_OF_PROGRAM, (program, f"{program} ", f"{program}!")).fetchall()
                self._ran[shape] = relatives.chosen(name, [other for (other,) in found])
            return self._ran[shape]

    def _record(self, connection: sqlite3.Connection, name: str, runs: Sequence[Measurement]) -> Profile | None:
        """Add runs of one name and return the profile that all its runs make."""
        for run in runs:
            self._add(connection, name, run)
        row = connection.execute("SELECT given FROM profile WHERE name = ?", (name,)).fetchone()
        given = row[0] if row else None
        known = self._profile(name, given) if given else None
        profile = estimate(name, self._bounded(connection, name), known)
        if profile is not None:
            values = (name, json.dumps(dump_entry(profile)), given)
            connection.execute("INSERT OR REPLACE INTO profile VALUES (?, ?, ?)", values)
        return profile

    @staticmethod
    def _add(connection: sqlite3.Connection, name: str, measurement: Measurement) -> None:
        document = json.dumps(measurement.to_dict())
        added = connection.execute("INSERT INTO run (name, document) VALUES (?, ?)", (name, document))
        if added.lastrowid and added.lastrowid % EVERY == 0:
            drop_commands(connection, measurement.date[:10])

    def _bounded(self, connection: sqlite3.Connection, name: str) -> list[Measurement]:
        """The runs of a name, without those that are too many, which are dropped."""
        runs = self._runs(connection, name)
        if excess := superfluous(runs):
            ids = connection.execute("SELECT id FROM run WHERE name = ? ORDER BY id", (name,)).fetchall()
            drop_runs(connection, [ids[place][0] for place in excess], runs[-1].date[:10])
        return [run for place, run in enumerate(runs) if place not in excess]

    def _runs(self, connection: sqlite3.Connection, name: str) -> list[Measurement]:
        rows = connection.execute("SELECT document FROM run WHERE name = ? ORDER BY id", (name,)).fetchall()
        try:
            return [Measurement.from_dict(json.loads(document)) for (document,) in rows]
        except (ValueError, TypeError, KeyError) as problem:
            raise self._file.unsound(f"a run of {name!r} cannot be read: {problem}") from None

    def _score(self, name: str, document: str) -> Scores:
        try:
            return parse_scores(json.loads(document))
        except (ValueError, TypeError, ConfigError) as problem:
            raise self._file.unsound(f"the scores of {name!r} cannot be read: {problem}") from None

    def _profile(self, name: str, document: str) -> Profile:
        try:
            return parse_entry(name, json.loads(document))
        except (ValueError, TypeError, ConfigError) as problem:
            raise self._file.unsound(f"the profile {name!r} cannot be read: {problem}") from None


def _name_of(job: Job) -> str:
    name = signature(job)
    if name is None:
        raise InvalidJobError(f"job {job.id!r} has no command, so that its run cannot be kept for later ones")
    return name


def check_name(name: str) -> None:
    """Raise ConfigError for a name that a profile cannot have."""
    from_source("profile", inside, "name", as_name, name)
