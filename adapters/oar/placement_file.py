"""The placement file: which jobs the shim keeps from OAR's scheduler, and on which nodes it lets the placed ones start.

Rule: the file is replaced as a whole, and is void without its last line or after `alive`. The daemon reads it when it
starts, so that a restart forgets neither the jobs that were let go for good nor the placements. One daemon writes it: a
lock next to it keeps others away.

    pilotfish-placements 1
    alive EPOCH                     until when it holds
    keep queue|project NAME SECONDS the jobs that are kept, for so long after their submission
    free JOB                        one that is let go
    place JOB UNTIL NODE...         one that may start, on these nodes alone, until then
    end
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...formats.text import count
from ...simulate.errors import ConfigError
from ...trust import open_file
from ..base import AdapterError

log = logging.getLogger("pilotfish.adapters")
HEADER, END = "pilotfish-placements 1", "end"
#: Longest heartbeat that the shim accepts, seconds: a clock that is set back prolongs no hold by more.
LONGEST_ALIVE_S = 120
#: Seconds by which OAR's clock and that of this machine may differ, reading included.
CLOCKS_S = 5.0
#: What the shim accepts as the name of a queue or project, and of a node.
NAME = re.compile(r"[A-Za-z0-9_.:-]{1,80}")
NODE = re.compile(r"[A-Za-z0-9_.-]{1,100}")
#: Most bytes of a file that the shim reads.
MOST_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Placement:
    """The nodes of a job, since when and until when they are meant for it, epoch seconds of this machine."""

    nodes: tuple[str, ...]
    since: float
    until: float


class Clocks:
    """Logs when this machine's clock and OAR's begin to differ, and when they agree again: the file has this one's."""

    def __init__(self) -> None:
        self._ahead = 0  # whether this machine's clock is ahead of OAR's; -1: behind

    def compare(self, ahead_s: float) -> None:
        """Compare them; this machine's clock is ahead of OAR's by so many seconds."""
        before, self._ahead = self._ahead, (ahead_s > CLOCKS_S) - (ahead_s < -CLOCKS_S)
        if self._ahead and self._ahead != before:
            how = f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'}"
            log.warning("this machine's clock is %s OAR's: OAR may place jobs without us until they agree", how)
        elif before and not self._ahead:
            log.warning("this machine's clock agrees with OAR's again")


def silent_since(path: Path) -> float | None:
    """Return since when a file is worth nothing, epoch seconds, in the future while it holds; None: it is missing.

    One that is damaged was never worth anything.
    """
    try:
        with os.fdopen(open_file(path), errors="replace") as file:
            written_at, text = os.fstat(file.fileno()).st_mtime, file.read(MOST_BYTES)
    except FileNotFoundError:
        return None
    heading = re.match(rf"{HEADER}\nalive (\d{{1,12}})\n", text)
    return float(heading[1]) if heading and text.endswith(f"\n{END}\n") else written_at


