"""Convert OAR's records to a snapshot.

Rule: pure. Every job that holds nodes is shown, ours or not, because it takes part in the contention. A job that OAR
resubmits under a new id stays one job under the first id, and the old id's end is not the job's.
"""

from __future__ import annotations

import pwd
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job
from ...simulate.model.snapshot import JobState, JobView, NodeState
from .. import keys
from .placement_file import Placement
from .records.properties import AllowedNodes
from .records.requests import OarResources, job_of, left_to_oar, request_of
from .records.world import OarJob, OarState
from .submission import did_nothing, key_in

PREFIX = "oar/"
_STATES = {
    "Waiting": JobState.PENDING,
    "Hold": JobState.PENDING,
    "toAckReservation": JobState.PENDING,
    "toLaunch": JobState.CONFIGURING,
    "Launching": JobState.CONFIGURING,
    "Running": JobState.RUNNING,
    "Finishing": JobState.RUNNING,
    "Suspended": JobState.SUSPENDED,
    "Resuming": JobState.RESUMING,
}
#: How a job ended, by the first of these events that it has.
_ENDS = (
    ("WALLTIME", JobState.TIMEOUT, ""),
    ("BESTEFFORT_KILL", JobState.CANCELLED, "OAR killed it for another job, because it was a besteffort job"),
    ("FRAG_JOB_REQUEST", JobState.CANCELLED, ""),
)
UNEVALUATED = "its properties have not been evaluated by OAR yet"
RESUBMITTED = "RESUBMIT_JOB_AUTOMATICALLY"
#: The message of a job whose `expire` or `deadline` passed before it could begin: it never ran.
NEVER = "job will never run"
#: Events of jobs that OAR could not launch, also for a mistake of their users.
_LAUNCH = (
    "WORKING_DIRECTORY", "OUTPUT_FILES", "EXIT_VALUE_OAREXEC", "PING_CHECKER_NODE_SUSPECTED", "CPUSET_ERROR",
    "PROLOGUE_ERROR", "EPILOGUE_ERROR", "SERVER_PROLOGUE_ERROR", "SERVER_PROLOGUE_TIMEOUT",
    "SERVER_PROLOGUE_EXIT_CODE_ERROR", "SERVER_EPILOGUE_ERROR", "SERVER_EPILOGUE_TIMEOUT", "CANNOT_WRITE_NODE_FILE",
    "CANNOT_WRITE_PID_FILE", "CANNOT_CREATE_TMP_DIRECTORY", "USER_SHELL", "USER_MUST_NOT_CONNECT",
    "LAUNCHING_OAREXEC_TIMEOUT", "RESERVATION_NO_NODE", "BAD_HASHTABLE_DUMP", "SUSPEND_SCRIPT_ERROR",
    "RESUME_SCRIPT_ERROR", "USER_SHELL_ERROR",
)  # fmt: skip
FOREVER = 2147483646


@dataclass(frozen=True, slots=True)
class OarSelection:
    """The jobs that a site hands over, by queue and project."""

    queues: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()

    def takes(self, job: OarJob) -> bool:
        """Return whether the job is handed over."""
        return job.queue in self.queues or job.project in self.projects

    def keeps(self, options: Iterable[str]) -> bool:
        """Return whether a job that is submitted with these options is handed over."""
        words = {part.removeprefix("-q") for word in options for part in word.split("=")}
        return not words.isdisjoint(self.queues | self.projects)

    def closed(self, world: OarState) -> tuple[str, ...]:
        """Return the queues with such jobs that OAR has disabled; it disables one whose scheduler fails."""
        shut = {name for name, queue in world.queues.items() if queue.state != "Active"}
        relevant = self.queues | {job.queue for job in world.jobs if job.queue in shut and self.takes(job)}
        return tuple(sorted(shut & relevant))


@dataclass(frozen=True, slots=True)
class Ours:
    """Facts about jobs that we know and OAR does not.

    Args:
        user: Name of our own user.
        submitted: Key -> job as we submitted it.
        placed: Id -> placement that holds.
        freed: Ids of jobs that were let go.
        hold_s: For how long after its submission a job is kept, seconds; 0: there is no shim.
        ahead_s: How much OAR's clock is ahead of this machine's, seconds.
        answer: Returns the nodes that a user's properties allow; None: not known yet.
        uid: Returns the user id of a user's name.
    """

    user: str
    submitted: Mapping[str, Job]
    placed: Mapping[int, Placement]
    freed: frozenset[int]
    hold_s: float
    ahead_s: float
    answer: Callable[[str], AllowedNodes | None]
    uid: Callable[[str], int | None]


#: Views by key, with all that they follow from.
Known = dict[str, tuple[tuple[object, ...], JobView]]


