"""The kinds of jobs that job_submit.lua need not hold back, because holding them has gained nothing.

Rule: a kind is a user and a job name. Once FEWEST of its jobs were judged, and holding them lost time on average (the
newest MEMORY count most), a file PREFIX.UID.NAME is made; its jobs are then handed over without a hold. The file is
removed when the average is a gain again, and after AGAIN_S, so that one more job is held and judged; this time doubles,
up to LONGEST_S, each time that holding gained nothing. Of too many kinds, those of the user with the most go first.
Without the files all kinds are held, which costs time and nothing else. The files are empty, because the script must
not open what the account of pilotfish can replace.
"""

from __future__ import annotations

import logging
import os
import re
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
#: Most kinds, and most bytes of a name in a file name.
MOST, LONGEST_NAME = 500, 200

_SPECIAL = re.compile("[^A-Za-z0-9_-]")
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
        prefix: How the files begin, a path; None: there is no script to look for them.
        clock: Seconds, monotonic.

    Attributes:
        read_only: Change no file.
    """

    def __init__(self, prefix: Path | None, clock: Callable[[], float]) -> None:
        self._prefix, self._clock, self.read_only = prefix, clock, False
        self._gains = BoundedByOwner[Kind, _Gain](2 * MOST)
        self._written: frozenset[Path] | None = None
        self._warned = False

    def note(self, job: SlurmJob, gain_s: float) -> None:
        """Note what holding a job has gained, seconds, negative if it has lost time. O(1)."""
        if self._prefix is None or not _fits(job.name):
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
        """Make and remove files as the kinds have changed. O(kinds). What cannot be written is reported once."""
        if self._prefix is None or self.read_only:
            return
        now = self._clock()
        current = [kind for kind, gain in self._gains.items() if gain.until > now]
        kinds = [current[place] for place in turns([uid for uid, _ in current])[:MOST]]
        files = frozenset(self._prefix.with_name(f"{self._prefix.name}.{uid}.{_escaped(name)}") for uid, name in kinds)
        if files == self._written:
            return
        try:
            if self._written is None:  # of a daemon that was killed
                self._written = frozenset(self._present())
            for file in self._written - files:
                file.unlink(missing_ok=True)
            for file in files - self._written:
                os.close(open_file(file, os.O_WRONLY | os.O_CREAT))
            self._written, self._warned = files, False
        except OSError as error:
            self._written = None
            if not self._warned:
                problem = "cannot be written, so job_submit.lua holds every job"
                log.warning("%s.*: %s: %s", self._prefix, problem, error.strerror)
            self._warned = True

    def remove(self) -> None:
        """Remove the files, as at the end of the daemon."""
        if self._prefix is not None and not self.read_only:
            with suppress(OSError):
                for file in self._present():
                    file.unlink(missing_ok=True)

    def _present(self) -> list[Path]:
        assert self._prefix is not None
        begin = f"{self._prefix.name}."
        return [path for path in self._prefix.parent.iterdir() if path.name.startswith(begin)]


def _escaped(name: str) -> str:
    """Return a name of a job as a part of a file name, as job_submit.lua forms it."""
    return _SPECIAL.sub(lambda letter: f"%{ord(letter[0]):02X}", name)


def _fits(name: str) -> bool:
    return bool(name) and name.isprintable() and name.isascii() and len(_escaped(name)) <= LONGEST_NAME
