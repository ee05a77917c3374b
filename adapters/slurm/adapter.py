"""The Slurm adapter: reads the queue, places jobs that were handed over, and submits our own.

Rule: three requests show the world at most; before a job is touched it is read again, alone; whatever is written is one
command. An answer that did not come is not taken for a refusal: the next look at the queue tells.
"""

from __future__ import annotations

import logging
import math
import os
import shlex
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...simulate.booked import Booked
from ...simulate.job import Job
from ...simulate.plan import Action, Cancel, PowerOff, Release, Start
from ...simulate.platform import Cluster
from ...simulate.snapshot import JobState, JobView, Snapshot
from ..base import AdapterError, Capabilities
from ..load import Load
from . import places, recall, submission, update, world
from .clock import ControllerClock
from .handover import Selection, Standing, is_held
from .judge import Deferral, Judge, Memory
from .outlook import START_S
from .partitions import Partition
from .rarely import Rarely
from .records import SlurmJob, SlurmNode
from .transport import Told, Transport

log = logging.getLogger("pilotfish.slurm")
#: Seconds for which what was read of a job is taken for true when it is to be changed.
FRESH_S = 2.0
#: And of nodes, when something else has to be asked in their place.
MOMENT_S = 10.0
#: what Slurm says to those who may not
DENIED = "Access/permission denied"
#: what it says to a user of jobs of others, and seconds for which it is then not asked to change any
FOREIGN, FOREIGN_S = "Invalid user id", 60.0
#: what Slurm says of a change that came too late
BEGUN = (
    "Job is no longer pending execution",
    "Job has already finished",
    "Job/step already completing or completed",
    "Invalid job id",
)


