"""The OAR adapter: reads OAR's database, and places jobs that were handed over by the file that the shim reads.

Rule: nothing is written to OAR's database. A hold or a placement is a line of the placement file, and is void once the
heartbeat of the file has passed; only `keep_holding` and a placement prolong it. A snapshot is one SQL statement. A job
of our own is looked up before it is submitted.
"""

from __future__ import annotations

import logging
import math
import os
import pwd
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job
from ...simulate.model.observed_queue import ObservedQueue
from ...simulate.model.plan import Place, Release, Submit, SubmitAhead
from ...simulate.model.snapshot import JobState, JobView, Snapshot
from ..base import AdapterError, Capabilities, Load
from ..manager.managed_adapter import ManagedAdapter, refused
from ..manager.read_times import FRESH_S, ReadTimes
from . import job_views, submission
from .commands import OarCommands
from .job_views import OarSelection, Ours, user_id
from .passes import Passes
from .placement_file import Clocks, PlacementFile
from .preemption import with_room
from .property_evaluation import PropertyEvaluation
from .records.history import OarHistory
from .records.requests import OarResources
from .records.world import ENDED, OarJob, OarState, Reader
from .whole_queue import observed_queue

log = logging.getLogger("pilotfish.adapters")
#: Seconds for which what was read counts as just read: less than a user's command takes.
JUST_READ_S = 0.15
#: Seconds from placing a job to its start: a pass, the launch, and the 10 s of a notification that came too early.
BEGINS_S = 30.0
#: Seconds for which a placement of a user's job holds, and for which a placement alone keeps the file alive.
PLACED_S, ALIVE_S = 60.0, 30.0
#: Seconds after which OAR carries out no submission that `oarsub` gave up, unless its database stays away.
LATE_S = 60.0
#: Seconds, at most twice, after which OAR gives up a job of our own that is bound to its nodes and has not begun: OAR
#: submits a job again after a failed launch, and would bind it to the bad node for ever.
EXPIRE_S = 86400.0


