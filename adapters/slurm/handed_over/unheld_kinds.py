"""The kinds of jobs that job_submit.lua need not hold back, because holding them has gained nothing.

Rule: a kind is a user and a job name. Once FEWEST of its jobs were judged, and holding them lost time on average (the
newest MEMORY count most), the kind is written to a file that the script reads; its jobs are then handed over without a
hold. The kind is removed from the file when the average is a gain again. It is also removed after AGAIN_S, so that one
more job is held and judged; this time doubles, up to LONGEST_S, each time that holding gained nothing. Of too many
kinds, those of the user with the most go first. Without the file all kinds are held, which costs time and nothing else.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ....simulate.model.bounded import BoundedByOwner, turns
from ....trust import open_file
from ..records import SlurmJob

log = logging.getLogger("pilotfish.adapters")
#: Jobs until a kind is judged, and jobs that count.
FEWEST, MEMORY = 5, 10
#: Seconds until a kind is tried again: first, and at most.
AGAIN_S, LONGEST_S = 600.0, 4 * 3600.0
#: Most kinds, and most bytes of a name: what the script reads under Slurm's locks stays small.
MOST, LONGEST_NAME = 500, 100

#: User id, and name of the job.
Kind = tuple[int, str]


@dataclass(slots=True)
class _Gain:
    jobs: int = 0
    mean_s: float = 0.0
    until: float = 0.0  # it is not held until then, monotonic seconds
    rest_s: float = AGAIN_S


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
        self._gains = BoundedByOwner[Kind, _Gain](2 * MOST)
        self._written: frozenset[Kind] | None = None

    def note(self, job: SlurmJob, gain_s: float) -> None:
        """Note what holding a job has gained, seconds, negative if it has lost time. O(1)."""
        if self._path is None or not _fits(job.name):
            return
        kind = job.uid, job.name
        gain = self._gains.get(kind) or _Gain()
        self._gains.put(kind, gain, job.uid)
        gain.jobs += 1
        gain.mean_s += (gain_s - gain.mean_s) / min(gain.jobs, MEMORY)
        now = self._clock()
        if gain.mean_s > 0.0:
            gain.until, gain.rest_s = now, AGAIN_S
        elif gain.jobs >= FEWEST and gain.until <= now:
            gain.until, gain.rest_s = now + gain.rest_s, min(2 * gain.rest_s, LONGEST_S)

    def write(self) -> None:
        """Write the file if the kinds have changed. O(kinds). A file that cannot be written is reported once."""
        if self._path is None or self.read_only:
            return
        now = self._clock()
        known = [kind for kind, gain in self._gains.items() if gain.until > now]
        kinds = frozenset(known[place] for place in turns([uid for uid, _ in known])[:MOST])
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
