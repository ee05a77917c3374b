"""Names of the jobs of a site in tables: the job's name where no other job has it, else its id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .site import SiteJob


def job_labels(jobs: Sequence[SiteJob]) -> list[str]:
    """Return a unique label of each job: `name`, `name_5` for task 5 of an array, or the id. O(jobs)."""
    names = [f"{job.name}_{job.task}" if job.task >= 0 else job.name for job in jobs]
    uses = Counter(names)
    ids = {job.id for job in jobs}
    return [
        name if job.name and uses[name] == 1 and name not in ids - {job.id} else job.id
        for name, job in zip(names, jobs, strict=True)
    ]
