"""The version of a SQLite file of ours, in its `user_version`, and the upgrades from one version to the next.

Rule: an upgrade is part of the caller's transaction, so a file is upgraded completely or left as it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

#: Turns a file of one version into a file of the next version.
Upgrade = Callable[[sqlite3.Connection], None]


class UnknownVersionError(Exception):
    """A file has a version that cannot be upgraded: `version`."""

    def __init__(self, version: int) -> None:
        super().__init__(f"version {version} is not known")
        self.version = version


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