def key_of(job: OarJob, user: str) -> str:
    """Return the key in a job of our user's, otherwise `oar/ID` with the id under which it was first submitted."""
    key = key_in(job.command, job.name) if job.user == user else None
    return key if key and id_in(key) is None else f"{PREFIX}{job.first}"


@lru_cache(4096)
def user_id(user: str) -> int | None:
    """Return the user id of a user; None: this machine does not know the name."""
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


def id_in(key: str) -> int | None:
    """Return OAR's id in `oar/ID`, None for any other key."""
    return keys.id_in(key, PREFIX, 18)


def last_of(world: OarState, user: str) -> dict[str, OarJob]:
    """Return the last job of each key, in OAR's order."""
    return {key_of(job, user): job for job in world.jobs}


def views(
    world: OarState, machine: OarResources, selection: OarSelection, ours: Ours, before: Known | None = None
) -> tuple[JobView, ...]:
    """Return the views of all jobs; ended ones of other users only if they were handed over. O(jobs).

    A view that follows from the same as before is the same.

    Args:
        world: OAR at one moment.
        machine: Its resources.
        selection: The jobs that are handed over.
        ours: What we know of jobs.
        before: The views of the last snapshot; replaced by those of this one.
    """
    shown_views, last_views = [], before if before is not None else {}
    new_views: Known = {}
    for key, job in last_of(world, ours.user).items():
        is_own = not key.startswith(PREFIX)
        ahead = is_own and selection.takes(job) and _waits_for_us(job, ours, world.now)
        known_of = ours.submitted.get(key), ours.placed.get(job.id), job.id in ours.freed
        handed_over = bool(ours.hold_s) and not is_own and selection.takes(job)
        answer = ours.answer(job.properties) if handed_over and job.state == "Waiting" else None
        sources = (job, machine, *known_of, answer, ahead)
        last = last_views.get(key)
        if last is not None and last[0] == sources:
            view = last[1]
        else:
            view = view_of(key, job, machine, ours)
            view = replace(view, restartable=True, ahead=True) if ahead else view
            view = _handed_over(view, job, machine, ours, answer) if handed_over else view
        new_views[key] = sources, view
        if is_own or not view.state.ended or selection.takes(job):
            shown_views.append(view)
    last_views.clear()
    last_views |= new_views
    return tuple(shown_views)


def view_of(key: str, job: OarJob, machine: OarResources, ours: Ours) -> JobView:
    """Return the view of a job, with its nodes if it is placed."""
    if not key.startswith(PREFIX) and skipped(job):
        requested = ours.submitted.get(key) or job_of(job, *request_of(job, machine)[:2], ours.uid(job.user))
        why = f"as job {job.id} of OAR it did nothing: a job before it had not completed"
        return JobView(key, requested, JobState.PENDING, submit_time=job.submitted, restartable=True, reason=why)
    view = progress_of(key, job, machine, ours.submitted.get(key), ours.uid(job.user))
    placed = ours.placed.get(job.id) if job.state == "Waiting" else None
    return replace(view, nodes=placed.nodes) if placed else view


def progress_of(
    key: str, job: OarJob, machine: OarResources, submitted: Job | None = None, owner: int | None = None
) -> JobView:
    """Return the progress of a job as OAR has it.

    Args:
        key: Its key.
        job: The job.
        machine: OAR's resources.
        submitted: The job as we submitted it; None: as OAR knows it.
        owner: User id of its user; None: not known.
    """
    cores = machine.assigned(job.resources)
    state, reason = state_of(job)
    nodes, per_node, _ = (len(cores), max(cores.values()), "") if cores else request_of(job, machine)
    status = (job.status or 0) if job.state == "Terminated" else None
    signal = None if status is None else (status & 127) or None
    return JobView(
        key=key,
        job=submitted or job_of(job, nodes, per_node, owner),
        state=state,
        nodes=tuple(cores),
        submit_time=job.submitted,
        start_time=job.began,
        finish_time=max(job.ended, job.began or 0.0) if job.ended is not None and state.ended else None,
        exit_code=None if status is None or signal else status >> 8,
        signal=signal,
        reason=reason,
        waits="its user holds it" if job.state == "Hold" else "",
        preemptible="besteffort" in job.types,
    )


def state_of(job: OarJob) -> tuple[JobState, str]:
    """Return the state of a job, and further information that the state and the exit code do not contain."""
    if job.state == "Terminated":
        return (JobState.FAILED if job.status else JobState.COMPLETED), ""
    if job.state != "Error":
        return _STATES.get(job.state, JobState.UNKNOWN), "" if job.state in _STATES else f"OAR has it as {job.state}"
    events = dict(job.events)
    for event, state, why in _ENDS:
        if event in events:
            return state, why
    if RESUBMITTED in events:
        return JobState.UNKNOWN, "OAR is about to submit it again"
    if never_ran(job):
        return JobState.FAILED, f"it never ran: {job.message}"
    for event in _LAUNCH:
        if event in events:
            return JobState.FAILED, f"OAR could not run it: {event}: {events[event]}"
    return JobState.FAILED, f"{job.events[-1][0]}: {job.events[-1][1]}" if job.events else job.message