class SlurmAdapter:
    """Slurm as a resource manager; `create` says the arguments."""

    name = "slurm"

    def __init__(
        self,
        cluster: Cluster,
        transport: Transport,
        selection: Selection,
        *,
        submit_options: Sequence[str] = (),
        output_dir: str | os.PathLike[str] | None = None,
        deferral: Deferral = Deferral(),
        clock: Callable[[], float] = time.monotonic,
        load: Callable[[], Load | None] = lambda: None,
    ) -> None:
        self.cluster, self.selection = cluster, selection
        self.transport: Transport = transport
        self._submit_options = tuple(submit_options)
        self._output = None if output_dir is None else Path(output_dir).absolute()
        self._clock = ControllerClock(transport.time, clock)
        self._uid = os.getuid()
        self._mark_in = update.Place.ADMIN_COMMENT
        self._known: dict[str, Job] = {}
        self._nodes: list[SlurmNode] = []
        self._deferral, self._rarely = deferral, Rarely(clock)
        self._judge: Judge | None = None
        self._nodes_read_at = -math.inf
        self._memory = Memory(cluster, selection)
        self._views: dict[int, world.Kept] = {}
        self._apart_by: Mapping[str, Partition] = {}  # by these, jobs of the views keep apart
        self._shown: tuple[Judge, Snapshot] | None = None  # what was made of a judge's picture
        self._seen: dict[int, SlurmJob] = {}
        self._read_at: dict[int, float] = {}
        self._all_read_at = -math.inf
        self._foreign_until = -math.inf
        self._touched: set[str] = set()  # keys of jobs that were submitted or cancelled since
        self._time, self._load = clock, load
        self._version = 0
        self._awake = threading.Event()
        self.notes: Sequence[str] = transport.notes

    @property
    def capabilities(self) -> Capabilities:
        """What Slurm can do. Behind jobs that come first, its backfill alone starts what was placed."""
        begins = self._rarely.site.settings.backfill_s + START_S
        return Capabilities(
            starts=True, books=True, events=False, resolution_s=1.0, begins_within_s=begins, offers=True, power=True
        )

    def snapshot(self) -> Snapshot:
        """Read the world: jobs, nodes, and, where jobs wait for us, one thing more of what changes rarely.

        When the time has to be asked for, once in minutes, something of these is as it was a moment ago.
        """
        timing, now = self._clock.due, self._clock.now()
        self._note(self.transport.jobs(), whole=True)
        spare = not timing
        if not timing or self._time() - self._nodes_read_at > MOMENT_S:
            self._note_nodes(self.transport.nodes())
        else:
            spare = True
        pending = [job for job in self._seen.values() if job.state is JobState.PENDING]
        ours = self._memory.see(pending, now)
        if spare or self._rarely.site.missing:
            self._rarely.refresh(self.transport, ours, [job.id for job in pending])
        return self._picture(now)

    def _note_nodes(self, nodes: list[SlurmNode]) -> None:
        """Keep what was just read; lists of nodes serve as long as these have the same partitions and features."""
        if _layout(nodes) != _layout(self._nodes):
            self._memory.lists.drop()
        self._nodes, self._nodes_read_at = nodes, self._time()

    def look_again(self, keys: Collection[str]) -> Snapshot:
        """One request for the jobs that are to be touched; nodes, and mostly neighbours, are as they were."""
        numbers = [number for number in map(world.id_in, keys) if number is not None]
        if len(numbers) < len(keys):  # a job of our own may be under any id
            self._note(self.transport.jobs(), whole=True)
            return self._picture(self._clock.now())
        found = self.transport.jobs(numbers)
        for number in set(numbers) - {job.id for job in found}:
            self._seen.pop(number, None)
            self._judge = None
        self._note(found, whole=False)
        return self._picture(self._clock.now())

    def _note(self, jobs: list[SlurmJob], *, whole: bool) -> None:
        """Keep what was just read; it serves until something is changed, or for FRESH_S."""
        new, now = {job.id: job for job in jobs}, self._time()
        if whole or any(self._seen.get(job.id) != job for job in jobs):
            self._judge = None
        self._seen = new if whole else self._seen | new
        self._read_at |= dict.fromkeys(new, now)
        if whole:
            self._read_at, self._all_read_at = dict.fromkeys(new, now), now
            self._memory.standings.keep(new.keys())
            self._touched.clear()

    def _picture(self, now: float) -> Snapshot:
        self._version += 1
        judge = self._judged(now)
        if self._shown is not None and self._shown[0] is judge:
            return replace(self._shown[1], time=now, version=self._version)
        if self._rarely.site.partitions != self._apart_by:
            self._views.clear()
            self._apart_by = self._rarely.site.partitions
        jobs, standings, verdicts = self._seen.values(), self._memory.standings, judge.verdicts()
        views = world.views(jobs, standings, now, self._uid, self._known, verdicts, judge.kind, self._views)
        views += world.unseen_views(judge.unseen())
        states = world.node_states(self.cluster, self._nodes)
        self._shown = judge, Snapshot(now, self._version, self.cluster, states, views)
        return self._shown[1]

    def _judged(self, now: float) -> Judge:
        """A judge on all that was read, and on what was placed since, at a moment that is not long ago."""
        if self._judge is None or abs(now - self._judge.now) > START_S:
            site, jobs = self._rarely.site, list(self._seen.values())
            self._judge = Judge(self.cluster, self._nodes, jobs, self._memory, site, now, self._deferral)
        return self._judge

    def recall(self, since: Mapping[str, float]) -> dict[str, JobView] | None:
        """What accounting knows: one request for jobs of Slurm's users, by id, and one for our own, by name."""
        return recall.recall(self.transport, since, self._uid, self._known)

    def books(self, since: Mapping[str, float]) -> dict[str, Booked] | None:
        """What accounting has of what they used, by the same number of requests."""
        return recall.books(self.transport, since, self._uid)

    def load(self) -> Load | None:
        """What its transport counts, where it does."""
        return self._load()

    def apply(self, action: Action) -> None:
        """Place, release, start or end a job; see `Adapter.apply`.

        Raises:
            AdapterError: `refused`: it must not be done or Slurm refuses it; transient: it is not certain.
        """
        if isinstance(action, Start):
            number = world.id_in(action.key)
            if number is None:
                self._submit(action)
            else:
                self._place(number, action)
        elif isinstance(action, Release):
            self._release(action.key)
        elif isinstance(action, PowerOff):
            self._power_off(action)
        else:
            self._cancel(action)

    def preview(self, action: Action) -> list[str]:
        """What `apply` would run: it is applied, over a transport that only tells."""
        transport, told = self.transport, Told(self.transport)
        known, touched = self._known.copy(), self._touched.copy()
        self.transport = told
        try:
            self.apply(action)
        except AdapterError as error:
            return [f"# not done: {error}"]
        finally:
            self.transport, self._known, self._touched = transport, known, touched
        return [shlex.join(argv) for argv in told.argvs]

    def wait(self, timeout_s: float) -> bool:
        """Sleep until `wake`; Slurm tells nobody what happens."""
        woken = self._awake.wait(max(0.0, timeout_s))
        self._awake.clear()
        return woken

    def wake(self) -> None:
        """Make `wait` return."""
        self._awake.set()

    def fileno(self) -> None:
        """There is nothing to poll."""

    def forget(self, key: str) -> None:
        """Slurm forgets by itself."""
        if self._known.pop(key, None):
            self._shown = None

    def output(self, key: str) -> tuple[Path, Path] | None:
        """Files of a job of our own, where a folder for them was given."""
        if self._output is None or world.id_in(key) is not None:
            return None
        name = submission.file_name(key)
        return self._output / f"{name}.out", self._output / f"{name}.err"

    def close(self) -> None:
        """Let go of connections; jobs go on."""
        self.transport.close()

    def _place(self, number: int, start: Start) -> None:
        """Pin a job and, if a begin time of ours holds it, let it start: one command, on a fresh read of the job."""
        job = self._fresh(number)
        if job.state is not JobState.PENDING:
            return  # it started, or ended, in between: nothing is left to do
        now = self._clock.now()
        what, why = self._memory.standings.of(job, now)
        if what not in (Standing.HELD, Standing.FREE):
            raise _refused(start, why or "it was not handed over")
        if update.pin_of(job) and set(job.wanted) == set(start.nodes):
            return  # it is on its way
        judge = self._judged(now)
        verdict = judge.verdict(job, start.nodes)
        if problem := verdict.waits or places.obstacle(job, verdict.allowed, start.nodes):
            raise _refused(start, problem)
        self._write(job, lambda place: update.pin(job, start.nodes, now, held=what is Standing.HELD, place=place))
        # Until it is read again it counts as placed: no other is put where it goes.
        mark = str(update.Pin(int(now), job.id, job.uid, job.wanted))
        self._seen[number] = replace(job, wanted=start.nodes, admin_comment=mark)
        judge.place(self._seen[number])
        self._shown = None

    def _write(self, job: SlurmJob, fields: Callable[[update.Place], Mapping[str, str]]) -> None:
        """Write fields with a mark in this place; who may not write AdminComment marks in Comment from then on."""
        try:
            self._change(job, fields(self._mark_in))
        except AdapterError as error:
            if self._mark_in is update.Place.COMMENT or DENIED not in error.stderr_tail:
                raise
            self._change(job, fields(update.Place.COMMENT))
            self._mark_in = update.Place.COMMENT
            log.info("an operator may not write AdminComment: pins are marked in Comment")

    def _release(self, key: str) -> None:
        """Take back a pin of ours that has not become a start, or let go what waits for us; else a no-op."""
        number = world.id_in(key)
        job = self._fresh(number) if number is not None else None
        if job is None or job.state is not JobState.PENDING:
            return
        now = self._clock.now()
        if fields := update.unpin(job):
            self._change(job, fields)
        elif is_held(job, now) and self._memory.standings.of(job, now)[0] is not Standing.NEIGHBOUR:
            self._write(job, lambda place: update.let_go(job, now, place=place))

    def _change(self, job: SlurmJob, fields: Mapping[str, str]) -> None:
        """Write; what was read of the job is not true any more."""
        self._read_at.pop(job.id, None)
        if job.uid != self._uid and self._time() < self._foreign_until:
            raise self._is_foreign()
        try:
            self.transport.update(job.id, fields)
        except AdapterError as error:
            if FOREIGN in f"{error} {error.stderr_tail}" and job.uid != self._uid:
                self._foreign_until = self._time() + FOREIGN_S
                raise self._is_foreign() from error
            if any(words in error.stderr_tail for words in BEGUN):
                return  # it started, or ended, in between
            raise

    def _is_foreign(self) -> AdapterError:
        why = f"Slurm lets the user {self._uid} change only jobs of their own; pilotfish must be an operator of Slurm's"
        return AdapterError(f"{why} (`pilotfish doctor` says how)", kind="refused")

    def _submit(self, start: Start) -> None:
        job = start.job
        unknown = [name for name in start.nodes if name not in self.cluster.index]
        if unknown or not job.command:
            raise _refused(start, f"there is no node {unknown[0]!r}" if unknown else "it has no command")
        if self._find(start.key) is not None:
            return
        argv = submission.command(start.key, job, start.nodes, self._submit_options, self._output)
        self._known[start.key] = job
        self._touched.add(start.key)
        self.transport.submit(argv)

    def _cancel(self, cancel: Cancel) -> None:
        job = self._find(cancel.key)
        if job is None or job.state.ended:
            return
        if job.uid != self._uid:
            raise AdapterError(f"{cancel.key}: jobs of users are theirs to cancel (scancel {job.id})", kind="refused")
        self._touched.add(cancel.key)
        self.transport.cancel(job.id)

    def _power_off(self, action: PowerOff) -> None:
        if foreign := sorted(set(action.nodes) - self.cluster.index.keys()):
            raise AdapterError(f"power off: {foreign[0]} is not a node of this cluster", kind="refused")
        self.transport.power_off(action.nodes)

    def _fresh(self, number: int) -> SlurmJob:
        """A job as it was read a moment ago, or as it is read now."""
        if self._time() - self._read_at.get(number, -math.inf) > FRESH_S:
            found = self.transport.jobs([number])
            if not found:
                raise AdapterError(f"job {number} is not in the queue any more", kind="gone")
            self._note(found, whole=False)
        return self._seen[number]

    def _find(self, key: str) -> SlurmJob | None:
        """The last job of ours that was submitted under this key."""
        if key in self._touched or self._time() - self._all_read_at > FRESH_S:
            self._note(self.transport.jobs(), whole=True)
        found = [job for job in self._seen.values() if world.key_of(job, self._uid) == key]
        return max(found, key=lambda job: job.id, default=None)


def _layout(nodes: list[SlurmNode]) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    return [(node.name, node.partitions, node.features) for node in nodes]


def _refused(start: Start, why: str) -> AdapterError:
    return AdapterError(f"{start.key}: {why}", kind="refused")


