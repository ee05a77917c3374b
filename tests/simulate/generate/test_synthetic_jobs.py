"""Synthetic jobs of a site: the record is possible, and the load is that of the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pilotfish.simulate.generate import archer2
from pilotfish.simulate.generate.site_model import SiteModel
from pilotfish.simulate.generate.site_models import MODELS
from pilotfish.simulate.generate.synthetic_jobs import SyntheticJobs, site_jobs

#: Jobs of each model, some days of it.
JOBS = {"archer2": 4000, "peta4": 4000, "gpu": 3000, "university": 4000}


@pytest.fixture(scope="module", params=JOBS)
def drawn(request: pytest.FixtureRequest) -> tuple[SiteModel, SyntheticJobs]:
    model = MODELS[request.param]
    return model, site_jobs(model, JOBS[model.name], 3)


def shares(model: SiteModel, jobs: SyntheticJobs, row: int) -> list[tuple[int, int]]:
    """Return (node, units on it) of a job: as many as fit on its nodes, in order."""
    kind = model.nodes[model.classes[int(jobs.job_class[row])].pool]
    units, parts = min(int(jobs.units[row]), kind.units * kind.count), []
    for node in jobs.nodes[row]:
        parts.append((node, min(units, kind.units)))
        units -= parts[-1][1]
    assert units == 0
    return parts


def test_no_unit_is_used_twice(drawn: tuple[SiteModel, SyntheticJobs]) -> None:
    model, jobs = drawn
    events = []
    for row in range(len(jobs)):
        pool = model.classes[int(jobs.job_class[row])].pool
        assert len(set(jobs.nodes[row])) == len(jobs.nodes[row])
        for node, units in shares(model, jobs, row):
            start, end = float(jobs.start[row]), float(jobs.start[row] + jobs.run_s[row])
            events += [(end, 0, pool, node, -units), (start, 1, pool, node, units)]
    used: dict[tuple[int, int], int] = {}
    for _, _, pool, node, change in sorted(events):
        used[pool, node] = used.get((pool, node), 0) + change
        assert 0 <= used[pool, node] <= model.nodes[pool].units
        assert node < model.nodes[pool].count


def test_each_job_is_on_the_first_nodes_with_room(drawn: tuple[SiteModel, SyntheticJobs]) -> None:
    model, jobs = drawn
    pools = np.array([one.pool for one in model.classes])[jobs.job_class]
    for pool, kind in enumerate(model.nodes):
        free, running = np.full(kind.count, kind.units), list[tuple[float, list[tuple[int, int]]]]()
        for row in sorted(np.flatnonzero(pools == pool).tolist(), key=lambda row: (jobs.start[row], row)):
            now, parts = float(jobs.start[row]), shares(model, jobs, row)
            for _, ended in (one for one in running if one[0] <= now):
                for node, units in ended:
                    free[node] += units
            running = [one for one in running if one[0] > now]
            room = np.flatnonzero(free >= parts[0][1])
            assert jobs.nodes[row] == tuple(room[: len(parts)].tolist())
            for node, units in parts:
                free[node] -= units
            running.append((now + float(jobs.run_s[row]), parts))


def test_times_and_sizes_are_those_of_the_classes(drawn: tuple[SiteModel, SyntheticJobs]) -> None:
    model, jobs = drawn
    assert len(jobs) == JOBS[model.name]
    assert (np.diff(jobs.submit) >= 0).all() and (jobs.start >= jobs.submit).all()
    assert (jobs.run_s >= 1).all() and (jobs.run_s <= jobs.limit_min * 60).all()
    for row, one in enumerate(model.classes):
        chosen = jobs.job_class == row
        assert chosen.sum() == pytest.approx(one.share * len(jobs), abs=1.5)
        if chosen.any():
            assert jobs.units[chosen].min() >= one.bounds[0] and jobs.units[chosen].max() <= one.bounds[1]
            assert jobs.limit_min[chosen].max() <= one.most_min


def test_the_work_is_the_load_of_the_model(drawn: tuple[SiteModel, SyntheticJobs]) -> None:
    model, jobs = drawn
    units = jobs.units / np.array([model.nodes[one.pool].units for one in model.classes])[jobs.job_class]
    seconds = model.days * 86_400 * len(jobs) / model.jobs
    work = float((units * jobs.run_s).sum()) / (sum(kind.count for kind in model.nodes) * seconds)
    assert work == pytest.approx(model.load, rel=0.05)


def test_the_seed_decides(drawn: tuple[SiteModel, SyntheticJobs]) -> None:
    model, jobs = drawn
    same, other = (site_jobs(model, len(jobs), seed) for seed in (3, 4))
    assert np.array_equal(same.start, jobs.start) and same.nodes == jobs.nodes
    assert not np.array_equal(other.submit, jobs.submit)


def test_jobs_of_archer2_have_the_published_sizes_and_run_times() -> None:
    jobs = site_jobs(MODELS["archer2"], 40_000, 1)
    names = np.array([one.qos for one in MODELS["archer2"].classes])[jobs.job_class]
    metered = names != "lowpriority"
    assert len(archer2.JOBS) == len(archer2.MEAN_RUN_S) == len(archer2.MEAN_NODES) == len(archer2.HOURS)
    share = np.array(archer2.JOBS) / np.sum(archer2.JOBS)
    for column, (least, most) in enumerate(archer2.SIZES):
        chosen = metered & (jobs.units >= least) & (jobs.units <= most)
        assert chosen.sum() / metered.sum() == pytest.approx(share[:, column].sum(), abs=0.001)
        assert set(names[chosen]) <= ({"largescale"} if least > 1024 else set(names) - {"largescale"})
    for row, (least, most) in enumerate(archer2.HOURS):
        chosen = metered & (jobs.run_s >= 3600 * least) & (jobs.run_s < 3600 * most)
        assert chosen.sum() / metered.sum() == pytest.approx(share[row].sum(), abs=0.02)


def test_half_of_the_jobs_come_in_half_of_the_time() -> None:
    model = replace(MODELS["university"], days=8, jobs=4000)
    all_jobs, half = site_jobs(model, 4000), site_jobs(model, 2000)
    assert half.submit[-1] == pytest.approx(all_jobs.submit[-1] / 2, rel=0.1)
