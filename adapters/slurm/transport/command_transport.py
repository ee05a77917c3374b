"""The requests that can be sent to Slurm, as a protocol, and their transport by Slurm's commands.

Rule: a transport sends requests and parses answers; it decides nothing. An incomplete answer is an error, never fewer
jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from time import time as machine_time
from typing import Protocol

from ....formats.hostlist import fold
from ...base import Activity, AdapterError, ParseError
from .. import submission
from ..allocation import SystemShare
from ..handed_over import job_update
from ..placement import limits, partitions
from ..placement.limits import Limits
from ..placement.partitions import Partition, SlurmReservation
from ..records import SlurmJob, SlurmNode
from . import sacct, scontrol, sdiag, squeue
from .parsing import IncrementalTable, Record
from .rows import Unreadable
from .runner import Runner
from .sacct import UsageEntry
from .scontrol import ControllerSettings

#: Seconds by which this machine's clock may be ahead: the controller reports whole seconds.
AHEAD_S = 5.0
#: Time limit of a request for usage, seconds: it can be sent again at any time.
USAGE_TIMEOUT_S = 5.0


class Transport(Protocol):
    """All requests to Slurm. Every call is one request and raises AdapterError."""

    notes: Sequence[str]  #: sentences for a person, logged once at start

    def jobs(self, ids: Collection[int] = ()) -> list[SlurmJob]:
        """Return all jobs of the queue, or those of `ids` that are there. An unchanged job is the very same record."""

    def excluded(self) -> dict[int, tuple[str, ...] | None]:
        """Return the nodes that waiting jobs must not run on, by job id; None: unreadable."""

    def resized(self, job: int) -> bool:
        """Return whether Slurm changed the nodes of a job after it had begun."""

    def nodes(self) -> list[SlurmNode]:
        """Return all nodes."""

    def time(self) -> float:
        """Return the controller's clock, epoch seconds."""

    def activity(self) -> Activity:
        """Return counts of what has happened."""

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        """Change allowed fields of a job, all at once. Raises `NotDone` if Slurm was surely not asked to."""

    def close(self) -> None:
        """Close connections."""

    def partitions(self) -> dict[str, Partition]:
        """Return all partitions, by name."""

    def reservations(self) -> list[SlurmReservation]:
        """Return all reservations that keep nodes."""

    def limits(self) -> Limits:
        """Return the limits of QOS and associations."""

    def settings(self) -> ControllerSettings:
        """Return the controller's settings."""

    def ended(self, filters: Sequence[str]) -> list[SlurmJob]:
        """Return ended jobs from accounting, by options of `sacct`; kind `unrecorded` if there is no accounting."""

    def usage(self, filters: Sequence[str]) -> list[UsageEntry]:
        """Return what ended jobs used, from accounting, as `ended` does."""

    def submit(self, argv: Sequence[str]) -> int:
        """Submit a job by the argv of an `sbatch`; return its id."""

    def cancel(self, job: int) -> None:
        """Cancel a job."""

    def switch(self, nodes: Sequence[str], state: str) -> None:
        """Let Slurm's power saving switch nodes: POWER_DOWN, each once it is idle, or POWER_UP."""


