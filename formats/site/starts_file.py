"""Write the starts of a replay of a site as CSV, a row a start.

Rule: the columns are job, submit, start, end, nodes. Times are seconds after the first submission of the site's
period; a job that still runs has no end. A job is named as `job_labels` does.
"""

from __future__ import annotations

import csv
import io

import numpy as np

from ...simulate.slurm.job_columns import SiteJobs
from ...simulate.slurm.job_labels import job_labels
from ...simulate.slurm.site import Site
from ...simulate.slurm.site_changes import first_submission
from ...simulate.slurm.start_columns import SiteStarts
from ...simulate.slurm.twin import SiteReplay
from ..hostlist import fold

COLUMNS = ("job", "submit", "start", "end", "nodes")


def dump_starts(site: Site, replay: SiteReplay) -> str:
    """Return the text of the file, by start time. O(starts log starts).

    Args:
        site: the site.
        replay: a replay of it.
    """
    jobs, starts = SiteJobs.of(site.jobs), SiteStarts.of(site, replay.starts)
    labels, first = job_labels(jobs), first_submission(site)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    times = np.stack([jobs.submit[starts.job], starts.start, starts.end], axis=1) - first
    for row in np.lexsort((starts.job, starts.start)).tolist():
        seconds = ("" if time != time else f"{time:.15g}" for time in times[row].tolist())
        table.writerow((labels[starts.job[row]], *seconds, fold(starts.node_names_of(row))))
    return text.getvalue()