class OarAdapter(ManagedAdapter[OarJob, ReadTimes]):
    """OAR as a resource manager; see `create` for the other arguments.

    Args:
        cluster: Nodes on which jobs may be placed.
        reader: Reads OAR.
        commands: Runs OAR's commands.
        selection: The jobs that are handed over.
        placements: The placement file; None: there is no shim.
        server: Host and port of Almighty.
        user: Name of the user that runs `oarsub`; "": the current one.
    """

    name, manager, cancel_command = "oar", "OAR", "oardel"

    def __init__(
        self,
        cluster: Cluster,
        reader: Reader,
        commands: OarCommands,
        selection: OarSelection,
        placements: PlacementFile | None,
        *,
        server: tuple[str, int],
        submit_options: Sequence[str] = (),
        output_dir: str | os.PathLike[str] | None = None,
        user: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        keys_and_files = job_views.id_in, submission.files_of
        super().__init__(cluster, ReadTimes(clock), submit_options, output_dir, clock, *keys_and_files)
        self.reader, self.commands, self.placements = reader, commands, placements
        self._selection = selection
        self._user = user or pwd.getpwuid(os.getuid()).pw_name
        self._world, self._machine, self._history = OarState(0.0, 0.0, {}, (), ()), OarResources(()), OarHistory()
        self._closed: tuple[str, ...] = ()
        offered = selection if placements is not None else OarSelection()
        self._evaluation = PropertyEvaluation(lambda: self.commands, cluster.index, offered, self._user, clock)
        self._views: job_views.Known = {}
        self._passes = Passes(server, placements.path if placements is not None else None, clock)
        self._held_at = 0.0  # when holding was last prolonged, OAR's clock
        self._clocks = Clocks()
        # Half of a hold, because the jobs before it may take longer than forecast.
        holds_own_jobs = selection.keeps(self._submit_options) and placements is not None
        self._ahead_s = placements.hold_s / 2 if placements is not None and holds_own_jobs else 0.0

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of OAR."""
        capabilities = Capabilities(events=False, offers=self.placements is not None, resolution_s=1.0, late_s=LATE_S)
        return replace(capabilities, begins_within_s=BEGINS_S, launch_s=self._history.launch_s, ahead_s=self._ahead_s)

    @property
    def hand_over_by(self) -> str:
        """The option of `oarsub` that hands a job over, if there is one."""
        queues, projects = sorted(self._selection.queues), sorted(self._selection.projects)
        option = f"-q {queues[0]}" if queues else f"--project={projects[0]}" if projects else ""
        return f"oarsub {option} ..." if option and self.placements is not None else ""

    def keep_state(self, folder: Path, *, read_only: bool) -> None:
        """Change no file in a dry run; otherwise, be the only one that writes the placement file."""
        if self.placements is not None:
            self.placements.read_only = read_only
            if not read_only:
                self.placements.lock()

    # Observe.

    def snapshot(self) -> Snapshot:
        """Read all, in one statement."""
        self._reads.void()
        try:
            self._store(self.reader.world())
        except AdapterError:
            self._evaluation.void()
            raise
        self._evaluation.follow(self._world.jobs, self.placements.freed if self.placements else ())
        self._passes.ask(self._world, self._now())
        return self._build_snapshot()

    def settle(self, timeout_s: float) -> None:
        """Wait until OAR has evaluated the properties of the jobs that are handed over."""
        self.snapshot()
        self._evaluation.settle(timeout_s)

    def refresh(self, keys: Collection[str]) -> Snapshot:
        """Read all again, unless that was just done: OAR checks a placement, and a job of ours is searched first."""
        return self._build_snapshot() if self._reads.age_s() <= JUST_READ_S else self.snapshot()

    def queue(self) -> ObservedQueue:
        """Return the queue as OAR's own schedulers see it."""
        return observed_queue(self._world, self._machine, self._user, user_id, self._evaluation.of_any_queue)

    def recall(self, since: Mapping[str, float]) -> dict[str, JobView]:
        """Look up jobs by id, or by name; one statement."""
        ids = {number for key in since if (number := self._id_in(key)) is not None}
        names = {submission.name_of(key): self._user for key in since if self._id_in(key) is None}
        last_jobs = job_views.last_of(self.reader.find(ids, names), self._user)
        views = {key: self._view(key, job) for key, job in last_jobs.items() if key in since}
        over = {key for key, view in views.items() if view.state.ended or view.restartable}
        return {key: view if key in over else replace(view, state=JobState.UNKNOWN) for key, view in views.items()}

    def load(self) -> Load:
        """Return the counts of requests."""
        history = self._history
        return replace(
            self.commands.load(), delays=history.delays, unknown_ends=history.unknown_ends, closed=self._closed
        )

    def wait(self, timeout_s: float) -> bool:
        """Wait until OAR begins a pass, or has evaluated a job's properties; ask it for a pass if that is due."""
        deadline = self._time() + max(0.0, timeout_s)
        while True:
            self._passes.ask(self._world, self._now())
            if self._evaluation.proceed():
                return True
            if self._passes.hear(min(deadline, self._next_at(deadline)) - self._time()):
                return True
            if self._time() >= deadline:
                return False

    def fileno(self) -> int | None:
        """Return a descriptor that is readable when OAR begins a pass, or the shim has read the file."""
        return self._passes.descriptor

    def timer_s(self) -> float:
        """Return when OAR is to be asked for a pass, or may have answered."""
        return self._next_at(math.inf) - self._time()

    def _next_at(self, otherwise: float) -> float:
        return min(self._passes.next_at(otherwise), self._evaluation.next_at())

    def close(self) -> None:
        """Watch no more. The file stays, so that a restart within its heartbeat lets no job go."""
        self._passes.close()
        self._evaluation.void()
        if self.placements is not None:
            self.placements.unlock()

    # Hand-over.

    def keep_holding(self, until: float) -> None:
        """Renew the heartbeat of the placement file."""
        if self.placements is None:
            return
        waiting = {job.id: job for job in self._world.jobs if job.state in ("Waiting", "Hold")}
        if self._reads.age_s() < math.inf:  # what was submitted since is not among them
            self.placements.retain(waiting)
        jobs = [job for job in waiting.values() if self._selection.takes(job) and job.id not in self.placements.freed]
        for job in jobs:
            if self._is_left(job):
                self.placements.let_go(job.id)
                self._passes.wait_for(job.id, self._world.now)
            elif self._held_at < job.submitted + self.placements.hold_s <= self._world.now:
                self._passes.wait_for(job.id, self._world.now)
        self._held_at = self._world.now
        self.placements.renew(until - self._now())
        self._passes.ask(self._world, self._now())

    def place(self, action: Place) -> None:
        """Let a job start on these nodes alone."""
        number = self._users_job(action)
        if self.placements is None:
            raise refused(action, "it is not a job of OAR's users")
        job = self._fresh(number)
        if job is None:
            raise refused(action, "OAR does not know it")
        view = self._offer(action.key, job)
        if view.state is not JobState.PENDING or (view.pinned_since is not None and view.nodes == action.nodes):
            return  # it has begun or ended, or is placed there
        if not view.offered or view.waits:
            raise refused(action, view.waits or view.due_why or "it was not handed over")
        self._check_nodes(action)
        self._change(f"place {job.id} {' '.join(action.nodes)}")
        if self.placements.unwritten:  # as the heartbeat has logged; the next one tries again
            raise AdapterError(f"{action.key}: no placement can reach OAR now", transient=True, kind="state")
        if self._recorded is None:
            self.placements.place(job.id, action.nodes, PLACED_S, ALIVE_S)
            self._ask_for_pass(job.id)

    def release(self, action: Release) -> None:
        """Undo a placement that has not become a start, or give a kept job to OAR for good."""
        number = self._id_in(action.key)
        job = self._fresh(number) if number is not None and self.placements is not None else None
        if job is None or self.placements is None:
            return
        view = self._offer(action.key, job)
        if view.state is not JobState.PENDING or not view.offered:
            return
        placed = view.pinned_since is not None
        self._change(f"{'keep' if placed else 'free'} {job.id}")
        if self._recorded is not None:
            return
        if placed:
            self.placements.unplace(job.id)
        else:
            self.placements.free(job.id)
            self._ask_for_pass(job.id)

    # Our own jobs.

    def submit(self, action: Submit) -> None:
        """Submit a job of our own to the shim's queue, and place it; without a shim, on these nodes for good."""
        job = self._submitted_before(action)
        if job is None or job_views.never_began(job):
            if job is not None and job_views.skipped(job):  # the jobs before it have completed now
                why = "did not see that the jobs before it had completed, and is submitted again"
                log.warning("%s %s; no more jobs are submitted ahead: do all nodes share its folder?", action.key, why)
                self._ahead_s = 0.0
            expire = (time.time() // EXPIRE_S + 2) * EXPIRE_S
            number = self._oarsub(action, submission.pinned(action.nodes, expire) if self.placements is None else ())
        elif job.state == "Waiting" and self.placements is not None and job.id not in self.placements.placed:
            number = job.id
            self._reads.note_change(action.key)
        else:
            return
        if self._recorded is not None:
            return
        if self.placements is not None:
            self.placements.place(number, action.nodes, max(PLACED_S, self.placements.hold_s), ALIVE_S)
        self._ask_for_pass(number)

    def submit_ahead(self, action: SubmitAhead) -> None:
        """Submit a job of our own to the shim's queue, which keeps it; OAR lets it wait for the jobs before it."""
        job = self._submitted_before(action)
        if self._ahead_s and (job is None or job_views.never_began(job)):
            before = [predecessor for key, _ in action.after if (predecessor := self._find(key)) is not None]
            waits_for = submission.after(predecessor.id for predecessor in before if predecessor.state not in ENDED)
            self._oarsub(action, waits_for, [self._done(key, other_job) for key, other_job in action.after])

    def _oarsub(self, action: Submit | SubmitAhead, options: Sequence[str], before: Sequence[Path] = ()) -> int:
        """Submit a job; return its id, 0 in a preview."""
        link = self._done(action.key, action.job) if action.followed else None
        words = [*options, *self._submit_options]
        argv = submission.command(action.key, action.job, words, self._output, before, link)
        self._submitted[action.key] = action.job
        if self._recorded is not None:
            self._record(argv)
            return 0
        self._reads.note_change(action.key)
        number = submission.job_id(self.commands.oar("submit", argv))
        if number is None:
            raise AdapterError(f"{action.key}: oarsub printed no id", transient=True, kind="parse", argv=argv)
        return number

    def _done(self, key: str, job: Job | None) -> Path:
        """Return the link that a job leaves when it has completed; None: a job from before a restart."""
        folder = self._output or (Path(job.directory) if job and job.directory else self.commands.folder)
        return submission.done_link(folder, key)

    def _end(self, job: int) -> None:
        argv = ["oardel", str(job)]
        self._record(argv)
        if self._recorded is None:
            self.commands.oar("cancel", argv, accepted=(0, 6))  # 6: it is being deleted

    def forget(self, key: str) -> None:
        """Drop what we know of a job, and its link; OAR keeps its record."""
        with suppress(OSError):
            self._done(key, self._submitted.pop(key, None)).unlink(missing_ok=True)

    # What is known.

    def _store(self, world: OarState) -> None:
        if world.resources != self._world.resources:
            self._machine = OarResources(world.resources)
            self._evaluation.outdate()
        for sentence in self._history.note(world):
            log.warning("%s", sentence)
        closed = self._selection.closed(world)
        for name in set(closed) - set(self._closed):
            log.error("queue %s is disabled in OAR: none of its jobs starts (oarnotify -e %s enables it)", name, name)
        self._closed = closed
        self._clocks.compare(time.time() - world.now)
        self._world = world
        self._reads.note_whole()
        self._version += 1

    def _now(self) -> float:
        """Return OAR's clock, epoch seconds."""
        return self._world.now + self._time() - self._reads.whole_at

    def _ours(self) -> Ours:
        file = self.placements
        return Ours(
            self._user, self._submitted, file.placed if file else {}, frozenset(file.freed if file else ()),
            file.hold_s if file else 0.0, self._world.now - time.time(), self._evaluation.answer, user_id,
        )  # fmt: skip

    def _is_left(self, job: OarJob) -> bool:
        """Return whether OAR must place a user's job in any case, so that keeping it gains nothing."""
        key = job_views.key_of(job, self._user)
        _, view = self._views.get(key, ((), None))
        return view is not None and not view.offered and key.startswith(job_views.PREFIX)

    def _build_snapshot(self) -> Snapshot:
        world = self._world
        views = job_views.views(world, self._machine, self._selection, self._ours(), self._views)
        states = job_views.node_states(self.cluster, self._machine, world.now)
        if any(view.preemptible for view in views):
            up = [node.name for node, state in zip(self.cluster.nodes, states, strict=True) if state.takes_jobs]
            views = with_room(views, self.cluster, up)
        return Snapshot(world.now, self._version, self.cluster, states, views)

    def _view(self, key: str, job: OarJob) -> JobView:
        return job_views.view_of(key, job, self._machine, self._ours())

    def _offer(self, key: str, job: OarJob) -> JobView:
        """Return the view of one user's job, with the actions that are allowed."""
        world = replace(self._world, jobs=(job,))
        views = job_views.views(world, self._machine, self._selection, self._ours())
        return next((view for view in views if view.key == key), self._view(key, job))

    def _fresh(self, number: int) -> OarJob | None:
        """Return the last job of a chain as read within FRESH_S, or read it now."""
        jobs = self._world.jobs if self._reads.age_s() <= FRESH_S else self.reader.find([number]).jobs
        return max((job for job in jobs if job.first == number), key=lambda job: job.id, default=None)

    def _find(self, key: str) -> OarJob | None:
        """Return the last job of ours that was submitted under this key."""
        name = submission.name_of(key)
        world = self._world if self._reads.age_s() <= FRESH_S else None
        for state in (world, None):
            jobs = state.jobs if state else self.reader.find(names={name: self._user}).jobs
            matches = [job for job in jobs if job_views.key_of(job, self._user) == key]
            if matches:
                return max(matches, key=lambda job: job.id)
        return None

    def _change(self, line: str) -> None:
        if self._recorded is not None and self.placements is not None:
            self._recorded.append(f"# {self.placements.path}: {line}")

    # Passes.

    def _ask_for_pass(self, job: int) -> None:
        """Ask OAR for a pass now, and until this job begins."""
        self._passes.wait_for(job, self._now())
        self._passes.ask(self._world, self._now(), at_once=True)

    def _is_ours(self, job: OarJob) -> bool:
        return job.user == self._user
