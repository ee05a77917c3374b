"""What can be asked of Slurm, whichever way: a protocol, and the way by its commands.

Rule: a transport knows how to ask and how to read the answer; it decides nothing. An answer that cannot be read whole
is an error, never fewer jobs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from time import time as machine_time
from typing import Protocol

from ..base import AdapterError, ParseError
from . import books, limits, partitions, reservations, sacct, scontrol, settings, sinfo, squeue, submission, update
from .books import Entry
from .limits import Limits
from .partitions import Partition
from .records import SlurmJob, SlurmNode
from .reservations import Reservation
from .runner import Runner
from .settings import Settings
from .table import draw_mark

#: Seconds by which this machine's clock may be ahead: the controller tells its time in whole seconds.
AHEAD_S = 5.0
#: Seconds after which accounting is not waited for any more that can be asked again at any time.
BOOKS_S = 5.0
_TIME = re.compile(r"sdiag output at .*\((\d+)\)")


class Transport(Protocol):
    """A way to Slurm. Every call is one request and raises AdapterError."""

    @property
    def notes(self) -> Sequence[str]:
        """What a person should know of it."""
        ...

    def jobs(self, ids: Iterable[int] = ()) -> list[SlurmJob]:
        """All jobs of the queue, or those of `ids` that are there."""
        ...

    def excluded(self) -> dict[int, tuple[str, ...]]:
        """Nodes that waiting jobs must not run on, by job id."""
        ...

    def nodes(self) -> list[SlurmNode]:
        """All nodes."""
        ...

    def partitions(self) -> dict[str, Partition]:
        """All partitions, by name."""
        ...

    def reservations(self) -> list[Reservation]:
        """All reservations that keep nodes."""
        ...

    def limits(self) -> Limits:
        """The limits of QOS and associations."""
        ...

    def settings(self) -> Settings:
        """The controller's settings."""
        ...

    def time(self) -> float:
        """The controller's clock, epoch seconds."""
        ...

    def ended(self, ids: Iterable[int]) -> list[SlurmJob]:
        """What accounting knows of jobs that have left the queue; kind `unrecorded` where there is no accounting."""
        ...

    def ended_as(self, names: Iterable[str], uid: int, since: float) -> list[SlurmJob]:
        """The same, of jobs of one user by their names, that were there at `since` (epoch seconds) or later."""
        ...

    def books(self, which: Sequence[str]) -> list[Entry]:
        """What ended jobs used, as accounting has it; `which` are options of `sacct`. `unrecorded` as above."""
        ...

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        """Change allowed fields of a job, all at once."""
        ...

    def submit(self, argv: Sequence[str]) -> int:
        """Submit a job, as the argv of an `sbatch`; returns its id."""
        ...

    def cancel(self, job: int) -> None:
        """End a job."""
        ...

    def power_off(self, nodes: Sequence[str]) -> None:
        """Let Slurm's power saving put nodes to sleep, each once it is idle."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class Told:
    """A transport that reads through another, and tells what would be written instead of writing: `argvs`."""

    def __init__(self, inner: Transport) -> None:
        self._inner, self.notes = inner, inner.notes
        self.argvs: list[list[str]] = []
        self.jobs, self.excluded, self.nodes, self.time = inner.jobs, inner.excluded, inner.nodes, inner.time
        self.partitions, self.reservations = inner.partitions, inner.reservations
        self.limits, self.settings = inner.limits, inner.settings
        self.ended, self.ended_as, self.books = inner.ended, inner.ended_as, inner.books

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        """Note the `scontrol`."""
        self.argvs.append(update.command(job, fields))

    def submit(self, argv: Sequence[str]) -> int:
        """Note the `sbatch`."""
        self.argvs.append(list(argv))
        return 0

    def cancel(self, job: int) -> None:
        """Note the `scancel`."""
        self.argvs.append(["scancel", str(job)])

    def power_off(self, nodes: Sequence[str]) -> None:
        """Note the `scontrol`."""
        self.argvs.append(update.power_off_command(nodes))

    def close(self) -> None:
        """Nothing is open."""


class ByCommands:
    """Slurm by its commands.

    Args:
        run: what runs commands; `run_books` those for which jobs must not wait.
        clock: seconds, monotonic; `wall` is this machine's time, by which `scontrol` goes.
    """

    def __init__(
        self,
        run: Runner,
        clock: Callable[[], float] = monotonic,
        wall: Callable[[], float] = machine_time,
        *,
        run_books: Runner | None = None,
    ) -> None:
        self._run, self._run_books, self._clock, self._wall = run, run_books, clock, wall
        self._offset: float | None = None  # of the controller's time to our clock
        self._read_jobs, self._read_nodes = squeue.reader(), sinfo.reader()
        self.notes: Sequence[str] = ()

    def jobs(self, ids: Iterable[int] = ()) -> list[SlurmJob]:
        """One `squeue`."""
        mark, some = draw_mark(), list(ids)
        try:
            return self._read_jobs(self._run(squeue.command(mark, some)), mark, whole=not some)
        except AdapterError as error:
            if "Invalid job id" in error.stderr_tail:
                return []  # asked for by id, and gone
            raise

    def excluded(self) -> dict[int, tuple[str, ...]]:
        """One `squeue` of waiting jobs."""
        mark = draw_mark()
        return squeue.parse_excluded(self._run(squeue.excluded_command(mark)), mark)

    def unshown(self) -> dict[int, squeue.Unshown]:
        """One `squeue` of waiting jobs, for what REST does not show of them."""
        mark = draw_mark()
        return squeue.parse_unshown(self._run(squeue.unshown_command(mark)), mark)

    def nodes(self) -> list[SlurmNode]:
        """One `sinfo`."""
        mark = draw_mark()
        return sinfo.merged(self._read_nodes(self._run(sinfo.command(mark)), mark))

    def partitions(self) -> dict[str, Partition]:
        """One `scontrol show partition`."""
        return partitions.parse(self._run(scontrol.command("partition")))

    def reservations(self) -> list[Reservation]:
        """One `scontrol show reservation`."""
        return reservations.parse(self._run(scontrol.command("reservation")))

    def limits(self) -> Limits:
        """One `scontrol show assoc_mgr`."""
        return limits.parse(self._run(limits.command()))

    def settings(self) -> Settings:
        """One `scontrol show config`."""
        return settings.parse(self._run(["scontrol", "show", "config"]))

    def time(self) -> float:
        """One `sdiag`, which says it."""
        printed = self._run(["sdiag"])
        found = _TIME.search(printed)
        if not found:
            raise ParseError("sdiag: it does not say the time", argv=("sdiag",), stderr_tail=printed[:200])
        self._offset = float(found[1]) - self._clock()
        return float(found[1])

    def ended(self, ids: Iterable[int]) -> list[SlurmJob]:
        """One `sacct`."""
        mark = draw_mark()
        return sacct.parse(self._recorded(sacct.command(mark, sacct.of_ids(ids))), mark)

    def ended_as(self, names: Iterable[str], uid: int, since: float) -> list[SlurmJob]:
        """One `sacct`."""
        mark = draw_mark()
        return sacct.parse(self._recorded(sacct.command(mark, sacct.of_names(names, uid, since))), mark)

    def books(self, which: Sequence[str]) -> list[Entry]:
        """One `sacct`, with the steps, of which there may be many: it is given up sooner than others."""
        mark = draw_mark()
        return books.parse(self._recorded(books.command(mark, which), self._run_books), mark)

    def _recorded(self, argv: Sequence[str], run: Runner | None = None) -> str:
        try:
            return (run or self._run)(argv)
        except AdapterError as error:
            if sacct.DISABLED in error.stderr_tail:
                raise AdapterError(sacct.DISABLED, kind="unrecorded", argv=argv) from None
            raise

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        """One `scontrol update`, not done where `scontrol` would read a time of now as one to come.

        No other time is of help: what lies before its own now it moves there.
        """
        ahead = 0.0 if self._offset is None else self._wall() - self._clock() - self._offset
        if ahead > AHEAD_S and fields.get("StartTime") == "now":
            why = f"the clock here is {ahead:.0f} s ahead of the controller's, scontrol would hold the job for so long"
            raise AdapterError(why, kind="clock")
        self._run(update.command(job, fields))

    def submit(self, argv: Sequence[str]) -> int:
        """One `sbatch`."""
        printed = self._run(argv)
        try:
            return submission.job_id(printed)
        except (ValueError, IndexError):
            raise ParseError("sbatch: it does not say the job id", argv=argv, stderr_tail=printed[:200]) from None

    def cancel(self, job: int) -> None:
        """One `scancel`."""
        self._run(["scancel", str(job)])

    def power_off(self, nodes: Sequence[str]) -> None:
        """One `scontrol update`."""
        self._run(update.power_off_command(nodes))

    def close(self) -> None:
        """Nothing is open."""
