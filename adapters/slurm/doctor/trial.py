"""Tests the account's rights on a job of its own that never starts.

Rule: the job begins a month from now and is always cancelled; no other job is touched. What Slurm accepts is read back,
because a job_submit plugin can undo it. Only an operator may lower a job's `nice` value, so that shows whether Slurm
treats the account as one.
Source: behaviour of Slurm 22.05; sbatch(1), --nice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....simulate.model.snapshot import JobState
from ...base import AdapterError
from ...findings import OK, PROBLEM, WARNING, Finding
from .. import submission
from ..handed_over.job_update import hold_back
from ..records import SlurmJob
from ..transport.command_transport import CommandTransport
from ..transport.runner import Runner

COMMENT = "pilotfish-doctor"  #: does not hand the job over
LATER_S = 31 * 86400.0  #: to which the trial moves the begin time, seconds from now
SUBMIT = (
    *("sbatch", "--parsable", "--begin=now+30days", "--output=/dev/null", "--chdir=/tmp"),
    *(f"--job-name={COMMENT}", f"--comment={COMMENT}"),
)


def findings(run: Runner, submit_options: Sequence[str] = ()) -> Iterator[Finding]:
    """Submit, change and cancel a job, with the changes and the submit options that the daemon uses."""
    try:
        job = submission.job_id(run([*SUBMIT, *submit_options, "--wrap=true"]))
    except (AdapterError, ValueError) as error:
        message = f"no job could be submitted, so no right was tested: {error}"
        yield Finding(WARNING, "trial", message, ("sacctmgr add user NAME account=ACCOUNT",))
        return
    try:
        yield from _changes(run, job)
    except AdapterError as error:
        yield Finding(WARNING, "trial", f"job {job} was submitted, but not all rights could be tested: {error}")
    finally:
        cancelled = _cancel(run, job)
    yield from cancelled


def _cancel(run: Runner, job: int) -> list[Finding]:
    try:
        run(["scancel", str(job)])
    except AdapterError as error:
        return [Finding(WARNING, "trial", f"job {job} could not be cancelled: {error}", (f"scancel {job}",))]
    return []


def _changes(run: Runner, job: int) -> Iterator[Finding]:
    def refused(*fields: str) -> str:
        try:
            run(["scontrol", "update", f"JobId={job}", *fields])
        except AdapterError as error:
            return str(error)
        return ""

    transport = CommandTransport(run)

    def shown() -> SlurmJob:
        return next(iter(transport.jobs([job])), SlurmJob(job, JobState.UNKNOWN))

    before = shown()
    partition = run(["squeue", "--noheader", "--all", f"--jobs={job}", "--format=%P"]).strip().split(",")[0]
    node = run(["sinfo", "--noheader", "--Node", f"--partition={partition}", "--format=%N"]).split()[:1]
    later = hold_back(transport.time() + LATER_S)  # in the notation of the daemon
    pin = {"ReqNodeList": ",".join(node), **later}
    if why := refused(*(f"{name}={value}" for name, value in pin.items())):
        yield Finding(PROBLEM, "trial", f"job {job} was submitted, but could not be placed: {why}")
    elif ignored := _unchanged(before, shown(), node):
        message = f"Slurm accepted changes of job {job} and did not make them ({', '.join(ignored)})"
        yield Finding(
            PROBLEM, "trial", f"{message}: perhaps slurm_job_modify in job_submit.lua", ("scontrol show config",)
        )
    elif (why := refused("ReqNodeList=")) or shown().wanted:
        message = f"job {job} was placed, but that could not be taken back: {why or 'Slurm did not make the change'}"
        yield Finding(PROBLEM, "trial", message)
    else:
        yield Finding(OK, "trial", f"job {job} was submitted, placed, released, and cancelled")
    if why := refused("Nice=-1"):
        yield Finding(PROBLEM, "trial", f"Slurm does not treat the current user as an operator: {why}")
    else:
        yield Finding(OK, "trial", "Slurm treats the current user as an operator: it may raise a priority")


def _unchanged(before: SlurmJob, after: SlurmJob, node: Sequence[str]) -> list[str]:
    """Return the fields that the pin of the trial did not change."""
    begins_later = after.begin is not None and before.begin is not None and after.begin > before.begin + 3600.0
    changes = {"ReqNodeList": set(after.wanted) == set(node), "StartTime": begins_later}
    return [name for name, is_changed in changes.items() if not is_changed]
