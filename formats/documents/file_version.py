"""The version of a SQLite file of ours, in its `user_version`, and the upgrades from one version to the next.

Rule: an upgrade is part of the caller's transaction, so a file is upgraded completely or left as it is. The file as it
was before lies next to it, so that one can go back.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from ...trust import prepare_database

#: Turns a file of one version into a file of the next version.
Upgrade = Callable[[sqlite3.Connection], None]


class UnknownVersionError(Exception):
    """A file has a version that cannot be upgraded: `version`."""

    def __init__(self, version: int) -> None:
        super().__init__(f"version {version} is not known")
        self.version = version


def copy_before(path: Path, newest: int) -> Path:
    """Return where the copy of a file lies that was made before its upgrade to a version."""
    return path.with_name(f"before-version-{newest}-{path.name}")


def keep_copy(database: sqlite3.Connection, path: Path, newest: int) -> None:
    """Copy a file of an older version before its upgrade, by SQLite's backup interface. O(bytes).

    An earlier copy is replaced only after the new one is on disk.

    Args:
        database: the file, outside of a transaction.
        path: of the file.
        newest: the version that it will have.

    Raises:
        OSError: the copy cannot be made.
        sqlite3.Error: the file cannot be read, or the copy not written.
    """
    if not 0 < int(database.execute("PRAGMA user_version").fetchone()[0]) < newest:
        return
    target = copy_before(path, newest)
    draft = target.with_name(f"{target.name}.partial")
    draft.unlink(missing_ok=True)
    try:
        prepare_database(draft)
        with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
            database.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def upgrade(database: sqlite3.Connection, newest: int, upgrades: Mapping[int, Upgrade]) -> None:
    """Upgrade a file to the newest version, step by step.

    Args:
        database: the file, inside a transaction.
        newest: the version to reach, 1 or more.
        upgrades: version of a file -> its upgrade to the next version.

    Raises:
        UnknownVersionError: the file is newer, or an upgrade is missing.
    """
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    steps = range(version, newest)
    if version > newest or not all(step in upgrades for step in steps):
        raise UnknownVersionError(version)
    for step in steps:
        upgrades[step](database)
    if steps:
        database.execute(f"PRAGMA user_version = {newest}")