def has_known_end(job: OarJob) -> bool:
    """Return whether OAR says why a job is in the state Error."""
    events = {event for event, _, _ in _ENDS} | {RESUBMITTED, *_LAUNCH}
    return never_ran(job) or any(event in events for event, _ in job.events)


def why_again(job: OarJob) -> str:
    """Return why OAR could not launch a job that it submits again; "" of any other job."""
    resubmitted = job.state == "Error" and any(event == RESUBMITTED for event, _ in job.events)
    return (
        next((f"{event}: {text}" for event, text in job.events if event in _LAUNCH), RESUBMITTED) if resubmitted else ""
    )


def never_ran(job: OarJob) -> bool:
    """Return whether OAR gave up a job that could not begin in time."""
    return job.state == "Error" and job.message.lower().startswith(NEVER)


def never_began(job: OarJob) -> bool:
    """Return whether a job of ours has ended and did no work, so that it may be submitted again."""
    return never_ran(job) or skipped(job)


def skipped(job: OarJob) -> bool:
    """Return whether a job of ours did nothing, because a job before it had not completed when OAR started it."""
    return job.state == "Terminated" and did_nothing(job.command, job.status)


def _waits_for_us(job: OarJob, ours: Ours, now: float) -> bool:
    """Return whether a job of ours waits because the shim keeps it, until we place it."""
    is_decided = job.id in ours.placed or job.id in ours.freed
    return job.state == "Waiting" and job.first == job.id and not is_decided and now < job.submitted + ours.hold_s


def _handed_over(view: JobView, job: OarJob, machine: OarResources, ours: Ours, answer: AllowedNodes | None) -> JobView:
    """Return the view of a job that its user has handed over, with the actions that are allowed while it waits."""
    nodes, cores, obstacle = request_of(job, machine)
    if why := left_to_oar(job) or obstacle or (answer.obstacle if answer else ""):
        return replace(view, due_why=f"{why}, so it is left to OAR")
    if view.state is not JobState.PENDING:
        return view
    if job.id in ours.freed:
        return replace(view, due_why="pilotfish has let it go: OAR chooses its start")
    if job.first != job.id:
        return replace(view, due_why="OAR has submitted it again after a failed launch, and chooses its start")
    placed = ours.placed.get(job.id)
    if placed is not None:
        since, reason = placed.since + ours.ahead_s, "placed; OAR is about to start it"
        return replace(view, pinned_since=since, offered=True, reason=reason)
    waits = view.waits or (f"it depends on {', '.join(map(str, job.after))}" if job.after else "")
    if answer is None:
        waits = waits or UNEVALUATED
    return replace(
        view,
        job=replace(job_of(job, nodes, cores, ours.uid(job.user)), allowed=answer.ours if answer else None),
        offered=True,
        restartable=True,
        waits=waits,
        due=job.submitted + ours.hold_s,
        due_why=f"it was kept for {ours.hold_s:g} s",
    )


def node_states(cluster: Cluster, machine: OarResources, now: float) -> tuple[NodeState, ...]:
    """Return the states of the cluster's nodes in its order; a node that OAR does not have is down. O(nodes)."""
    states = states_by_node(machine, now)
    return tuple(states.get(node.name, NodeState.DOWN) for node in cluster.nodes)


def states_by_node(machine: OarResources, now: float) -> dict[str, NodeState]:
    """Return the state of each of OAR's nodes by its name. O(nodes)."""
    states = {
        kinds: _of_all(frozenset(_node_state(state, drained, now < until < FOREVER) for state, drained, until in kinds))
        for kinds in set(machine.kinds.values())
    }
    return {name: states[kinds] for name, kinds in machine.kinds.items()}


def _node_state(state: str, drained: bool, asleep: bool) -> NodeState:
    if drained:
        return NodeState.DRAINED
    absent = NodeState.ASLEEP if asleep else NodeState.DRAINED
    return {"Alive": NodeState.UP, "Absent": absent, "Dead": NodeState.DOWN}.get(state, NodeState.UNKNOWN)


@lru_cache
def _of_all(states: frozenset[NodeState]) -> NodeState:
    """Return the state of a node whose resources have these states: the worst one, because a job may get any."""
    order = (NodeState.UP, NodeState.ASLEEP, NodeState.UNKNOWN, NodeState.DRAINED, NodeState.DOWN)
    return max(states, key=order.index)
