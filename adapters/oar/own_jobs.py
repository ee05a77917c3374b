"""A client of OAR for its users: list, submit and cancel their own jobs, each by OAR's commands.

Rule: it runs as the user and asks for that user's jobs alone. A job that OAR submits again is one job under its first
id, which its own shell knows as OAR_ARRAY_ID. `oarsub -a` waits for any end of a job, so each job leaves a link when it
has completed. A job that does not find the links of the jobs before it ends at once with SKIPPED.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from ...simulate.model.snapshot import JobState
from ..base import AdapterError
from ..start_claim import guard
from ..user_jobs import Story, SubmissionRequest, UserJob, UserJobs, takes_option
from . import job_views, submission
from .commands import OarCommands
from .records.oarstat import Oarstat
from .records.requests import OarResources
from .records.world import ENDED, OarJob, OarState
from .submission import SKIPPED

#: Seconds for which jobs that have ended are listed.
SHOWN_S = 3600.0
#: The queue in which users hand jobs over, as docs/guides/oar.md names it; only the service knows a site's others.
QUEUE = "pilotfish"
#: Options of oarsub that pilotfish sets: long ones, and the letters of short ones.
_OWN_OPTIONS = frozenset({
    "anterior", "array", "array-param-file", "connect", "directory", "help", "hold", "interactive", "name",
    "reservation", "resource", "resubmit", "scanscript", "stderr", "stdout", "version",
})  # fmt: skip
_LETTERS = frozenset("aCdEhIlnOrSV")


class OarJobs(UserJobs):
    """OAR as one user sees it.

    Args:
        commands: Runs OAR's commands as the user.
        user: Name of the user.
    """

    manager, cancel_command, begins = "OAR", "oardel", False

    def __init__(self, commands: OarCommands, user: str) -> None:
        self._commands, self._reader, self._user = commands, Oarstat(commands), user
        self._records: dict[int, OarJob] = {}

    def jobs(self) -> list[UserJob]:
        """Return the user's jobs that have not ended, or ended within SHOWN_S."""
        return self._shown(self._reader.of_user(self._user, self.time() - SHOWN_S))

    def named(self, job: str) -> UserJob | None:
        """Return the user's job with this id."""
        is_id = job.isascii() and job.isdecimal() and len(job) <= 18
        return next(iter(self._shown(self._reader.find([int(job)]))), None) if is_id else None

    def ended(self, ids: Collection[int]) -> list[UserJob]:
        """Return how those of `ids` ended. Raises nothing."""
        try:
            jobs = self._shown(self._reader.find(ids))
        except AdapterError:
            return []
        return [job for job in jobs if job.state.ended]

    def story(self, job: UserJob, now: float) -> Story:
        """Return why a job waits: the message that OAR shows of it."""
        record = self._records[job.id]
        retries = [(record.submitted, "resubmitted", f"by OAR, as job {record.id}")] if record.id != job.id else []
        if job.state is not JobState.PENDING:
            return Story(before=retries)
        waits = "you hold it (oarresume lets it go)" if record.state == "Hold" else f"OAR says: {record.message}"
        return Story(waits if record.message or record.state == "Hold" else "OAR has not looked at it yet", retries)

    def time(self) -> float:
        """Return this machine's clock: OAR's commands show no other."""
        return time.time()

    def is_too_long(self, request: SubmissionRequest) -> bool:
        """Return False: the whole key is in the command."""
        return False

    def submit(self, request: SubmissionRequest) -> int:
        """Submit a job; one `oarsub`."""
        argv = users_command(request)
        number = submission.job_id(self._commands.oar("submit", argv))
        if number is None:
            raise AdapterError("oarsub printed no id", transient=True, kind="parse", argv=argv)
        return number

    def begin(self, ids: Iterable[int], in_s: int) -> None:
        """Do nothing: jobs have no begin times here."""

    def cancel(self, ids: Iterable[int], *, waiting: bool = False) -> None:
        """Cancel jobs, or only those that have not begun; one `oardel`."""
        if not (requested := list(ids)):
            return
        states = {job.id: job.state for job in self._shown(self._reader.find(requested))}
        chosen = [self._records[number] for number, state in states.items() if state is JobState.PENDING or not waiting]
        if alive := [str(job.id) for job in chosen if job.state not in ENDED]:
            self._commands.oar("cancel", ["oardel", *alive], accepted=(0, 6))  # 6: it is being deleted

    def takes(self, option: str) -> bool:
        """Return whether pilotfish leaves this option of oarsub to its user."""
        return takes_option(option, _OWN_OPTIONS, _LETTERS)

    def _shown(self, world: OarState) -> list[UserJob]:
        """Return the user's jobs; of a job that OAR submitted again, the latest submission."""
        machine = OarResources(world.resources)
        last = {job.first: job for job in world.jobs if job.user == self._user}  # a later one has a higher id
        self._records |= last
        return [user_job(job, machine, self._user) for job in last.values()]


def own_jobs(timeout_s: float) -> OarJobs:
    """Return the jobs of the current user, by the commands of OAR on this machine."""
    return OarJobs(OarCommands(timeout_s), pwd.getpwuid(os.getuid()).pw_name)


def user_job(job: OarJob, machine: OarResources, user: str) -> UserJob:
    """Return a job as its user sees it."""
    key = job_views.key_of(job, user)
    view = job_views.progress_of(key, job, machine)
    why = view.reason
    if view.state is JobState.TIMEOUT and job.forms:
        why = f"reached its walltime of {job.forms[0].walltime} s"
    result = UserJob(
        id=job.first, state=view.state, key="" if key.startswith(job_views.PREFIX) else key, submit=view.submit_time,
        start=view.start_time, end=view.finish_time, nodes=view.nodes, exit_code=view.exit_code, signal=view.signal,
        reason=why, after=job.after, follows=view.state is JobState.COMPLETED, name=job.name, partition=job.queue,
        handed_over=job.queue == QUEUE,
    )  # fmt: skip
    if result.key and result.exit_code == SKIPPED:
        why = "a predecessor did not complete, or it was cancelled before OAR had it"
        return replace(result, state=JobState.CANCELLED, start=None, nodes=(), exit_code=None, reason=why)
    return result


def users_command(request: SubmissionRequest) -> list[str]:
    """Return the argv by which a user submits a job of a workflow, on any nodes."""
    claimed = guard(request.link, "$OAR_ARRAY_ID", "OAR", f"exit {SKIPPED}")
    first = [claimed, *submission.checks([_done(link) for link in request.before])]
    line = submission.script(request.key, request.job, first, submission.leaves(_done(request.link)))
    options = [*submission.after(request.after), *request.options]
    return submission.oarsub(request.key, request.job, options, request.files, line)


def _done(link: Path) -> Path:
    """Return the link that a job leaves when it has completed, next to its claim."""
    return link.with_name(f".{link.name}")
