"""Check the hand-over of jobs: the path they take, those that wait for pilotfish, and holds that gain nothing.

Rule: pure; the content of a file decides, not its name.
Source: docs/slurm/job_submit.lua; Slurm 22.05: with `lua` in JobSubmitPlugins and no file slurmctld does not start; a
running slurmctld keeps the script that it has read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath

from ....formats.text import count
from ....simulate.model.snapshot import JobState
from ...findings import NOTE, OK, PROBLEM, WARNING, Finding, ServiceState
from ..handed_over.ownership import SlurmSelection, is_held
from ..transport.scontrol import hard_time_min
from ..transport.squeue import SPECIAL
from .questions import Answers

#: An older pin has not become a start, seconds.
OVERDUE_S = 60.0
LUA = "job_submit.lua"
#: The request of `--time-min`, in words.
MIN_TIME = SPECIAL["MinTime"]
_HOLD = re.compile(r"^local HOLD_S = (\d+)", re.MULTILINE)
UNDO = ("JobSubmitPlugins=   # without lua, in slurm.conf; only then remove the file", "scontrol reconfigure")


def findings(answers: Answers, selection: SlurmSelection, service: ServiceState) -> Iterator[Finding]:
    """Yield the ways to hand jobs over, the jobs, and the job_submit plugin."""
    yield from _handover(answers, selection)
    yield from _jobs(answers, service)
    yield from _unknown_pins(answers, selection)
    yield from _left(answers, selection)
    yield from _submit_plugin(answers, service)


def _handover(answers: Answers, selection: SlurmSelection) -> Iterator[Finding]:
    existing = {words["PartitionName"] for words in answers.partitions}
    for name in sorted(selection.partitions - existing):
        names = ", ".join(sorted(existing))
        yield Finding(PROBLEM, "handover", f"adapter.options.partitions: Slurm has no partition {name!r} ({names})")
    ways = [
        *(f"partition {name}" for name in sorted(selection.partitions & existing)),
        *(f"QOS {name}" for name in sorted(selection.qos)),
        *(f"account {name}" for name in sorted(selection.accounts)),
        *(f"the feature {name}" for name in sorted(selection.features)),
        *(["`pilotfish` in the comment"] if selection.comment else []),
    ]
    if ways:
        yield Finding(OK, "handover", f"jobs are handed over by {', '.join(ways)}; all others are never changed")
    else:
        yield Finding(PROBLEM, "handover", "no job is ever handed over: partitions, qos, accounts and features are "
                      "empty and comment is false")  # fmt: skip


def _jobs(answers: Answers, service: ServiceState) -> Iterator[Finding]:
    waiting = [job for job in answers.jobs if job.state is JobState.PENDING]
    held_jobs = [job for job in waiting if is_held(job, answers.now)]
    pins = [job.pinned for job in waiting if job.pinned is not None]
    overdue = sum(time < answers.now - OVERDUE_S for time in pins)
    wait = count(len(waiting), "job waits", "jobs wait")
    if answers.pins_unread:
        yield Finding(NOTE, "queue", f"{wait}, {len(held_jobs)} for pilotfish; how many are pinned is unknown "
                      f"({answers.pins_unread})")  # fmt: skip
    else:
        yield Finding(OK, "queue", f"{wait}, {len(held_jobs)} for pilotfish; {len(pins)} pinned")
    if held_jobs and service.mode == "":
        last = max(job.begin or 0.0 for job in held_jobs) - answers.now
        message = (
            f"{len(held_jobs)} held for a daemon that does not answer: Slurm starts them, the last in {last:.0f} s"
        )
        yield Finding(WARNING, "queue", message, (service.remedy,))
    if late := [job.id for job in held_jobs if job.deadline and job.begin and job.deadline < job.begin]:
        ids = ", ".join(map(str, late[:5])) + (", ..." if len(late) > 5 else "")
        yield Finding(WARNING, "queue", f"jobs with a deadline before the end of their hold ({ids}): if pilotfish "
                      "does not start them, Slurm ends them", ("scontrol update JobId=... StartTime=now",))  # fmt: skip
    if overdue:
        pinned = count(overdue, "job with a pin has not started", "jobs with pins have not started")
        yield Finding(PROBLEM, "queue", f"{pinned} for more than {OVERDUE_S:.0f} s: "
                      "the reaper does not run, or fails", ("systemctl enable --now pilotfish-reap.timer",
                      "systemctl status pilotfish-reap"))  # fmt: skip


def _unknown_pins(answers: Answers, selection: SlurmSelection) -> Iterator[Finding]:
    """Yield the jobs that wait for nodes and may begin, without a pin on record."""
    if answers.pins_unread:
        return
    waiting = [job for job in answers.jobs if job.state is JobState.PENDING and job.wanted and selection.takes(job)]
    if unknown := [job.id for job in waiting if job.pinned is None and not is_held(job, answers.now)]:
        ids = ", ".join(map(str, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        message = (
            f"jobs wait for nodes ({ids}), and no pin is on record: their users chose them, or the state directory"
        )
        clear = ("sacct --format=JobID,SubmitLine --jobs=...", "scontrol update JobId=... ReqNodeList=")
        yield Finding(NOTE, "queue", f"{message} was lost and pilotfish chose them", clear)


def _left(answers: Answers, selection: SlurmSelection) -> Iterator[Finding]:
    """Yield why handed-over jobs are left to Slurm, and whether backfill cuts time limits."""
    waiting = [job for job in answers.jobs if job.state is JobState.PENDING]
    reasons = Counter(job.left_to_slurm for job in waiting if selection.takes(job))
    del reasons[""]
    if reasons:
        why, most_common = reasons.most_common(1)[0]
        subject = f"{count(sum(reasons.values()), 'job')} handed over in vain, left to Slurm"
        yield Finding(NOTE, "queue", f"{subject}; {most_common} because {why}")
    cut = sum(job.special == MIN_TIME for job in waiting)
    if cut and "time_min_as_soft_limit" not in answers.config.words("SchedulerParameters"):
        message = f"{count(cut, 'job')} with {MIN_TIME} (--time-min): backfill may cut their time limits to it for good"
        mend = ("SchedulerParameters=time_min_as_soft_limit   # in slurm.conf, from Slurm 23.11",)
        yield Finding(NOTE, "queue", message, mend)


def time_min_findings(answers: Answers, *, is_wanted: bool) -> list[Finding]:
    """Return whether TimeMin may be written, if the option `time_min` wants it."""
    if not is_wanted or "config" in answers.errors:
        return []
    if why := hard_time_min(answers.config):
        mend = ("time_min: false   # in adapter.options", "SchedulerParameters=time_min_as_soft_limit   # from 23.11")
        return [Finding(PROBLEM, "time_min", f"no TimeMin is written: {why}", mend)]
    return [Finding(OK, "time_min", "TimeMin is a soft limit: jobs given to Slurm get one from their predictions")]


def _submit_plugin(answers: Answers, service: ServiceState) -> Iterator[Finding]:
    """Yield nothing if no lua is used."""
    text = answers.files.get(LUA)
    if "lua" not in answers.config.words("JobSubmitPlugins"):
        if text is not None and "pilotfish:hold" in text:
            message = f"{LUA} exists but is not in use (JobSubmitPlugins has no lua): it holds no jobs"
            yield Finding(
                NOTE, "job_submit", message, ("JobSubmitPlugins=lua   # in slurm.conf", "scontrol reconfigure")
            )
    elif text is None and answers.at_controller and LUA not in answers.unread:
        message = f"JobSubmitPlugins=lua, but {LUA} is missing next to slurm.conf: slurmctld will not start again"
        yield Finding(PROBLEM, "job_submit", message, UNDO)
    elif text is None:
        message = (
            f"JobSubmitPlugins=lua, and {LUA} cannot be read from here: undo it first if it holds jobs for pilotfish"
        )
        yield Finding(NOTE, "job_submit", message)
    elif "pilotfish:hold" not in text:
        yield Finding(OK, "job_submit", f"the site's own {LUA} does not hold jobs for pilotfish")
    else:
        yield _holding(text, answers, service)


def _holding(text: str, answers: Answers, service: ServiceState) -> Finding:
    """Return whether a daemon takes the jobs that our script holds."""
    match = _HOLD.search(text)
    hold = f"{match[1]} s" if match else "its hold"
    path, idle = answers.looked_for, bool(answers.looked_for) and not answers.heartbeat_there
    in_shadow = service.shadow or service.mode in ("shadow", "dry-run")
    if idle and (in_shadow or service.mode == ""):
        return Finding(OK, "job_submit", f"{LUA} holds no job now, because there is no {path}")
    if idle and service.socket:
        message = f"{LUA} holds no job, because it looks for {path}, which the daemon at {service.socket} does not keep"
        return Finding(
            WARNING, "job_submit", message, (f"RuntimeDirectory={PurePath(path).parent.name}   # in its unit",)
        )
    if service.mode == "":
        message = f"{LUA} holds jobs for pilotfish, but no daemon answers: each may wait {hold} in vain"
        return Finding(PROBLEM, "job_submit", message, (service.remedy, *UNDO))
    if service.mode == "paused":
        return Finding(NOTE, "job_submit", f"{LUA} holds jobs, and the daemon, which is paused, gives them back")
    if in_shadow:
        message = f"{LUA} holds jobs for pilotfish, which places none in shadow: each may wait {hold} in vain"
        return Finding(WARNING, "job_submit", message, ("mode: live   # in pilotfish.yaml", *UNDO))
    if service.mode is None:
        message = f"{LUA} holds jobs for pilotfish for up to {hold}; --config shows whether a daemon takes them"
        return Finding(NOTE, "job_submit", message)
    return Finding(OK, "job_submit", f"{LUA} holds jobs for pilotfish for up to {hold}, and the daemon answers")