class PlacementFile:
    """The file at `path`.

    Args:
        path: The file; OAR's account reads it.
        keep: The kept jobs: lines such as `queue NAME`.
        hold_s: For how long after its submission a job is kept, seconds.
        clock: The clock of this machine, epoch seconds.
    """

    def __init__(self, path: Path, keep: Iterable[str], hold_s: float, clock: Callable[[], float] = time.time) -> None:
        self.path, self.hold_s, self._keep, self._clock = path, hold_s, tuple(keep), clock
        self.read_only = False
        self.unwritten = ""  # why the last heartbeat could not be written
        self._alive = 0.0
        self._placed: dict[int, Placement] = {}
        self._freed: set[int] = set()
        self._lock: int | None = None
        self._read()

    def lock(self) -> None:
        """Keep other daemons from writing the file. Raises ConfigError if one does so now."""
        path = self.path.with_name(f".{self.path.name}.lock")
        with suppress(OSError):  # then the file cannot be written either, and the heartbeat says so
            self._lock = open_file(path, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(self._lock, 20, 0).decode(errors="replace").strip()
                self.unlock()
                problem = f"another pilotfish daemon (process {holder or '?'}) writes {self.path}"
                raise ConfigError("adapter oar", "placement_file", problem, "a file for each daemon") from None
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def unlock(self) -> None:
        """Let another daemon write the file."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def placed(self) -> Mapping[int, Placement]:
        """The placements that hold now, by job: none from before the clock was set back."""
        now = self._clock()
        return {job: entry for job, entry in self._placed.items() if entry.since - CLOCKS_S <= now <= entry.until}

    @property
    def freed(self) -> Collection[int]:
        """The jobs that were let go for good."""
        return self._freed

    def beat(self, for_s: float) -> None:
        """Let it hold for so many seconds from now, at most LONGEST_ALIVE_S. Raises AdapterError."""
        self._alive = self._clock() + min(for_s, LONGEST_ALIVE_S - 1)
        self._write()

    def renew(self, for_s: float) -> None:
        """Let it hold for so many seconds from now, as `beat` does; log once that it cannot be written."""
        try:
            self.beat(for_s)
            self.unwritten = ""
        except AdapterError as error:
            if self.unwritten != str(error):
                log.error("%s", error)
            self.unwritten = str(error)

    def place(self, job: int, nodes: tuple[str, ...], for_s: float, alive_s: float) -> None:
        """Let a job start on these nodes alone. Raises AdapterError.

        Args:
            job: Its id.
            nodes: Their names.
            for_s: For how long, seconds.
            alive_s: Least time for which the file holds, seconds.
        """
        if bad := [node for node in nodes if not NODE.fullmatch(node)]:
            raise AdapterError(f"the node {bad[0]!r} has a name that the placement file cannot hold", kind="refused")
        now = self._clock()
        self._placed[job] = Placement(nodes, now, now + for_s)
        self.beat(max(alive_s, self._alive - now))

    def unplace(self, job: int) -> None:
        """Let a job be kept as before it was placed. Raises AdapterError."""
        if self._placed.pop(job, None):
            self._write()

    def free(self, job: int) -> None:
        """Let a job go for good, now. Raises AdapterError."""
        self.let_go(job)
        self._write()

    def let_go(self, job: int) -> None:
        """Let a job go for good, with the next change of the file."""
        self._placed.pop(job, None)
        self._freed.add(job)

    def retain(self, waiting: Collection[int]) -> None:
        """Forget all jobs but these; the next file has no others."""
        self._freed.intersection_update(waiting)
        self._placed = {job: placement for job, placement in self.placed.items() if job in waiting}

    def text(self) -> str:
        """Return the text of the file."""
        hold_s = int(self.hold_s)
        lines = [HEADER, f"alive {int(self._alive)}", *(f"keep {kind} {hold_s}" for kind in self._keep if hold_s)]
        lines += [f"free {job}" for job in sorted(self._freed)]
        lines += [
            f"place {job} {int(entry.until)} {' '.join(entry.nodes)}" for job, entry in sorted(self.placed.items())
        ]
        return "\n".join([*lines, END, ""])

    def _write(self) -> None:
        if self.read_only:
            return
        content = self.text().encode()
        if len(content) > MOST_BYTES:
            raise AdapterError(
                f"{self.path}: {count(len(self._placed), 'placement')} are too many for the shim", kind="refused"
            )
        draft = self.path.with_name(f".{self.path.name}.new")
        try:
            with os.fdopen(open_file(draft, os.O_WRONLY | os.O_CREAT), "wb") as file:
                os.fchmod(file.fileno(), 0o644)  # OAR's account reads it
                file.truncate()
                file.write(content)
            os.replace(draft, self.path)
        except OSError as error:
            why = f"{self.path} cannot be written, so OAR places jobs without us: {error.strerror}"
            raise AdapterError(why, transient=True, kind="state") from None

    def _read(self) -> None:
        """Take over the content of a complete file; ignore any other file."""
        try:
            with os.fdopen(open_file(self.path)) as file:
                lines = file.read(MOST_BYTES).splitlines()
        except (OSError, ValueError):
            return
        if lines[:1] != [HEADER] or lines[-1] != END:
            return
        with suppress(ValueError, IndexError):
            for keyword, *words in (line.split(" ") for line in lines[1:-1]):
                if keyword == "alive" and float(words[0]) <= self._clock() + LONGEST_ALIVE_S:
                    self._alive = float(words[0])  # what is written before the first heartbeat ends no hold
                elif keyword == "free":
                    self._freed.add(int(words[0]))
                elif keyword == "place":
                    self._placed[int(words[0])] = Placement(tuple(words[2:]), self._clock(), float(words[1]))
