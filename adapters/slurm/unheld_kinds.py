"""Which kinds of jobs job_submit.lua need not hold back, because placing them has gained nothing for some time.

Rule: a kind is a user with a name of job. After LOSSES jobs in a row that were not worth holding it is written to a
file that the script reads; its jobs are then handed over free to start. It is taken out when one was worth it, and
after a time, so that the next job of the kind is held and judged again: AGAIN_S, each time in vain twice as long, up to
LONGEST_S. Without the file all are held: whoever removes it loses time and nothing else.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...trust import open_file
from .records import SlurmJob

log = logging.getLogger("pilotfish.adapters")
#: Jobs in a row, and seconds until a kind is tried again: first, and at most.
LOSSES, AGAIN_S, LONGEST_S = 5, 600.0, 4 * 3600.0
#: Most kinds, and most bytes of a name: what the script reads under Slurm's locks stays small.
MOST, LONGEST_NAME = 500, 100

#: User id, and name of the job.
Kind = tuple[int, str]


@dataclass(slots=True)
class _Losses:
    count: int = 0
    until: float = 0.0  # it is not held until then, monotonic seconds
    lasts_s: float = AGAIN_S


class UnheldKinds:
    """The kinds that are not held now.

    Args:
        path: The file; None: there is no script to read it.
        clock: Seconds, monotonic.

    Attributes:
        read_only: Change no file.
    """

    def __init__(self, path: Path | None, clock: Callable[[], float]) -> None:
        self._path, self._clock, self.read_only = path, clock, False
        self._losses: dict[Kind, _Losses] = {}
        self._written: frozenset[Kind] | None = None

    def note(self, job: SlurmJob, *, gained: bool) -> None:
        """Note whether it was worth holding a job. O(1)."""
        kind = job.uid, job.name
        losses = self._losses.pop(kind, None) or _Losses()
        if self._path is None or gained or not _fits(job.name):
            return
        self._losses[kind] = losses  # the newest last
        losses.count += 1
        now = self._clock()
        if losses.count >= LOSSES and losses.until <= now:
            losses.until, losses.lasts_s = now + losses.lasts_s, min(2 * losses.lasts_s, LONGEST_S)
            losses.count = LOSSES - 1  # then one more is enough
        while len(self._losses) > 2 * MOST:
            del self._losses[next(iter(self._losses))]

    def write(self) -> None:
        """Write the file if the kinds have changed. O(kinds). A file that cannot be written is reported once."""
        if self._path is None or self.read_only:
            return
        now = self._clock()
        kinds = frozenset([kind for kind, losses in self._losses.items() if losses.until > now][-MOST:])
        if kinds == self._written:
            return
        self._written = kinds
        lines = "".join(f"{uid} {name}\n" for uid, name in sorted(kinds))
        draft = self._path.with_name(f".{self._path.name}.new")
        try:
            with os.fdopen(open_file(draft, os.O_WRONLY | os.O_CREAT), "w", encoding="utf-8") as file:
                os.fchmod(file.fileno(), 0o644)  # Slurm's user reads it
                file.truncate()
                file.write(lines)
            os.replace(draft, self._path)
        except OSError as error:
            log.warning("%s cannot be written, so job_submit.lua holds every job: %s", self._path, error.strerror)

    def remove(self) -> None:
        """Remove the file, as at the end of the daemon."""
        if self._path is not None and self._written is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


def _fits(name: str) -> bool:
    return bool(name) and name.isprintable() and name.isascii() and len(name) <= LONGEST_NAME
