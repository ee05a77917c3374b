"""The state directory: private, and used by one adapter at a time.

Rule: the directory is trusted, because commands are stored in it (see `trust`); a second adapter is refused with the
first one's process id.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...trust import check_folder, make_folder, open_file
from ..base import AdapterError
from .job_files import BEGIN, END, LOCK, opened

LOCK_NAME = "adapter.lock"
PATIENCE_S = 1.0  #: how long a killed predecessor may take to release the lock


class StateDir:
    """An open state directory: `jobs` holds one directory per job, `forgotten` what is being removed.

    Args:
        path: The directory; created if missing.
        read_only: Create, lock and remove nothing.

    Raises:
        AdapterError: It belongs to another user, others can write to it, it cannot be created, or it is in use.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path).absolute()
        self.jobs, self.forgotten = self.path / "jobs", self.path / "forgotten"
        self._lock: int | None = None
        try:
            if read_only:
                for directory in (self.path, self.jobs):
                    with suppress(FileNotFoundError):
                        check_folder(directory)
                return
            for directory in (self.path, self.jobs, self.forgotten):
                make_folder(directory)
            self._lock = open_file(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            why = f"{self.path}: cannot be used as state directory: {error.strerror}"
            raise AdapterError(why, kind="refused") from error
        self._acquire(self._lock)
        for leftover in self.forgotten.iterdir():
            shutil.rmtree(leftover, ignore_errors=True)

    def _acquire(self, fd: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not lock(fd):
            if time.monotonic() > deadline:
                holder = os.pread(fd, 20, 0).decode(errors="replace").strip() or "?"
                os.close(fd)
                why = f"{self.path}: in use by another pilotfish (process {holder})"
                raise AdapterError(why, kind="refused", transient=True)
            time.sleep(0.02)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)

    def forget(self, name: str) -> None:
        """Remove the directory of a job, at once or not at all."""
        grave = self.forgotten / f"{time.time_ns()}"
        (self.jobs / name).rename(grave)
        shutil.rmtree(grave, ignore_errors=True)

    def close(self) -> None:
        """Release the directory for another adapter."""
        if self._lock is not None:
            os.close(self._lock)


def lock(fd: int) -> bool:
    """Take the lock of an open file without waiting; return False if another process holds it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def remove_ended(path: str | os.PathLike[str]) -> bool:
    """Remove an unused directory whose jobs have all ended; return False if it stays. O(jobs)."""
    root = Path(path)
    try:
        with _lock_of(root) as free:
            if not free or not all(map(_has_ended, (root / "jobs").iterdir())):
                return False
            shutil.rmtree(root)
    except OSError:
        return False
    return True


def _has_ended(job: Path) -> bool:
    """Return whether a job has an end on record, or never began and has no keeper."""
    if (job / END).exists():
        return True
    if (job / BEGIN).exists():
        return False
    with _lock_of(job, LOCK) as free:
        return free


@contextmanager
def _lock_of(directory: Path, name: str = LOCK_NAME) -> Iterator[bool]:
    """Hold the lock in a directory if it is free."""
    with opened(str(directory / name), os.O_RDWR) as fd:
        yield lock(fd)
