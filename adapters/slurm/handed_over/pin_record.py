"""The record of our pins.

Rule: the record alone decides. It is written before Slurm is asked to pin a job, and neither a user nor a job can
change it: a job is pinned by us if the record has it and the job must still run on those nodes. No comment says so,
because a command that Slurm carries out late would undo the user's newer comment.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ....trust import make_folder, open_file
from ...base import AdapterError

log = logging.getLogger("pilotfish.slurm")


@dataclass(frozen=True, slots=True)
class Pin:
    """A pin of ours: the job's user, the nodes, when it was set (controller's clock, epoch seconds).

    Without nodes: the job is held back until that time, to be pinned next.

    Args:
        own: The nodes are those that the user asked for; there is nothing to undo.
    """

    uid: int
    nodes: tuple[str, ...]
    time: int
    own: bool = False


class PinRecord:
    """The pins that we set, one file for each in `STATE/pins`, named by the job's id.

    Args:
        folder: The state directory; None: the record is kept in memory.
        read_only: Change no file.
    """

    def __init__(self, folder: Path | None, *, read_only: bool = False) -> None:
        self._folder, self._read_only = None if folder is None else folder / "pins", read_only
        self._pins: dict[int, Pin] = {}
        self._read: int | None = None
        self.damaged: frozenset[int] = frozenset()  #: jobs whose file cannot be read
        self.unread = ""  #: why the directory cannot be read; "": it can, or is still to be made
        self.refresh()

    def get(self, job: int) -> Pin | None:
        """Return the pin of a job; the reader of the queue finds out whether the job still has it."""
        return self._pins.get(job)

    def jobs(self) -> Collection[int]:
        """Return the ids of the jobs on record."""
        return self._pins.keys()

    def refresh(self) -> None:
        """Read the record again if another process has changed it, such as the reaper. O(1) if none has.

        If it was deleted, write it again: without it, neither reaper nor next daemon would know these pins.
        """
        if self._folder is None:
            return
        try:
            changed = self._folder.stat().st_mtime_ns
            if changed == self._read:
                return
            names = [name for name in os.listdir(self._folder) if name.isascii() and name.isdecimal()]
        except FileNotFoundError:
            self._write_again()
            return
        except OSError as error:
            self.unread = f"{self._folder}: {error.strerror}"
            return
        pins, damaged = dict[int, Pin](), set[int]()
        for name in names:
            try:
                with os.fdopen(open_file(self._folder / name)) as file:
                    pins[int(name)] = _pin_in(file.read())
            except FileNotFoundError:
                continue
            except (OSError, ValueError, KeyError, TypeError):
                damaged.add(int(name))
        self._pins, self.damaged, self._read, self.unread = pins, frozenset(damaged), changed, ""

    def add(self, job: int, pin: Pin) -> None:
        """Record a pin, before Slurm is asked for it. Raises AdapterError: it was not recorded, so it must not be set.

        Args:
            job: The job's id.
            pin: The pin.
        """
        if self._folder is not None and not self._read_only:
            if not self._folder.exists():
                self._write_again()
            try:
                make_folder(self._folder)
                draft = self._folder / f".{job}.new"
                _write(draft, json.dumps(asdict(pin)).encode())
                os.replace(draft, self._folder / str(job))
                self._read = self._folder.stat().st_mtime_ns
            except OSError as error:
                why = f"{self._folder}: the pin cannot be recorded, so it is not set: {error.strerror}"
                raise AdapterError(why, transient=True, kind="state") from None
        self._pins[job] = pin

    def drop(self, job: int) -> None:
        """Forget a pin that is gone. A file that cannot be removed is read again and does no harm."""
        self._pins.pop(job, None)
        if self._folder is not None and not self._read_only:
            with suppress(OSError):
                (self._folder / str(job)).unlink()
                self._read = self._folder.stat().st_mtime_ns

    def retain(self, jobs: Collection[int]) -> None:
        """Forget the pins of all jobs but these: they have left the queue.

        An empty queue forgets nothing: a user without rights, from whom jobs are hidden, sees an empty queue, too.
        """
        recorded = self._pins.keys() | self.damaged
        for number in recorded - set(jobs) if not recorded.isdisjoint(jobs) else ():
            self.drop(number)

    def _write_again(self) -> None:
        if self._folder is None or self._read is None or self._read_only:
            return
        with suppress(OSError, AdapterError):
            make_folder(self._folder)
            log.warning("%s was deleted: the record of pins is written again", self._folder)
            for job, pin in list(self._pins.items()):
                self.add(job, pin)


def _pin_in(text: str) -> Pin:
    form = json.loads(text)
    return Pin(int(form["uid"]), tuple(map(str, form["nodes"])), int(form["time"]), bool(form["own"]))


def _write(path: Path, content: bytes) -> None:
    """Write a new file, to disk, for its owner only."""
    with os.fdopen(open_file(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.truncate()
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
