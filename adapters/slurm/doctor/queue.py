"""Which jobs are handed over here, how, and how they are now.

Rule: pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....simulate.snapshot import JobState
from ...findings import OK, PROBLEM, WARNING, Finding, Service
from ..handover import Selection, is_held
from ..update import pin_of
from .asked import Asked

#: a pin that is older has not become a start, seconds
OVERDUE_S = 60.0


def findings(asked: Asked, selection: Selection, service: Service) -> Iterator[Finding]:
    """The ways in, then the jobs."""
    yield from _ways(asked, selection)
    yield from _jobs(asked, service)


def _ways(asked: Asked, selection: Selection) -> Iterator[Finding]:
    there = {words["PartitionName"] for words in asked.partitions}
    for name in sorted(selection.partitions - there):
        known = ", ".join(sorted(there))
        yield Finding(PROBLEM, "handover", f"adapter.options.partitions: Slurm has no partition {name!r} ({known})")
    ways = [
        *(f"partition {name}" for name in sorted(selection.partitions & there)),
        *(f"QOS {name}" for name in sorted(selection.qos)),
        *(f"account {name}" for name in sorted(selection.accounts)),
        *(f"the feature {name}" for name in sorted(selection.features)),
        *(["`pilotfish` in the comment"] if selection.comment else []),
    ]
    if ways:
        yield Finding(OK, "handover", f"jobs are handed over by {', '.join(ways)}; all others are never touched")
    else:
        yield Finding(PROBLEM, "handover", "no job is ever handed over: partitions, qos, accounts are empty and "
                      "comment is false")  # fmt: skip


def _jobs(asked: Asked, service: Service) -> Iterator[Finding]:
    waiting = [job for job in asked.jobs if job.state is JobState.PENDING]
    held = [job for job in waiting if is_held(job, asked.now)]
    pins = [mark for job in waiting if (mark := pin_of(job))]
    overdue = sum(mark.time < asked.now - OVERDUE_S for mark in pins)
    yield Finding(OK, "queue", f"{_jobs_wait(len(waiting))}, {len(held)} for pilotfish; {len(pins)} pinned")
    if held and service.mode == "":
        last = max(job.begin or 0.0 for job in held) - asked.now
        says = f"{len(held)} held for a daemon that does not answer: Slurm starts them, the last in {last:.0f} s"
        yield Finding(WARNING, "queue", says, ("systemctl start pilotfishd",))
    if late := [job.id for job in held if job.deadline and job.begin and job.deadline < job.begin]:
        some = ", ".join(map(str, late[:5])) + (", ..." if len(late) > 5 else "")
        yield Finding(WARNING, "queue", f"jobs with a deadline before their hold is over ({some}): if pilotfish "
                      "does not start them, Slurm ends them", ("scontrol update JobId=... StartTime=now",))  # fmt: skip
    if overdue:
        yield Finding(PROBLEM, "queue", f"pins that are older than {OVERDUE_S:.0f} s and have not become a start: "
                      f"{overdue}; the reaper does not run", ("systemctl enable --now pilotfish-reap.timer",
                      "pilotfish reap --config /etc/pilotfish/pilotfish.yaml"))  # fmt: skip


def _jobs_wait(number: int) -> str:
    return "1 job waits" if number == 1 else f"{number} jobs wait"
