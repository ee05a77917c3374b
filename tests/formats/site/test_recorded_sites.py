"""Recorded runs of a real Slurm 22.05: every job, node, association and option of the dumps is read."""

from __future__ import annotations

import pytest

from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.slurm.site import Site, SiteJob
from tests.support.slurm_recordings import recorded_case

#: Case -> jobs, nodes, associations, node events.
COUNTS = {
    "plain": (260, 16, 12, 1),
    "tiers": (260, 16, 12, 1),
    "arrays": (402, 16, 12, 0),
    "memory": (260, 14, 12, 1),
    "preempt": (200, 16, 12, 0),
    "realtime": (60, 6, 12, 0),
}
#: Sentences of `Site.unknown` that recorded cases cause, by their beginning.
EXPECTED = (
    "no reservations.psv",
    "no sshare.psv",
    "qos.psv without LimitFactor, MinPrioThres, ",
    "reservations that no file has (course)",
)


def site_of(case: str) -> Site:
    folder = recorded_case(case)
    return read_site(folder, folder / "r1" / "sacct.psv.gz")


@pytest.mark.parametrize("case", COUNTS)
def test_everything_is_read(case: str) -> None:
    site = site_of(case)
    assert (len(site.jobs), len(site.nodes), len(site.associations), len(site.events)) == COUNTS[case]
    assert [sentence for sentence in site.unknown if not sentence.startswith(EXPECTED)] == []
    assert all(job.account and job.user and job.qos and job.limit_min and job.runs for job in site.jobs)
    starts = [record.start for job in site.jobs for record in job.runs]
    assert None not in starts
    names = {association.account: i for i, association in enumerate(site.associations) if not association.user}
    for association in site.associations[1:]:
        parent = site.associations[association.parent]
        above = association.account if association.user else "root" if association.account == "science" else "science"
        assert (parent.account, parent.user) == (above, "")
        assert association.parent == names[above]


def cpus_of(job: SiteJob, site: Site) -> int:
    """Return the CPUs that a job must have: those that it requests, or all of its nodes."""
    nodes = {node.name: node for node in site.nodes}
    if job.is_exclusive:
        return sum(nodes[name].cpus for name in job.runs[-1].nodes)
    return job.min_cpus


@pytest.mark.parametrize("case", COUNTS)
def test_jobs_got_the_cpus_and_nodes_that_they_request(case: str) -> None:
    site = site_of(case)
    for job in site.jobs:
        run = job.runs[-1]
        assert run.cpus == cpus_of(job, site), job.id
        assert job.min_nodes <= len(run.nodes) <= (job.max_nodes or len(run.nodes)), job.id
        assert run.partition in job.partitions


def test_runs_of_a_requeued_job_are_one_job() -> None:
    site = site_of("preempt")
    job = next(job for job in site.jobs if job.id == "2")
    assert [record.state for record in job.runs] == ["PREEMPTED"] * 3 + ["COMPLETED"]
    assert job.run_s == 655.0
    assert job.submit == job.runs[0].eligible
    assert sum(len(job.runs) for job in site.jobs) == 230


def test_options_of_arrays_dependencies_and_holds() -> None:
    jobs = {job.id: job for job in site_of("arrays").jobs}
    assert (jobs["4_13"].array, jobs["4_13"].task, jobs["4_13"].array_limit) == ("4", 13, 2)
    assert jobs["2"].dependency == "afterany:1"
    held = jobs["329"]
    assert held.released == held.runs[0].eligible
    assert held.released is not None
    assert held.released - held.submit == 201
    assert jobs["243"].licences == {"matlab": 1}
    begins = [job for job in jobs.values() if job.begin is not None]
    assert len(begins) == 10
    assert all(job.begin == job.runs[0].eligible for job in begins)
    assert sum(job.nice != 0 for job in jobs.values()) == 7
