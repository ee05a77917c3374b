"""A SQLite file, copied as it is while others may write to it.

Rule: nothing is opened at the original: SQLite would leave files of its own beside it, even when only reading. What
changes meanwhile is copied again, so that a copy is whole.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

#: how often a file that changes meanwhile is copied
COPIES = 100


def copy_whole(path: Path, folder: Path) -> Path:
    """Copy the file and its -wal, those that exist, into `folder`; returns where the file is there.

    Raises:
        OSError: it cannot be read.
        sqlite3.OperationalError: it never stood still.
    """
    files = (path, path.with_name(f"{path.name}-wal"))
    for _ in range(COPIES):
        before = [_version_of(file) for file in files]
        for file in files:
            (folder / file.name).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.copyfile(file, folder / file.name)
        if before == [_version_of(file) for file in files]:
            return folder / path.name
    raise sqlite3.OperationalError("it is written to all the time")


def _version_of(path: Path) -> tuple[int, ...] | None:
    """What differs whenever the content of a file does; None where there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
