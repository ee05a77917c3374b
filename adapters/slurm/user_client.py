"""A client of Slurm for its users: list, submit, delay and cancel their own jobs, each by one command.

Rule: it runs as the user and asks for that user's jobs alone, so a site's PrivateData holds here too. Submission keeps
the user's environment. A missing answer is never a refusal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress

from ...simulate.model.snapshot import JobState
from ..base import AdapterError
from ..user_jobs import Story, SubmissionRequest, UserJob, UserJobs, takes_option
from . import dependency, submission
from .handed_over.ownership import Ownership, SlurmSelection, hold_seconds, ownership_of
from .records import SlurmJob
from .submission import LONGEST_COMMENT, comment_for, key_in, script_checksum
from .transport.command_transport import CommandTransport
from .transport.runner import CommandRunner, Runner
from .transport.sacct import of_ids
from .transport.squeue import queue

#: Job ids per command.
_AT_ONCE = 500
#: Seconds before its time from which the end of a hold counts as early: clocks of login nodes differ.
EARLY_S = 10.0
#: Options of sbatch that pilotfish sets: long ones, and the letters of short ones.
_OWN_OPTIONS = frozenset({
    "array", "begin", "chdir", "clusters", "comment", "dependency", "error", "export", "export-file", "hold",
    "job-name", "kill-on-invalid-dep", "output", "parsable", "test-only", "wait", "wrap",
})  # fmt: skip
_LETTERS = frozenset("abcdDeHJMoW")
_NOISE = re.compile(r"(?:sbatch: |error: |Batch job submission failed: )+")


class OwnJobs(UserJobs):
    """Slurm as one user sees it. Every call raises AdapterError.

    Args:
        run: Runs commands.
        submit: Runs commands in the user's own environment.
        uid: User id; None: the current user.
    """

    manager, cancel_command, begins = "Slurm", "scancel", True

    def __init__(self, run: Runner, submit: Runner, uid: int | None = None) -> None:
        self._commands, self._sbatch = CommandTransport(run), CommandTransport(submit).submit
        self._run = run
        self.allocation = self._commands.allocation  #: returns the nodes and cores of a job that has begun
        self.uid = os.getuid() if uid is None else uid
        self._records: dict[int, SlurmJob] = {}
        self._cluster = ""

    def cluster(self) -> str:
        """Return Slurm's ClusterName; one `scontrol show config`, once."""
        if not self._cluster:
            self._cluster = self._commands.settings().cluster or super().cluster()
        return self._cluster

    def time(self) -> float:
        """Return the controller's clock, epoch seconds; one `sdiag`."""
        return self._commands.time()

    def jobs(self) -> list[UserJob]:
        """Return the user's jobs in the queue and the ended ones still shown; one `squeue`."""
        return [self._shown(job) for job in queue().ask(self._run, f"--user={self.uid}") if job.uid == self.uid]

    def named(self, job: str) -> UserJob | None:
        """Return the user's job with this id, as users write it (`7`, `7_2`, `7+1`), if the queue shows it."""
        if not re.fullmatch(r"\d{1,10}(?:[_+]\d{1,7})?", job):
            return None
        try:
            jobs = queue().ask(self._run, f"--user={self.uid}", f"--jobs={job}")
        except AdapterError as error:
            if error.transient:
                raise
            return None  # "Invalid job id specified": it has left the queue
        leader, plus, offset = job.partition("+")  # the parts of a heterogeneous job have ids in a row
        part = int(leader) + int(offset) if plus else None
        matches = (matches for matches in jobs if matches.uid == self.uid and part in (None, matches.id))
        return next(map(self._shown, matches), None)

    def ended(self, ids: Collection[int]) -> list[UserJob]:
        """Return how those of `ids` ended, if accounting answers; one `sacct`. Raises nothing."""
        try:
            jobs = self._commands.ended(of_ids(ids))
        except AdapterError:
            return []
        return [self._shown(job) for job in jobs if job.uid == self.uid and job.state.ended]

    def story(self, job: UserJob, now: float) -> Story:
        """Return why a job waits, and what became of its hold and its nodes; at most one `scontrol`."""
        record, allocation = self._records[job.id], None
        if record.state is not JobState.PENDING:
            with suppress(AdapterError):
                allocation = self.allocation(job.id)
        before: list[tuple[float, str, str]] = []
        began = job.submit or 0.0
        if record.wanted and record.begin is not None and record.begin <= now:  # a pin ends the hold
            why = f"on {', '.join(record.wanted)}, chosen by pilotfish unless you named them"
            before.append((record.begin, "placed", why))
        elif job.hold_s and record.begin is not None and record.begin <= min(now, began + job.hold_s - EARLY_S):
            before.append(
                (record.begin, "released", "its hold ended early: pilotfish left it to Slurm, unless you did")
            )
        resized = "you, an administrator, or a fault of pilotfish if it chose the nodes: then tell the administrators"
        why = f"its nodes were changed after it had begun, by {resized}"
        after = [(job.start or began, "resized", why)] if allocation and allocation.resized else []
        cores = [allocation.cores.get(node, ()) for node in job.nodes] if allocation else []
        return Story(_waits(record, now), before, after, cores)

    def is_too_long(self, request: SubmissionRequest) -> bool:
        """Return whether Slurm would refuse a comment for its length."""
        return too_long(_comment(request))

    def submit(self, request: SubmissionRequest) -> int:
        """Submit a job in the user's environment; one `sbatch`."""
        files = *request.files, request.link
        argv = submission.users_command(
            request.job, _comment(request), request.begin_s, request.after, files, request.options
        )
        try:
            return self._sbatch(argv)
        except AdapterError as error:
            if error.transient or error.kind == "parse":
                raise
            raise AdapterError(_NOISE.sub("", str(error)), kind="refused") from None

    def begin(self, ids: Iterable[int], in_s: int) -> None:
        """Let waiting jobs begin in `in_s` seconds, 0: now; one `scontrol` per 500 jobs."""
        for portion in _portions(ids):
            self._run(["scontrol", "update", f"JobId={portion}", f"StartTime=now{f'+{in_s}' if in_s > 0 else ''}"])

    def cancel(self, ids: Iterable[int], *, waiting: bool = False) -> None:
        """Cancel jobs, or only those that have not begun; one `scancel` per 500 jobs."""
        options = ["--state=PENDING"] if waiting else []
        for portion in _portions(ids):
            self._run(["scancel", *options, *portion.split(",")])

    def takes(self, option: str) -> bool:
        """Return whether pilotfish leaves this option of sbatch to its user."""
        return takes_option(option, _OWN_OPTIONS, _LETTERS)

    def _shown(self, job: SlurmJob) -> UserJob:
        self._records[job.id] = job
        return user_job(job)


