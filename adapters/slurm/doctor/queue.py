"""Which jobs are handed over here, how, and how they are now.

Rule: pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....simulate.snapshot import JobState
from ...findings import NOTE, OK, PROBLEM, Finding
from ..handover import Selection, is_held
from ..update import pin_of
from .asked import Asked

#: a pin that is older has not become a start, seconds
OVERDUE_S = 60.0


def findings(asked: Asked, selection: Selection) -> Iterator[Finding]:
    """The ways in, then the jobs."""
    there = {words["PartitionName"] for words in asked.partitions}
    for name in sorted(selection.partitions - there):
        known = ", ".join(sorted(there))
        yield Finding(PROBLEM, "handover", f"adapter.options.partitions: Slurm has no partition {name!r} ({known})")
    ways = [
        *(f"partition {name}" for name in sorted(selection.partitions & there)),
        *(f"QOS {name}" for name in sorted(selection.qos)),
        *(f"account {name}" for name in sorted(selection.accounts)),
        *(["`pilotfish` in the comment"] if selection.comment else []),
    ]
    if ways:
        yield Finding(OK, "handover", f"jobs are handed over by {', '.join(ways)}; all others are never touched")
    else:
        yield Finding(PROBLEM, "handover", "no job is ever handed over: partitions, qos, accounts are empty and "
                      "comment is false")  # fmt: skip
    waiting = [job for job in asked.jobs if job.state is JobState.PENDING]
    held = sum(is_held(job, asked.now) for job in waiting)
    pins = [mark for job in waiting if (mark := pin_of(job))]
    overdue = sum(mark.time < asked.now - OVERDUE_S for mark in pins)
    yield Finding(OK, "queue", f"{len(waiting)} jobs wait, {held} of them for pilotfish; {len(pins)} are pinned")
    if overdue:
        yield Finding(PROBLEM, "queue", f"{overdue} pins are older than {OVERDUE_S:.0f} s and have not become a "
                      "start: the reaper does not run", ("systemctl enable --now pilotfish-reap.timer",
                      "pilotfish reap --config /etc/pilotfish/pilotfish.yaml"))  # fmt: skip
    if "lua" in asked.words("JobSubmitPlugins"):
        yield Finding(NOTE, "job_submit", "JobSubmitPlugins=lua: if it holds jobs for pilotfish, undo it before "
                      "pilotfish is stopped for long, or every such job waits for its hold in vain")  # fmt: skip
