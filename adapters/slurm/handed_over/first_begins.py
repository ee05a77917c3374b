"""The begin time with which each job was handed over, and the jobs that were let go, stored across restarts.

Rule: if the begin time has changed since then, the user moved it. The file is written soon after a job is first seen;
without it, a move by a few seconds looks like a hold.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from ....trust import make_folder, open_file
from ..records import SlurmJob

#: When a job was submitted (an id can return later), and its begin time, None if it was let go; epoch seconds.
Seen = tuple[float | None, float | None]


class FirstBegins:
    """Begin times by job.

    Args:
        folder: The state directory; None: they are kept in memory.
        read_only: Change no file.
    """

    def __init__(self, folder: Path | None, *, read_only: bool = False) -> None:
        self._path, self._read_only = None if folder is None else folder / "begins.json", read_only
        self._first = _read(self._path)
        self._saved = dict(self._first)

    def moved(self, job: SlurmJob) -> bool:
        """Return whether the begin time of a job is not the one with which this was first asked."""
        first = self._first.get(job.id)
        if first is None or first[0] != job.submit:
            first = self._first[job.id] = (job.submit, job.begin)
        return first[1] != job.begin

    def jobs(self) -> Collection[int]:
        """Return the ids of the jobs."""
        return self._first.keys()

    def note_let_go(self, job: SlurmJob) -> None:
        """Remember that a job was given to Slurm for good."""
        self._first[job.id] = (job.submit, None)

    def is_let_go(self, job: SlurmJob) -> bool:
        """Return whether a job was given to Slurm for good."""
        return self._first.get(job.id) == (job.submit, None)

    def retain(self, jobs: Collection[int]) -> None:
        """Forget all jobs but these, and save what has changed. A file that cannot be written does no harm."""
        self._first = {job: begin for job, begin in self._first.items() if job in jobs}
        if self._path is None or self._read_only or self._first == self._saved:
            return
        draft = self._path.with_name(".begins.new")
        with suppress(OSError):
            make_folder(self._path.parent)
            with os.fdopen(open_file(draft, os.O_WRONLY | os.O_CREAT), "w") as file:
                file.truncate()
                json.dump(self._first, file)
            os.replace(draft, self._path)
            self._saved = dict(self._first)


def _read(path: Path | None) -> dict[int, Seen]:
    """Return the saved state; {} if it cannot be read, as if each job were seen for the first time."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        if path is not None:
            with os.fdopen(open_file(path)) as file:
                return {int(job): (submit, begin) for job, (submit, begin) in json.load(file).items()}
    return {}
