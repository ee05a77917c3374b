"""The profile store: named profiles, the runs behind them, and relative scores, in one SQLite file.

Rule: runs are added or marked as aged; a write is complete or absent. The store is bounded: the oldest runs are dropped
and counted, and the longest unused automatic commands of the users with the most. No profile rests on dropped runs,
because more runs are kept than count. Profiles that a user named or gave stay.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ..formats.documents.document_errors import from_source, inside
from ..formats.documents.schema import name as as_name
from ..simulate.errors import ConfigError, InvalidJobError
from ..simulate.model.bounded import turns
from ..simulate.model.cluster import Cluster
from ..simulate.model.job import Job, Profile
from . import library
from .estimate import Statistics, estimate, have_same_inputs, statistics
from .identity import UNTOLD, kind_owner, owner_apart, program, signature, words_checksum
from .interference.scores import Scores, parse_scores, with_scores
from .measurement import Measurement
from .prediction import similar_commands, similar_jobs
from .profiles_file import dump_entry, parse_entry, read_profiles, write_text
from .store_db import StoreFile

T = TypeVar("T")
#: Runs with the names of their commands, and names of other commands of the program.
_Relatives = tuple[Sequence[tuple[str, Measurement]], Sequence[str]]
#: Lock timeout of the store, seconds.
PATIENCE_S = 10.0
#: "!" follows the blank in ASCII.
_OF_PROGRAM = """
SELECT name FROM run WHERE name = ? OR name >= ? AND name < ? GROUP BY name ORDER BY MAX(id) DESC LIMIT 1000
"""
#: Most runs of a name that succeeded (LATEST of them count, see `estimate`), and that failed.
MOST_RUNS, MOST_FAILED = 100, 20
#: Most commands, checked every so many runs.
MOST_COMMANDS, CHECK_EVERY = 5000, 100
_COMMANDS = "(name >= 'cmd: ' AND name < 'cmd:!' OR name >= 'job: ' AND name < 'job:!')"
#: Later runs of jobs of a resource manager, the newest first; `+` keeps SQLite from an index that does not help.
_JOBS_SINCE = f"""
SELECT id, name, document FROM run WHERE id > ? AND +name >= 'job: ' AND +name < 'job:!' ORDER BY id DESC
LIMIT {similar_jobs.MOST}
"""
#: Names of such jobs with their numbers of runs, and all commands with the users of their latest runs, the newest last.
_KINDS = "SELECT name, COUNT(*) FROM run WHERE name >= 'job: ' AND name < 'job:!' GROUP BY name ORDER BY MAX(id)"
_OWNERS = f"""
SELECT name, CASE WHEN name < 'job:' THEN json_extract(document, '$.owner') END FROM run
WHERE id IN (SELECT MAX(id) FROM run WHERE {_COMMANDS} GROUP BY name) ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Number of items that the store dropped: `what` is runs or commands; `latest`: date of the last time, ISO 8601."""

    what: str
    number: int
    latest: str


class ProfileStore:
    """Named profiles, with the runs behind them; other names are looked up in the shipped library.

    Args:
        path: the SQLite file; it and its directory are created by the first write.
        patience_s: lock timeout, seconds.
        skip: see StoreFile.
    """

    def __init__(
        self, path: str | Path, patience_s: float = PATIENCE_S, *, skip: Callable[[str], None] | None = None
    ) -> None:
        self.path = Path(path)
        self._file = StoreFile(self.path, patience_s, self._clear_cache, skip)
        self._clear_cache()
        self._similar = similar_jobs.SimilarJobs()

    def _clear_cache(self) -> None:
        self._profiles: dict[str, Profile | None] = {}
        self._relatives_by_shape: dict[str, _Relatives] = {}
        self._scored: tuple[Scores, ...] | None = None

    def __call__(self, name: str) -> Profile | None:
        """Return the profile of that name, as `get`: the interface of the workflow reader."""
        return self.get(name)

    @property
    def version(self) -> int:
        """A number that changes whenever the content may have changed. Raises ConfigError, as `get`."""
        with self._file.reading():
            return self._file.changes

    def get(self, name: str) -> Profile | None:
        """Return a profile of the store or of the shipped library, None if neither has it. O(1). Raises ConfigError."""
        with self._file.reading() as connection:
            if connection is not None and name not in self._profiles:
                row = connection.execute("SELECT document FROM profile WHERE name = ?", (name,)).fetchone()
                self._profiles[name] = self._profile(name, row[0]) if row else None
            profile = self._profiles.get(name) if connection is not None else None
        return profile if profile is not None else library.profiles().get(name)

    def own_names(self) -> list[str]:
        """Return the names in the store itself, sorted."""
        with self._file.reading() as connection:
            rows = connection.execute("SELECT name FROM profile ORDER BY name") if connection else ()
            return [name for (name,) in rows]

    def names(self) -> list[str]:
        """Return the names in the store and in the shipped library, sorted."""
        return sorted({*self.own_names(), *library.profiles()})

    def put(self, profile: Profile) -> None:
        """Store a profile under its name, replacing an earlier one; its runs stay, and later ones refine it."""
        check_name(profile.name)
        document = json.dumps(dump_entry(profile))
        parse_entry(profile.name, json.loads(document))
        with self._file.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO profile VALUES (?, ?, ?)", (profile.name, document, document))

    def record(self, name: str, measurement: Measurement) -> Profile | None:
        """Add a run and return the profile of all runs; a failed run is only stored.

        Args:
            name: of the profile.
            measurement: of the run.
        """
        check_name(name)
        with self._file.writing() as connection:
            return self._record(connection, name, [measurement])

    @property
    def owner(self) -> int:
        """The uid of the user whose store this is: of the file, or of this process before it exists."""
        try:
            return self.path.stat().st_uid
        except OSError:
            return os.geteuid()

    def owner_of(self, name: str) -> int | None:
        """Return the uid of the user whose runs change a profile; None for one of the shipped library."""
        apart = owner_apart(name)
        return apart if apart is not None else self.owner if name in self.own_names() else None

    def relearn(
        self, name: str, latest: int, date: str, runs: Sequence[Measurement] = (), like: str = ""
    ) -> Profile | None:
        """Age all runs but the latest, and return the profile of those; None if none succeeded.

        Args:
            name: of the profile.
            latest: number of runs that still count, >= 1.
            date: today, ISO 8601.
            runs: further runs to add first, oldest first.
            like: the profile that gives the values that no run measured, if the name is new.
        """
        check_name(name)
        prior = self.get(name) or (self.get(like) if like else None)
        with self._file.writing() as connection:
            user_document = self._add(connection, name, runs)
            old = "SELECT id, document FROM run WHERE name = ? ORDER BY id DESC LIMIT -1 OFFSET ?"
            for number, document in connection.execute(old, (name, latest)).fetchall():
                for run_then in self._file.readable("run", [(number, name, document)], self._run):
                    aged = json.dumps(replace(run_then, aged=run_then.aged or date).to_dict())
                    connection.execute("UPDATE run SET document = ? WHERE id = ?", (aged, number))
            profile = estimate(name, self._runs(connection, name), prior)
            return self._replace(connection, profile, user_document)

    def put_scores(self, scores: Scores) -> None:
        """Store a program's relative scores, replacing earlier ones of it on the same processor."""
        check_name(scores.name)
        document = json.dumps(scores.to_dict())
        parse_scores(json.loads(document))
        with self._file.writing() as connection:
            values = (scores.name, scores.cpu_model, document)
            connection.execute("INSERT OR REPLACE INTO score VALUES (?, ?, ?)", values)

    def scores(self, name: str | None = None) -> tuple[Scores, ...]:
        """Return the relative scores of one program, or of all, oldest first."""
        with self._file.reading() as connection:
            if connection is None:
                return ()
            if self._scored is None:
                rows = connection.execute("SELECT name, document FROM score").fetchall()
                scores = self._file.readable("score", rows, lambda row: self._parsed(parse_scores, row[1], "it"))
                self._scored = tuple(sorted(scores, key=lambda one: (one.date, one.name)))
            return tuple(one for one in self._scored if name is None or one.name == name)

    def scored(self, cluster: Cluster, among: Collection[str] | None = None) -> Cluster:
        """Return the cluster with the pair factors of scored programs (see `with_scores`).

        Args:
            cluster: returned unchanged if nothing is known.
            among: names of profiles; None = all scored ones.
        """

        def counted(name: str) -> bool:
            return (profile := self.get(name)) is not None and any(group.mean_bandwidth for group in profile.groups)

        return with_scores(cluster, (one for one in self.scores() if among is None or one.name in among), counted)

    def dropped(self) -> list[Dropped]:
        """Return how many runs and commands were dropped so far."""
        with self._file.reading() as connection:
            if connection is None:
                return []
            rows = connection.execute("SELECT what, number, latest FROM dropped ORDER BY what")
            return [Dropped(*row) for row in rows]

    def history(self, name: str) -> list[Measurement]:
        """Return every run recorded under a name, oldest first."""
        with self._file.reading() as connection:
            return self._runs(connection, name) if connection else []

    def runs(self) -> list[tuple[str, Measurement]]:
        """Return all runs with their names, oldest first."""
        with self._file.reading() as connection:
            rows = connection.execute("SELECT id, name, document FROM run ORDER BY id") if connection else ()
            return self._file.readable("run", rows, lambda row: (row[1], self._run(row)))

    def statistics(self, name: str) -> Statistics | None:
        """Return how the runs of a name vary, None if none succeeded."""
        return statistics(self.history(name))

    def for_job(self, job: Job) -> Profile | None:
        """Return the profile of a job's command, None without a command or a run of it."""
        name = signature(job)
        return self.get(name) if name else None

    def expected(self, job: Job, *, predict: bool = True) -> Profile | None:
        """Return the profile of a job's command, or one predicted from runs of its program; else None.

        It is measured if the same command ran with inputs of the same sizes. A prediction takes about a millisecond. If
        no file that a command names exists yet, because a predecessor of the job will write it, the runs count whose
        files had the same names.

        Args:
            job: the job.
            predict: also return a prediction if the command was not measured.
        """
        name, inputs = signature(job), {place: size for place, size in job.inputs if size >= 0.0}
        if name is None:
            return None
        prior = self.get(name)
        measured = prior if prior and have_same_inputs(dict(prior.provenance.inputs), inputs) else None
        unclear, untold = not inputs and "*" in name, UNTOLD in name
        if not predict or (measured and not unclear and not untold):
            return None if untold else measured
        runs, others = self._relatives(name)
        if unclear and (profile := similar_commands.of_same_words(job, prior, runs)):
            return profile
        ran = any(other == name for other, _ in runs)
        if unclear or untold:  # runs of this name whose words differ in a variable, or in what never was a file
            checksums = ("", words_checksum(job))
            runs = [
                (other, run)
                for other, run in runs
                if other != name or run.words in checksums or (run.inputs and not untold)
            ]
        if same_runs := [run for other, run in runs if other == name and have_same_inputs(run.inputs, inputs)]:
            return estimate(name, same_runs, prior)
        if grown := similar_commands.grown_profile(name, inputs, runs, job.walltime, job.memory):
            return grown
        if prior and not ran:
            return prior
        profiles = [prior] if prior else [profile for other in others if (profile := self.get(other))]
        return similar_commands.predicted(name, profiles, job.walltime, job.memory)

    def similar(self, job: Job) -> Profile | None:
        """Return the profile of a resource manager's job, predicted from ended ones of its user; else None."""
        name = signature(job)
        if name is None or not job.traits:
            return None
        self.learn_similar()
        return self._similar.predicted(job, name)

    def learn_similar(self) -> None:
        """Read the runs on which `similar` rests that were not read yet: at first many, which takes about 0.3 s."""
        with self._file.reading() as connection:
            rows = self._later_jobs(connection) if connection is not None else ()
            for number, run in self._file.readable("run", rows, lambda row: (row[0], self._run(row))):
                self._similar.learn(number, run)

    def _later_jobs(self, connection: sqlite3.Connection) -> list[tuple[int, str, str]]:
        """Return the runs of jobs to learn from, the oldest first: at first the latest names of all users in turns."""
        if self._similar.latest:
            return connection.execute(_JOBS_SINCE, (self._similar.latest,)).fetchall()[::-1]
        kinds, names, budget = connection.execute(_KINDS).fetchall(), list[str](), similar_jobs.MOST
        for place in turns([kind_owner(name) for name, _ in kinds]):
            if budget <= 0:
                break
            names.append(kinds[place][0])
            budget -= kinds[place][1]
        placeholders = ",".join("?" * len(names))
        return connection.execute(
            f"SELECT id, name, document FROM run WHERE name IN ({placeholders}) ORDER BY id", names
        ).fetchall()

    def record_all(self, runs: Iterable[tuple[str, Measurement]]) -> None:
        """Add runs, each under its name as `record` does, all or none. Each name's profile is made once."""
        by_name: dict[str, list[Measurement]] = {}
        for name, measurement in runs:
            check_name(name)
            by_name.setdefault(name, []).append(measurement)
        with self._file.writing() as connection:
            for name, measurements in by_name.items():
                self._record(connection, name, measurements)

    def record_jobs(self, runs: Iterable[tuple[Job, Measurement]]) -> None:
        """Add runs of jobs under their commands' names, all or none. Raises InvalidJobError without a command."""
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
        """Close the file; the next call opens it again."""
        self._file.close()

    def _relatives(self, name: str) -> _Relatives:
        """Return the runs of commands of the same shape, oldest first, or else the names of others; cached by shape."""
        base_name, shape = program(name), similar_commands.shape(name)
        with self._file.reading() as connection:
            if connection is None or base_name is None:
                return (), ()
            if shape not in self._relatives_by_shape:
                rows = connection.execute(_OF_PROGRAM, (base_name, f"{base_name} ", f"{base_name}!")).fetchall()
                alike, others = similar_commands.relatives(name, [other for (other,) in rows])
                self._relatives_by_shape[shape] = self._latest(connection, alike), others
            return self._relatives_by_shape[shape]

    def _latest(self, connection: sqlite3.Connection, names: Sequence[str]) -> list[tuple[str, Measurement]]:
        """Return the latest runs under some names, oldest first."""
        placeholders = ",".join("?" * len(names))
        query = f"SELECT id, name, document FROM run WHERE name IN ({placeholders}) ORDER BY id DESC LIMIT {MOST_RUNS}"
        rows = connection.execute(query, names).fetchall() if names else []
        return self._file.readable("run", rows[::-1], lambda row: (row[1], self._run(row)))

    def _record(self, connection: sqlite3.Connection, name: str, runs: Sequence[Measurement]) -> Profile | None:
        user_document = self._add(connection, name, runs)
        prior = self._profile(name, user_document) if user_document else None
        return self._replace(connection, estimate(name, self._bounded(connection, name), prior), user_document)

    @staticmethod
    def _replace(connection: sqlite3.Connection, profile: Profile | None, user_document: str | None) -> Profile | None:
        """Store and return a name's new profile, if there is one."""
        if profile is not None:
            values = (profile.name, json.dumps(dump_entry(profile)), user_document)
            connection.execute("INSERT OR REPLACE INTO profile VALUES (?, ?, ?)", values)
        return profile

    @staticmethod
    def _add(connection: sqlite3.Connection, name: str, runs: Iterable[Measurement]) -> str | None:
        """Store runs; return the document that the user gave for their name."""
        for run in runs:
            values = (name, json.dumps(run.to_dict()))
            added = connection.execute("INSERT INTO run (name, document) VALUES (?, ?)", values)
            if added.lastrowid and added.lastrowid % CHECK_EVERY == 0:
                drop_commands(connection, run.date[:10])
        row = connection.execute("SELECT given FROM profile WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def _bounded(self, connection: sqlite3.Connection, name: str) -> list[Measurement]:
        """Return the runs of a name after dropping the excess ones."""
        numbered = self._numbered_runs(connection, name)
        runs = [run for _, run in numbered]
        if excess := excess_runs(runs):
            connection.executemany("DELETE FROM run WHERE id = ?", [numbered[place][:1] for place in excess])
            _count(connection, "runs", len(excess), runs[-1].date[:10])
        return [run for place, run in enumerate(runs) if place not in excess]

    def _runs(self, connection: sqlite3.Connection, name: str) -> list[Measurement]:
        return [run for _, run in self._numbered_runs(connection, name)]

    def _numbered_runs(self, connection: sqlite3.Connection, name: str) -> list[tuple[int, Measurement]]:
        rows = connection.execute("SELECT id, name, document FROM run WHERE name = ? ORDER BY id", (name,)).fetchall()
        return self._file.readable("run", rows, lambda row: (row[0], self._run(row)))

    def _run(self, row: tuple[int, str, str]) -> Measurement:
        return self._parsed(Measurement.from_dict, row[2], f"a run of {row[1]!r}")

    def _profile(self, name: str, document: str) -> Profile:
        return self._parsed(partial(parse_entry, name), document, f"the profile {name!r}")

    def _parsed(self, parse: Callable[[Any], T], document: str, subject: str) -> T:
        """Return what a document means; name an entry that cannot be read, as an invalid store."""
        try:
            document.encode()  # what is not UTF-8 was read as surrogates
            return parse(json.loads(document))
        except (ValueError, TypeError, KeyError, AttributeError, InvalidJobError, ConfigError) as problem:
            raise self._file.invalid(f"{subject} cannot be read: {problem}") from None


def _name_of(job: Job) -> str:
    name = signature(job)
    if name is None:
        raise InvalidJobError(f"job {job.id!r} has no command: its run cannot be stored")
    return name


def check_name(name: str) -> None:
    """Raise ConfigError for an invalid profile name."""
    from_source("profile", inside, "name", as_name, name)


def excess_runs(runs: Sequence[Measurement]) -> list[int]:
    """Return the indices of the runs to drop, ascending; runs are ordered oldest first."""
    well = [i for i, run in enumerate(runs) if not run.exit_code]
    failed = [i for i, run in enumerate(runs) if run.exit_code]
    return sorted(well[: max(0, len(well) - MOST_RUNS)] + failed[: max(0, len(failed) - MOST_FAILED)])


def drop_commands(connection: sqlite3.Connection, date: str, most: int = MOST_COMMANDS) -> None:
    """Delete commands beyond `most`, with their runs, and count them: the longest unused of the user with the most."""
    if connection.execute(f"SELECT COUNT(DISTINCT name) FROM run WHERE {_COMMANDS}").fetchone()[0] <= most:
        return
    commands = connection.execute(_OWNERS).fetchall()
    owners = [kind_owner(name) if owner is None else str(owner) for name, owner in commands]
    names = [(commands[place][0],) for place in turns(owners)[most:]]
    connection.executemany("DELETE FROM run WHERE name = ?", names)
    connection.executemany("DELETE FROM profile WHERE name = ? AND given IS NULL", names)
    _count(connection, "commands", len(names), date)


def _count(connection: sqlite3.Connection, noun: str, number: int, date: str) -> None:
    if number:
        more = "ON CONFLICT (what) DO UPDATE SET number = number + excluded.number, latest = excluded.latest"
        connection.execute(f"INSERT INTO dropped VALUES (?, ?, ?) {more}", (noun, number, date))
