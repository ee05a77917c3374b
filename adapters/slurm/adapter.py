"""The Slurm adapter: reads the queue, places jobs that were handed over, and submits our own.

Rule: a snapshot costs at most three requests; a job is read again, alone, before it is changed; each change is one
command. A missing answer is not a refusal: the next read of the queue decides. Every time that decides about a job is
the controller's; its offset is read rarely and carried on by a monotonic clock, so stepping this machine's clock
changes nothing.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...formats.site.site_texts import SiteTexts
from ...simulate.model.accounting_record import AccountingRecord
from ...simulate.model.cluster import Cluster
from ...simulate.model.observed_queue import ObservedQueue
from ...simulate.model.plan import Action, Place, PowerOff, PowerOn, PowerSwitch, Release, Submit
from ...simulate.model.snapshot import JobState, JobView, Snapshot
from ..base import Activity, AdapterError, Capabilities, Load
from ..file_watch import FileWatch
from ..manager.managed_adapter import ManagedAdapter, refused
from ..manager.read_times import FRESH_S
from . import accounting_lookup, job_views, submission
from .allocation import SiteAllocation, SystemShare, usable
from .controller_clock import ControllerClock
from .evaluated_queue import EvaluatedQueue
from .handed_over.first_begins import FirstBegins
from .handed_over.job_update import OurChanges, let_go_fields
from .handed_over.job_writer import JobWriter
from .handed_over.ownership import Ownership, SlurmSelection, is_held, may_begin
from .handed_over.pin_record import PinRecord
from .handed_over.resize_watch import RESIZED, ResizeWatch
from .handed_over.unheld_kinds import UnheldKinds
from .placement import node_constraints
from .placement.eligibility import Deferral
from .placement.future_occupancy import START_S
from .queue_reads import QueueReads
from .records import SlurmJob, SlurmNode
from .site_files import SiteFileReader
from .site_state import SiteReader
from .transport.command_transport import CommandTransport, Transport
from .whole_queue import observed_queue

#: Seconds for which nodes count as fresh if another request takes the place of theirs.
NODES_FRESH_S = 10.0
#: Seconds after which Slurm carries out no submission that `sbatch` gave up: munge's credential is valid for 300 s.
LATE_S = 330.0
#: For more jobs than this, reading the queue is less work, and a list of ids may be too long for a command.
MOST_BY_ID = 1000


class SlurmAdapter(ManagedAdapter[SlurmJob, QueueReads]):
    """Slurm as a resource manager; see `create` for the arguments."""

    name, manager, cancel_command = "slurm", "Slurm", "scancel"

    def __init__(
        self,
        cluster: Cluster,
        transport: Transport,
        selection: SlurmSelection,
        *,
        submit_options: Sequence[str] = (),
        output_dir: str | os.PathLike[str] | None = None,
        deferral: Deferral = Deferral(),
        clock: Callable[[], float] = time.monotonic,
        load: Callable[[], Load | None] = lambda: None,
        unheld_prefix: Path | None = None,
        asked_file: Path | None = None,
        time_min: bool = False,
        site_files: SiteFileReader | None = None,
    ) -> None:
        keys_and_files = job_views.id_in, submission.files_of
        super().__init__(cluster, QueueReads(clock), submit_options, output_dir, clock, *keys_and_files)
        self.transport, self.notes = transport, transport.notes
        self._clock = ControllerClock(transport.time, clock)
        self._uid = os.getuid()
        self.changes = OurChanges(PinRecord(None), clock=clock)
        self._resizes = ResizeWatch(lambda job: self.transport.resized(job), clock)
        longest, doubt = deferral.max_defer_s, self._resizes.doubt
        self._writer = JobWriter(transport, self.changes, self._clock.now, clock, longest, doubt)
        self._unheld = UnheldKinds(unheld_prefix, clock)
        self._watch = FileWatch([asked_file], clock) if asked_file else None
        self._site_reader, self._allocation = SiteReader(clock), SiteAllocation()
        self._listed_nodes: list[SlurmNode] = []
        self._system_shares: Mapping[str, SystemShare] = {}
        self._evaluated = EvaluatedQueue(cluster, selection, deferral, self._uid, clock)
        self._load, self._time_min, self._site_files = load, time_min, site_files

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of Slurm. With jobs ahead in the queue, only its backfill starts a pinned job."""
        begins = self._site_reader.site.settings.backfill_s + START_S
        capabilities = Capabilities(accounting=True, events=False, offers=True, pins_stay=True, power=True)
        return replace(capabilities, resolution_s=1.0, begins_within_s=begins, late_s=LATE_S)

    @property
    def hand_over_by(self) -> str:
        """The word in a comment, where it hands a job over."""
        return "sbatch --comment=pilotfish ..." if self._evaluated.cache.standings.selection.comment else ""

    def keep_state(self, folder: Path, *, read_only: bool) -> None:
        """Keep the record of our pins in a directory, where the reaper reads it."""
        record, begins = PinRecord(folder, read_only=read_only), FirstBegins(folder, read_only=read_only)
        self.changes = OurChanges(record, begins, self._time)
        self._writer.changes = self.changes
        self._unheld.read_only = read_only
        self._reads.doubt(self._jobs)

    @property
    def _jobs(self) -> Mapping[int, SlurmJob]:
        """All jobs of the queue by id, with what we know of our changes."""
        return self._evaluated.jobs

    def snapshot(self) -> Snapshot:
        """Read jobs, nodes and, while jobs wait for us, one more thing of the site's slowly changing state.

        When the time is due to be read, once in minutes, one of the other requests is skipped.
        """
        timing, now = self._clock.due, self._clock.now()
        evaluated = self._evaluated
        first = not evaluated.nodes
        if first:  # their number bounds the node lists of jobs
            self._store_nodes(self.transport.nodes())
        self._store_queue(jobs := self.transport.jobs())
        nodes_due = not first and (not timing or self._time() - evaluated.nodes_read_at > NODES_FRESH_S)
        if nodes_due:
            self._store_nodes(self.transport.nodes())
        own_waiting = evaluated.cache.renew(now)
        missing = self._site_reader.site.missing
        if missing or not ((timing and nodes_due) or self._resizes.examine(self._jobs)):
            self._site_reader.refresh(self.transport, own_waiting, evaluated.cache.queue.pending.keys())
        site = self._site_reader.site
        if site.settings.system_shares != self._system_shares:
            self._store_nodes(self._listed_nodes)
        if first or nodes_due or site.settings.allocation != self._allocation.rules:
            parameters = {name: partition.parameters for name, partition in site.partitions.items()}
            allocation = SiteAllocation.on(evaluated.nodes.values(), site.settings.allocation, parameters)
            if allocation != self._allocation:
                self._allocation = self._writer.allocation = allocation
                self._reads.doubt(self._jobs)
                self._store_queue(jobs)
        self._unheld.write()
        return self._build_snapshot(now)

    def activity(self) -> Activity:
        """Count what has happened; one `sdiag`."""
        return self.transport.activity()

    def next_change(self, now: float) -> float:
        """Return the next begin time of a job that its user or Slurm lets wait, or end or start of a reservation."""
        standing = self._evaluated.cache.standings.of
        later = [job for job in self._jobs.values() if job.state is JobState.PENDING and (job.begin or 0.0) > now]
        waits = [job.begin for job in later if standing(job, now)[0] is Ownership.WAITING]
        reserved = [
            at for reservation in self._site_reader.site.reservations for at in (reservation.start, reservation.end)
        ]
        return min((at for at in (*waits, *reserved) if at is not None and at > now), default=math.inf)

    def refresh(self, keys: Collection[str]) -> Snapshot:
        """Read the jobs that are to be changed, in one request; nodes and most other jobs stay as they were."""
        numbers = [number for number in map(job_views.id_in, keys) if number is not None]
        if len(numbers) < len(keys) or len(numbers) > MOST_BY_ID:  # a job of our own may have any id
            self._store_queue(self.transport.jobs())
            return self._build_snapshot(self._clock.now())
        jobs = self.transport.jobs(numbers)
        self._store_jobs(jobs, gone=set(numbers) - {job.id for job in jobs})
        return self._build_snapshot(self._clock.now())

    def _store_nodes(self, nodes: list[SlurmNode]) -> None:
        self._listed_nodes, self._system_shares = nodes, self._site_reader.site.settings.system_shares
        self._evaluated.store_nodes(usable(nodes, self._system_shares))

    def _store_queue(self, jobs: list[SlurmJob]) -> None:
        """Store the whole queue; only the changes since the last read are evaluated."""
        self.changes.record.refresh()
        evaluated, removed = self._reads.renew(jobs, self._resizes.resized | self.changes.unsure())
        self._take_in(evaluated, removed)
        self._evaluated.outdate()
        self._evaluated.cache.standings.retain(self._jobs.keys())
        self.changes.retain(self._jobs.keys())
        self._reads.note_whole()

    def _store_jobs(self, jobs: list[SlurmJob], gone: Collection[int] = ()) -> None:
        """Store jobs that were read alone, and those that are gone; they are fresh for FRESH_S, or until changed."""
        self.changes.record.refresh()
        numbers = [job.id for job in jobs]
        self._reads.doubt((*numbers, *gone))
        self._take_in(jobs, gone)
        self._reads.note_alone(numbers)

    def _take_in(self, jobs: list[SlurmJob], removed: Collection[int]) -> None:
        new = [self.changes.recognise(job, self._clock.now) for job in jobs]
        resized = self._resizes.resized
        new = [self._allocation.of(replace(job, reason=RESIZED) if job.id in resized else job) for job in new]
        self._evaluated.take_in(new, removed)

    def _build_snapshot(self, now: float) -> Snapshot:
        self._version += 1
        return self._evaluated.snapshot(self._site_reader.site, now, self._version, self._submitted)

    def queue(self) -> ObservedQueue:
        """Return the queue as Slurm's own scheduler sees it."""
        return observed_queue(self._jobs, self._evaluated.nodes, self._site_reader.site, self._clock.now(), self._uid)

    def site(self) -> SiteTexts:
        """Return what Slurm's scheduler rests on."""
        if self._site_files is None:
            return SiteTexts(why_not="adapter.options.twin is false")
        return self._site_files.look(self._clock.now())

    def recall(self, since: Mapping[str, float]) -> dict[str, JobView] | None:
        """Look up ended jobs in accounting: one request for users' jobs, by id, and one for our own, by name."""
        return accounting_lookup.ended_jobs(self.transport, since, self._uid, self._submitted)

    def usage(self, since: Mapping[str, float]) -> dict[str, AccountingRecord] | None:
        """Look up in accounting what ended jobs used, with as many requests."""
        return accounting_lookup.ended_usage(self.transport, since, self._uid)

    def load(self) -> Load | None:
        """Return the request counts of the transport, if it keeps any; `resized` is a result of `update`."""
        load, resized = self._load(), len(self._resizes.resized)
        if load is None or not resized:
            return load
        return replace(load, requests={**load.requests, ("update", "resized"): resized})

    def preview(self, action: Action) -> list[str]:
        """Return the commands of `apply`, recorded by a transport that changes nothing."""
        self._writer.recorder = CommandTransport(self._answer_as_id)
        try:
            return super().preview(action)
        finally:
            self._writer.recorder = None

    def _answer_as_id(self, argv: Sequence[str]) -> str:
        self._record(argv)
        return "0"

    @property
    def _changes(self) -> Transport:
        """The object that sends changes: the transport, or, in a preview, a recorder."""
        return self._writer.recorder or self.transport

    def wait(self, timeout_s: float) -> bool:
        """Wait until job_submit.lua hands a job over; Slurm itself sends no events."""
        if self._watch is not None:
            return self._watch.read(timeout_s)
        time.sleep(max(0.0, timeout_s))
        return False

    def fileno(self) -> int | None:
        """Return a descriptor that is readable when job_submit.lua may have handed a job over."""
        return None if self._watch is None or self._watch.descriptor < 0 else self._watch.descriptor

    def forget(self, key: str) -> None:
        """Drop what we know of a job; Slurm forgets by itself."""
        if self._submitted.pop(key, None):
            self._evaluated.renew_views()

    def close(self) -> None:
        """Close connections; jobs go on."""
        self._unheld.remove()
        if self._watch is not None:
            self._watch.close()
        self.transport.close()

    def place(self, action: Place) -> None:
        """Pin a job that may start on these nodes now, and end our hold on it; see `HandOver`."""
        number = self._users_job(action)
        job = self._read_fresh(number)
        if job.state is not JobState.PENDING:
            return  # it started or ended in between
        if job.pinned is not None and set(job.wanted) == set(action.nodes):
            return  # it is already pinned there
        now = self._clock.now()
        ownership, why = self._evaluated.cache.standings.of(job, now)
        if ownership not in (Ownership.HELD, Ownership.FREE):
            raise refused(action, why or "it was not handed over")
        judge = self._evaluated.eligibility(self._site_reader.site, now)
        verdict = judge.verdict(job, action.nodes)
        if problem := verdict.waits or node_constraints.obstacle(job, verdict.allowed, action.nodes):
            raise refused(action, problem)
        self._reads.note_change(number)
        if (pin := self._writer.place(job, action.nodes)) is None:
            return
        # Until it is read again it counts as placed, so that no other job is put on its cores.
        self._reads.doubt([number])
        judge.place(replace(job, wanted=action.nodes, pinned=float(pin.time), own_nodes=pin.own))
        self._evaluated.renew_views()

    def note_gain(self, key: str, gain_s: float) -> None:
        """Note it for the kinds that job_submit.lua need not hold."""
        number = self._id_in(key)
        if number is not None and (job := self._jobs.get(number)) is not None:
            self._unheld.note(job, gain_s)

    def release(self, action: Release) -> None:
        """Undo a pin that has not become a start, or give a held job to Slurm; otherwise do nothing."""
        number = self._id_in(action.key)
        job = self._read_fresh(number) if number is not None else None
        if job is None or job.state is not JobState.PENDING or (job := self._writer.read_again(job)) is None:
            return
        now = self._clock.now()
        self._reads.note_change(job.id)
        self._reads.doubt([job.id])
        if job.pinned is not None:
            if fields := self.changes.unpin(job):
                self._writer.change(job, fields)
            if self._writer.recorder is None:
                self.changes.record.drop(job.id)
        elif job.paused:
            self._writer.end_pause(job)
        elif may_begin(job, now) or not is_held(job, now):
            return
        elif self._evaluated.cache.standings.of(job, now)[0] is not Ownership.NEIGHBOUR:
            is_soft = self._time_min and not self._site_reader.site.settings.hard_time_min
            self._writer.change(job, let_go_fields(job, action.expected_s if is_soft else None))
            if self._writer.recorder is None:
                self.changes.note_let_go(job)

    def submit(self, start: Submit) -> None:
        """Submit a job of our own with a node list; see `Launch`."""
        if self._submitted_before(start) is not None:
            return
        argv = submission.command(start.key, start.job, start.nodes, self._submit_options, self._output)
        self._submitted[start.key] = start.job
        if self._recorded is None:
            self._reads.note_change(start.key)
        self._changes.submit(argv)

    def _end(self, job: int) -> None:
        self._changes.cancel(job)

    def power_off(self, action: PowerOff) -> None:
        """Let idle nodes of the cluster be powered down."""
        self._switch(action, "POWER_DOWN")

    def power_on(self, action: PowerOn) -> None:
        """Power nodes of the cluster up."""
        self._switch(action, "POWER_UP")

    def _switch(self, action: PowerSwitch, state: str) -> None:
        if foreign := sorted(set(action.nodes) - self.cluster.index.keys()):
            raise AdapterError(f"{action.key}: {foreign[0]} is not a node of this cluster", kind="refused")
        self._changes.switch(action.nodes, state)

    def _read_fresh(self, number: int) -> SlurmJob:
        """Return a job as read within FRESH_S, or read it now."""
        if number not in self._jobs or self._reads.age_s(number) > FRESH_S:
            self._store_jobs([self._writer.read(number)])
        return self._jobs[number]

    def _find(self, key: str) -> SlurmJob | None:
        """Return the last job of ours that was submitted under this key."""
        if self._reads.age_s(key) > FRESH_S:
            self._store_queue(self.transport.jobs())
        matches = [job for job in self._jobs.values() if job_views.key_of(job, self._uid) == key]
        return max(matches, key=lambda job: job.id, default=None)

    def _is_ours(self, job: SlurmJob) -> bool:
        return job.uid == self._uid
