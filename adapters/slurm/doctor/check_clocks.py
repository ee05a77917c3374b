"""Find the login nodes with a wrong clock, from the begin times of the jobs that were submitted there.

Rule: a hold is relative to the clock of the machine where sbatch runs, and the time of submission is the controller's,
so begin minus submission minus hold is the difference of the clocks, unless a user moved the begin time. What several
jobs of a login node have in common is its clock. The name of a login node is what sbatch says there, a user's text.
Source: squeue(1), AllocNodes; behaviour of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from statistics import median

from ....formats.text import count
from ....simulate.model.snapshot import JobState
from ...findings import NOTE, WARNING, Finding
from ..handed_over.ownership import EARLY_S, LATE_S, begins_later
from ..records import SlurmJob
from ..transport.parsing import IncrementalTable, whole, word
from ..transport.runner import Runner

_HOST = re.compile(r"[\w.-]{1,255}", re.ASCII)
UNKNOWN = "an unknown machine"
#: Jobs of one login node that show its clock; fewer may all have been moved by their users.
SEVERAL = 3
#: Most login nodes with a finding of their own.
MOST = 5


def login_nodes(run: Runner) -> dict[int, str]:
    """Return the machine from which each waiting job was submitted, by job id. Raises AdapterError."""

    def read(row: Mapping[str, str]) -> tuple[int, str]:
        host = word(row["AllocNodes"])
        return whole(row["JobID"]), host if _HOST.fullmatch(host) else UNKNOWN

    command = "squeue --noheader --all --states=pending"
    return dict(IncrementalTable(command, ("JobID", "AllocNodes"), read, "login node").ask(run))


def shifted(job: SlurmJob, now: float) -> float | None:
    """Return by how many seconds a job begins later than its hold says; None: it cannot be said, or it has no hold.

    Args:
        job: The job as read.
        now: Controller's clock, epoch seconds.
    """
    if job.state is not JobState.PENDING or job.restarts or (job.begin or 0.0) <= now or job.dependency:
        return None  # what has begun to be eligible may have been let go
    if job.pinned is not None or job.unsettled:
        return None  # we move it ourselves
    return begins_later(job)


def findings(jobs: Collection[SlurmJob], hosts: Mapping[int, str], now: float) -> Iterator[Finding]:
    """Yield a finding for each login node whose jobs do not begin when their holds say, the worst ones only.

    Args:
        jobs: The jobs as read.
        hosts: Job id -> machine from which it was submitted.
        now: Controller's clock, epoch seconds.
    """
    shifts: dict[str, dict[int, list[float]]] = {}  # by login node and user
    for job in jobs:
        if (by := shifted(job, now)) is not None:
            shifts.setdefault(hosts.get(job.id, UNKNOWN), {}).setdefault(job.uid, []).append(by)
    typical = {host: median(map(median, users.values())) for host, users in shifts.items()}
    wrong = sorted(
        (host for host, by in typical.items() if not -EARLY_S <= by <= LATE_S), key=lambda h: -len(shifts[h])
    )
    for host in wrong[:MOST]:
        users, by = shifts[host], typical[host]
        job_count = sum(map(len, users.values()))
        of = (
            f"{count(job_count, 'job')} of {count(len(users), 'user')}"
            if len(users) > 1
            else f"{count(job_count, 'job')} of one user"
        )
        when = "later" if by > 0 else "earlier"
        message = f"{of} from {host} begin {abs(by):.0f} s {when} than their holds say, so they are not placed: "
        if job_count >= SEVERAL:
            yield Finding(WARNING, "clock", f"{message}the clock of {host} is probably wrong",
                          (f"timedatectl set-ntp true   # on {host}",))  # fmt: skip
        else:
            yield Finding(NOTE, "clock", f"{message}their users moved them, or the clock of {host} is wrong")