class CommandTransport:
    """Slurm by its commands.

    Args:
        run: Runs a command and returns what it printed.
        clock: Monotonic clock, seconds.
        wall: Clock of this machine, epoch seconds, by which `scontrol` goes.
        run_usage: Runs requests for usage, with a shorter time limit; None: `run`.
        unreadable: Counts and reports unreadable rows.
    """

    def __init__(
        self,
        run: Runner,
        clock: Callable[[], float] = monotonic,
        wall: Callable[[], float] = machine_time,
        *,
        run_usage: Runner | None = None,
        unreadable: Unreadable | None = None,
    ) -> None:
        self._run, self._run_usage, self._clock, self._wall = run, run_usage or run, clock, wall
        self._offset: float | None = None  # the controller's time minus our clock
        self.unreadable = report = unreadable or Unreadable()
        self._queue, self._nodes, self._excluded = (
            squeue.queue(report),
            squeue.node_table(report),
            squeue.excluded(report),
        )
        self._merged: tuple[list[SlurmNode], list[SlurmNode]] = [], []  # rows of the last answer, and the nodes there
        self.notes: Sequence[str] = ()

    def jobs(self, ids: Collection[int] = ()) -> list[SlurmJob]:
        """Return jobs; one `squeue`."""
        filters = [f"--jobs={','.join(map(str, ids))}"] if ids else []
        try:
            return self._queue.ask(self._run, *filters, whole=not ids)
        except AdapterError as error:
            if "Invalid job id" in error.stderr_tail:
                return []  # requested by id, and gone
            raise

    def excluded(self) -> dict[int, tuple[str, ...] | None]:
        """Return excluded nodes; one `squeue` of waiting jobs."""
        return {job: names for job, names in self._excluded.ask(self._run) if names != ()}

    def hidden_fields(self) -> dict[int, SlurmJob]:
        """Return by job id what REST does not show of waiting jobs; one `squeue`."""
        return {job.id: job for job in squeue.hidden(self.unreadable).ask(self._run)}

    def resized(self, job: int) -> bool:
        """Return whether a job was resized; one `scontrol show job` (squeue's ResizeTime is another thing)."""
        return self.allocation(job).resized

    def allocation(self, job: int) -> scontrol.Allocation:
        """Return the nodes and cores of a job that has begun; one `scontrol show job`."""
        return scontrol.allocation(self._run(["scontrol", "--details", "show", "job", str(job)]))

    def nodes(self) -> list[SlurmNode]:
        """Return all nodes; one `sinfo`."""
        rows = self._nodes.ask(self._run)
        if rows is not self._merged[0]:
            self._merged = rows, squeue.merged(rows)
            self.unreadable.bound(len(self._merged[1]))
        return self._merged[1]

    def partitions(self) -> dict[str, Partition]:
        """Return all partitions; one `scontrol show partition`."""
        return partitions.parse(self._run(scontrol.command("partition")), self.unreadable)

    def reservations(self) -> list[SlurmReservation]:
        """Return all reservations; one `scontrol show reservation`."""
        return partitions.parse_reservations(self._run(scontrol.command("reservation")), self.unreadable)

    def limits(self) -> Limits:
        """Return the limits; one `scontrol show assoc_mgr`."""
        return limits.parse(
            self._run(["scontrol", "--oneliner", "show", "assoc_mgr", "flags=assoc,qos"]), self.unreadable
        )

    def settings(self) -> ControllerSettings:
        """Return the settings of the controller and of nodes; `scontrol show config` and `scontrol show node`."""
        settings = scontrol.parse_settings(self._run(["scontrol", "show", "config"]))
        return replace(settings, system_shares=self.system_shares())

    def system_shares(self) -> dict[str, SystemShare]:
        """Return what nodes keep for the system; one `scontrol show node`."""
        return scontrol.parse_system_shares(self._run(scontrol.command("node")))

    def time(self) -> float:
        """Return the controller's clock, epoch seconds; one `sdiag`."""
        now = sdiag.time_of(self._run(["sdiag"]))
        self._offset = now - self._clock()
        return now

    def activity(self) -> Activity:
        """Return what has happened so far; one `sdiag`."""
        return sdiag.activity(self._run(["sdiag"]))

    def ended(self, filters: Sequence[str]) -> list[SlurmJob]:
        """Return ended jobs; one `sacct`."""
        return sacct.jobs(self._recorded(sacct.table(), self._run, filters), self.unreadable)

    def usage(self, filters: Sequence[str]) -> list[UsageEntry]:
        """Return usage of ended jobs; one `sacct` with steps, which may be many, so its time limit is shorter."""
        return sacct.usage(self._recorded(sacct.usage_table(), self._run_usage, filters), self.unreadable)

    def _recorded(self, table: IncrementalTable[Record], run: Runner, filters: Sequence[str]) -> list[Record]:
        try:
            return table.ask(run, *filters)
        except AdapterError as error:
            if sacct.DISABLED in error.stderr_tail:
                raise AdapterError(sacct.DISABLED, kind="unrecorded", argv=error.argv) from None
            raise

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        """Change a job; one `scontrol update`, refused if `scontrol` would read "now" as a time to come.

        No other time helps: `scontrol` moves a time before its own now to its now.
        """
        ahead = 0.0 if self._offset is None else self._wall() - self._clock() - self._offset
        if ahead > AHEAD_S and "StartTime" in fields:
            why = f"the clock here is {ahead:.0f} s ahead of the controller's: scontrol would hold the job for so long"
            raise AdapterError(why, kind="clock")
        self._run(job_update.command(job, fields))

    def submit(self, argv: Sequence[str]) -> int:
        """Submit a job; one `sbatch`."""
        printed = self._run(argv)
        try:
            return submission.job_id(printed)
        except (ValueError, IndexError):
            raise ParseError("sbatch: the answer has no job id", argv=argv, stderr_tail=printed[:200]) from None

    def cancel(self, job: int) -> None:
        """Cancel a job; one `scancel`."""
        self._run(["scancel", str(job)])

    def switch(self, nodes: Sequence[str], state: str) -> None:
        """Power nodes down or up; one `scontrol update`."""
        self._run(["scontrol", "update", f"NodeName={fold(nodes)}", f"State={state}"])

    def close(self) -> None:
        """Do nothing: no connection is open."""