def own_jobs(timeout_s: float) -> OwnJobs:
    """Return the jobs of the current user, by the Slurm commands of this machine."""
    return OwnJobs(CommandRunner(timeout_s), CommandRunner(timeout_s, as_user=True))


def user_job(job: SlurmJob) -> UserJob:
    """Return a job as its user sees it."""
    begun, ended, state = job.state is not JobState.PENDING and bool(job.placed), job.state.ended, job.state
    why = "" if job.reason in ("None", "NonZeroExitCode", "TimeLimit") or state is JobState.RUNNING else job.reason
    if state is JobState.TIMEOUT and job.time_limit:
        why = f"reached its walltime of {job.time_limit:g} s"
    elif state is JobState.CANCELLED:
        why = "a predecessor did not complete" if why == "DependencyNeverSatisfied" else why
    return UserJob(
        id=job.id, state=state, key=key_in(job.comment) or "", submit=job.submit, begin=job.begin,
        start=job.start if begun else None, end=job.end if ended else None, nodes=job.placed,
        exit_code=job.exit_code if ended and state is not JobState.CANCELLED else None,
        signal=job.signal if ended else None, reason=why, after=dependency.followed(job.dependency) or (),
        hold_s=hold_seconds(job.comment), follows=begun,
        estimate=job.start if state is JobState.PENDING else None, name=job.name, partition=job.partition,
        priority=float(job.priority) if state is JobState.PENDING and job.priority > 0 else None,
        handed_over=SlurmSelection().takes(job),
    )  # fmt: skip


def _waits(job: SlurmJob, now: float) -> str:
    """Return why a job waits, by Slurm and by pilotfish."""
    if job.state is not JobState.PENDING:
        return ""
    ownership, why = ownership_of(job, SlurmSelection(), now)
    if ownership is Ownership.HELD and job.begin is not None:
        remaining_s = max(0.0, job.begin - now)
        return f"pilotfish may choose its nodes and start it; in {remaining_s:.0f} s it may begin by itself"
    if ownership is Ownership.FREE:
        return f"Slurm says {job.reason}; pilotfish may still choose its nodes, unless it has left the job to Slurm"
    if ownership is Ownership.NEIGHBOUR and not why:
        why = "it is left to Slurm, unless the site hands it over by partition, QOS, account or feature"
    return f"{why}; Slurm says {job.reason}" if ownership is Ownership.NEIGHBOUR else why or f"Slurm says {job.reason}"


def _comment(request: SubmissionRequest) -> str:
    profile = "" if request.job.profile.name == "default" else request.job.profile.name
    script = script_checksum(request.job.command)
    return comment_for(request.key, hold=request.hold_s, profile=profile, script=script)


def too_long(comment: str) -> bool:
    """Return whether Slurm would refuse a comment for its length."""
    return len(comment.encode()) >= LONGEST_COMMENT


def _portions(ids: Iterable[int]) -> list[str]:
    listed = [str(number) for number in ids]
    return [",".join(listed[i : i + _AT_ONCE]) for i in range(0, len(listed), _AT_ONCE)]
