"""Names of the jobs of a site in tables: the job's name where no other job has it, else its id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .job_columns import SiteJobs
from .site import SiteJob


def job_labels(jobs: Sequence[SiteJob]) -> list[str]:
    """Return a unique label of each job: `name`, `name_5` for task 5 of an array, or the id. O(jobs)."""
    columns = SiteJobs.of(jobs)
    names = [
        f"{name}_{task}" if name and task >= 0 else name
        for name, task in zip(columns.names, columns.task.tolist(), strict=True)
    ]
    uses, ids = Counter(names), set(columns.ids)
    return [
        name if name and uses[name] == 1 and (name == job or name not in ids) else job
        for name, job in zip(names, columns.ids, strict=True)
    ]
