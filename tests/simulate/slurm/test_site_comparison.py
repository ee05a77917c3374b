"""The comparison of two runs of a site, against numbers that are counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pilotfish.simulate.slurm.job_labels import job_labels
from pilotfish.simulate.slurm.site import JobRecord, Site, SiteJob, SiteNode, SitePartition, SiteRules
from pilotfish.simulate.slurm.site_comparison import agreement
from pilotfish.simulate.slurm.site_outcome import SiteOutcome, groupings, recorded_outcome, replayed_outcome
from pilotfish.simulate.slurm.twin import SiteReplay, SiteStart

NODES = (SiteNode("n1", cpus=4, cores=4), SiteNode("n2", cpus=4, cores=4))
PARTITIONS = (SitePartition("batch", ("n1", "n2"), is_default=True), SitePartition("whole", ("n1",), is_exclusive=True))


def job(number: int, submit: float, *runs: JobRecord, **settings: object) -> SiteJob:
    values = {"name": f"j{number}", "user": "ann", "account": "x", "qos": "", "partitions": ("batch",), **settings}
    return SiteJob(id=str(number), submit=submit, runs=runs, **values)


def run(start: float, end: float, by: str = "main", cpus: int = 2) -> JobRecord:
    return JobRecord("COMPLETED", start=start, end=end, started_by=by, cpus=cpus, nodes=("n1",))


SITE = Site(
    SiteRules(), NODES, PARTITIONS,
    jobs=(
        job(1, 0.0, run(10.0, 110.0)),
        job(2, 50.0, run(50.0, 60.0, "backfill"), run(100.0, 300.0, "backfill"), user="bob"),
        job(3, 80.0, partitions=("whole",)),
        job(4, 100.0, run(400.0, 401.0, cpus=4), user="bob", partitions=("batch", "whole")),
    ),
)  # fmt: skip


def test_the_record_is_counted_as_by_hand() -> None:
    outcome = recorded_outcome(SITE)
    assert outcome.wait_s[[0, 1, 3]].tolist() == [10.0, 0.0, 300.0] and np.isnan(outcome.wait_s[2])
    assert outcome.slowdown[[0, 1, 3]].tolist() == [110 / 100, 250 / 200, 301 / 10]
    assert outcome.by_backfill[[0, 1, 3]].tolist() == [0.0, 1.0, 0.0] and np.isnan(outcome.by_backfill[2])
    assert outcome.backfilled == pytest.approx(1 / 3)
    assert outcome.utilisation == pytest.approx((90 * 2 + 10 * 2 + 0) / (8 * 100.0))


def test_a_replay_is_counted_by_the_nodes_of_exclusive_jobs() -> None:
    starts = (
        SiteStart(0, "batch", 0.0, 50.0, ("n1",), "main", 0),
        SiteStart(2, "whole", 80.0, None, ("n1",), "backfill", 0),
    )
    outcome = replayed_outcome(SITE, SiteReplay(starts))
    assert outcome.wait_s[[0, 2]].tolist() == [0.0, 0.0] and np.isnan(outcome.slowdown[2])
    assert outcome.utilisation == pytest.approx((50 * 2 + 20 * 4) / (8 * 100.0))


def outcome(waits: list[float]) -> SiteOutcome:
    jobs, hours = len(waits), np.ones(1)
    return SiteOutcome(
        np.array(waits), np.array(waits), np.ones(jobs), np.full(jobs, np.nan), hours, None, None, 8, 2, 3600.0
    )


def test_an_agreement_leaves_out_jobs_that_start_on_one_side() -> None:
    nan = np.nan
    recorded = outcome([10.0, 20.0, nan, 300.0])
    replays = [outcome([10.0, 90.0, 5.0, nan]), outcome([12.0, 30.0, 5.0, 300.0])]
    result = agreement(SITE, recorded, replays)
    assert (result.jobs, result.only_recorded, result.only_replayed) == (2, 1, 1)
    assert result.waits.first.mean == 15.0 and result.waits.second.mean == pytest.approx((50.0 + 21.0) / 2)
    assert result.difference_s == pytest.approx((0 + 70 + 2 + 10) / 4)
    assert result.near == (0.75, 0.75, 1.0)
    assert result.spread_s == pytest.approx(np.std([50.0, 21.0], ddof=1))
    users = dict(result.groups)["user"]
    assert [(one.name, one.jobs, one.first.mean, one.second.mean) for one in users] == [
        ("ann", 1, 10.0, 11.0), ("bob", 1, 20.0, 60.0),
    ]  # fmt: skip


def test_classes_cover_every_job_once() -> None:
    for grouping in groupings(SITE):
        rows = np.concatenate([rows for _, rows in grouping.members()])
        assert sorted(rows.tolist()) == list(range(len(SITE.jobs))), grouping.title


def test_a_label_names_one_job() -> None:
    jobs = [
        job(1, 0.0), job(2, 0.0, name="j1"), job(3, 0.0, name="a", task=5), job(4, 0.0, name="a", task=6),
        job(5, 0.0, name="3"), job(6, 0.0, name=""),
    ]  # fmt: skip
    assert job_labels(jobs) == ["1", "2", "a_5", "a_6", "5", "6"]
