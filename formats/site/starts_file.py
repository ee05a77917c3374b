"""Write the starts of a replay of a site as CSV, a row a start.

Rule: the columns are job, submit, start, end, nodes. Times are seconds after the first submission of the site's
period; a job that still runs has no end. A job is named as `job_labels` does.
"""

from __future__ import annotations

import csv
import io

from ...simulate.slurm.job_labels import job_labels
from ...simulate.slurm.site import Site
from ...simulate.slurm.twin import SiteReplay
from ..hostlist import fold

COLUMNS = ("job", "submit", "start", "end", "nodes")


def dump_starts(site: Site, replay: SiteReplay) -> str:
    """Return the text of the file, by start time. O(starts log starts).

    Args:
        site: the site.
        replay: a replay of it.
    """
    labels = job_labels(site.jobs)
    first = min((job.submit for job in site.jobs), default=0.0)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for one in sorted(replay.starts, key=lambda one: (one.start, one.job)):
        times = (site.jobs[one.job].submit, one.start, one.end)
        seconds = ("" if time is None else f"{time - first:.15g}" for time in times)
        table.writerow((labels[one.job], *seconds, fold(one.nodes)))
    return text.getvalue()
