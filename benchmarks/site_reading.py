"""Steps around the passes of `whatif`: a synthetic site is read, its tables are made, and outcomes are compared.

Rule: CPU time, one run; the replay that is compared is the record as it stands in the accounting.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pilotfish.formats.documents.atomic_write import write_together
from pilotfish.formats.site.site_folder import read_site
from pilotfish.formats.site.starts_file import dump_starts
from pilotfish.formats.site.synthetic_site import site_files
from pilotfish.simulate.generate.site_models import MODELS
from pilotfish.simulate.generate.synthetic_jobs import site_jobs
from pilotfish.simulate.kernels.object_cache import load
from pilotfish.simulate.slurm.site import Site
from pilotfish.simulate.slurm.site_comparison import agreement
from pilotfish.simulate.slurm.site_outcome import recorded_outcome, replayed_outcome
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from pilotfish.simulate.slurm.start_columns import SiteStart
from pilotfish.simulate.slurm.twin import SiteReplay

from .show import heading, table

#: Sites by model, with their jobs; fewer of them with --quick.
JOBS, QUICK_JOBS = {"archer2": 600_000, "peta4": 400_000}, 20_000
_T = TypeVar("_T")


def measure(quick: bool) -> None:
    """Print the CPU time of each step, and the most memory until its end."""
    for name, jobs in JOBS.items():
        _measure(name, QUICK_JOBS if quick else jobs)


def _measure(name: str, jobs: int) -> None:
    rows = list[tuple[str, str, str]]()

    def step(title: str, call: Callable[[], _T]) -> _T:
        began = time.process_time()
        result = call()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        rows.append((title, f"{time.process_time() - began:.2f} s", f"{memory:.2f} GiB"))
        return result

    heading(f"Around the passes of whatif: a site like {name}, {jobs:,} jobs")
    with tempfile.TemporaryDirectory() as place:
        folder, model = Path(place), MODELS[name]
        drawn = step("draw the jobs", lambda: site_jobs(model, jobs, 1))
        files = step("write them as the files of a site", lambda: site_files(model, drawn, "benchmark"))
        write_together({folder / file: text for file, text in files.items()})
        load("bars.columns")
        site = step("read the site", lambda: read_site(folder))
    step("make its tables", lambda: site_block(completed(site), Phases.drawn(site, 0)))
    replay = SiteReplay(tuple(_starts(site)))
    outcome = step("outcome of a replay", lambda: replayed_outcome(site, replay))
    step("compare it with the record", lambda: agreement(site, recorded_outcome(site), [outcome]))
    step("write its starts", lambda: dump_starts(site, replay))
    table(("step", "CPU time", "most memory"), rows)


def _starts(site: Site) -> list[SiteStart]:
    """Return the runs of the record as the starts of a replay."""
    return [
        SiteStart(row, run.partition, run.start, run.end, run.nodes, "backfill", 0)
        for row, job in enumerate(site.jobs)
        for run in job.runs
        if run.start is not None
    ]
