"""A synthetic site is read as what it was drawn as."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from pilotfish.formats.documents.atomic_write import write_together
from pilotfish.formats.hostlist import expand
from pilotfish.formats.site.site_folder import read_site
from pilotfish.formats.site.synthetic_site import BEGIN, node_list, site_files
from pilotfish.simulate.generate.site_models import MODELS
from pilotfish.simulate.generate.synthetic_jobs import site_jobs
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from pilotfish.simulate.slurm.start_columns import SiteStarts
from pilotfish.simulate.slurm.twin import advanced


@pytest.mark.parametrize("name", MODELS)
def test_it_is_read_back(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    jobs = site_jobs(model, 300, 5)
    write_together({tmp_path / file: text for file, text in site_files(model, jobs, "by hand").items()})
    site = read_site(tmp_path)
    assert [text.partition(":")[0] for text in site.unknown] == ["recorded starts"]
    assert len(site.jobs) == len(jobs) and len(site.nodes) == sum(kind.count for kind in model.nodes)
    assert {one.name for one in site.qos} == {one.name for one in model.qos}
    assert {one.user for one in site.associations if one.user} == {f"u{user}" for user in range(model.users)}
    assert all(one.account == "root" or one.parent >= 0 for one in site.associations)
    rows = {int(job.id) - 1: job for job in site.jobs}
    for row, job in rows.items():
        one = model.classes[int(jobs.job_class[row])]
        kind = model.nodes[one.pool]
        assert (job.partitions, job.qos, job.user) == ((one.partition,), one.qos, f"u{jobs.user[row]}")
        run_s = jobs.run_s[row] if jobs.run_s[row] < 60 * jobs.limit_min[row] else math.inf  # its limit ended it
        assert (job.submit - BEGIN, job.limit_min, job.run_s) == (jobs.submit[row], jobs.limit_min[row], run_s)
        assert job.gpus_per_node * job.min_nodes == (jobs.units[row] if kind.gpus else 0)
        assert job.is_exclusive == (kind.units == 1)
        if kind.units == 1:
            assert job.min_nodes == jobs.units[row]
        assert len(job.runs[0].nodes) == len(jobs.nodes[row])
        assert job.runs[0].start == BEGIN + jobs.start[row]


@pytest.mark.real  # a thread unpacks the accounting
def test_archer2_is_as_busy_under_the_rules_of_slurm_as_was_published(tmp_path: Path) -> None:
    """Four months have a mean queue near 541 and a use above 90 %; the fourth day is held to be of this order."""
    model, day = MODELS["archer2"], 86_400.0
    jobs = site_jobs(model, round(model.jobs * 4 / model.days), 0)
    write_together({tmp_path / file: text for file, text in site_files(model, jobs, "by hand").items()})
    site = completed(read_site(tmp_path))
    state = advanced(site_block(site, Phases.drawn(site, 0)), BEGIN + 4 * day)
    starts = SiteStarts.of_state(site, state)
    start, row, hours = starts.start - BEGIN, starts.job, np.arange(72, 96) * 3600.0
    queue = np.searchsorted(np.sort(jobs.submit), hours) - np.searchsorted(np.sort(start), hours)
    used = np.minimum(start + jobs.run_s[row], 4 * day) - np.maximum(start, 3 * day)
    assert 100 < queue.mean() < 1200
    assert 0.88 < (jobs.units[row] * np.maximum(0.0, used)).sum() / (5860 * day) <= 1.0


def test_a_list_of_nodes_is_a_hostlist() -> None:
    assert node_list("n", (0, 1, 2, 6)) == "n[000001-000003,000007]"
    assert expand(node_list("n", (4,))) == ("n000005",)
    assert expand(node_list("n", (0, 1))) == ("n000001", "n000002")
