"""TimeMin in the backfill pass: hard, it cuts a limit to what fits; soft, the job fits and keeps its limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.replay.engines import Feature, engine_for, explain
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.replay.replay_case import ReplayCase, ReplayOptions
from pilotfish.simulate.slurm.site import SchedulerRules, Site, SiteJob, SiteRules
from pilotfish.simulate.slurm.site_policy import SlurmRules
from pilotfish.simulate.slurm.time_min import minutes_of_prediction
from pilotfish.simulate.slurm.twin import SiteStart, replay_site
from tests.simulate.replay.test_replay import workload
from tests.simulate.slurm.small_sites import NODES, RULES, T0, job, site

CPUS = sum(node.cpus for node in NODES)
SOFT = SchedulerRules(time_min_as_soft_limit=True)
#: Five of six nodes are busy for an hour. Then all are reserved for the second job; the third fits before if it is short.
BUSY = job(id="1", max_nodes=5, tasks=CPUS - 4, min_cpus=CPUS - 4, min_nodes=5, limit_min=60, run_s=3600.0)
WIDE = job(id="2", tasks=CPUS, min_cpus=CPUS, min_nodes=6, submit=T0 + 60.0, limit_min=60, run_s=60.0)
LONG = job(id="3", max_nodes=1, tasks=4, min_cpus=4, min_nodes=1, submit=T0 + 120.0, limit_min=180, run_s=900.0)


def rules(version: tuple[int, int], *, soft: bool) -> SiteRules:
    return replace(RULES, version=version, scheduler=replace(SOFT, time_min_as_soft_limit=soft), over_time_limit_min=0)


def starts(*jobs: SiteJob, version: tuple[int, int] = (23, 11), soft: bool = True) -> dict[str, SiteStart]:
    place: Site = site(jobs, rules=rules(version, soft=soft))
    return {jobs[one.job].id: one for one in replay_site(place).starts}


def test_without_it_a_long_job_waits_and_with_it_it_starts_before_the_reservation() -> None:
    assert starts(BUSY, WIDE, LONG)["3"].start > starts(BUSY, WIDE, LONG)["2"].start
    for soft in (True, False):
        early = starts(BUSY, WIDE, replace(LONG, time_min_min=20), soft=soft)
        assert early["3"].start < T0 + 600 and early["3"].by == "backfill" and early["2"].start < T0 + 3800
        assert early["3"].end == early["3"].start + 900.0


@pytest.mark.parametrize(
    ("version", "soft", "killed"), [((23, 11), True, False), ((23, 11), False, True), ((22, 5), True, True)]
)
def test_only_a_soft_limit_keeps_a_job_that_runs_longer_than_it_was_planned(
    version: tuple[int, int], soft: bool, killed: bool
) -> None:
    longer = replace(LONG, time_min_min=20, run_s=9000.0)
    entry = starts(BUSY, WIDE, longer, version=version, soft=soft)["3"]
    assert entry.end is not None and entry.start < T0 + 600
    if killed:  # at the next check after the hour in which the second job's nodes were free
        assert 3000 < entry.end - entry.start < 3700
    else:
        assert entry.end - entry.start == 9000.0


def test_a_prediction_is_whole_minutes_with_a_margin_below_the_limit() -> None:
    assert [minutes_of_prediction(seconds, 60) for seconds in (None, 0.0, 61.0, 2399.0, 2401.0)] == [
        None,
        1,
        2,
        None,
        None,
    ]
    assert minutes_of_prediction(600.0, 60, 1.0) == 10 and minutes_of_prediction(600.0, None) is None


class Constant:
    """Predicts the same run time for each job, and keeps what has ended."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds, self.ends, self.made = seconds, list[int](), list[int]()

    def expected(self, row: int) -> float | None:
        self.made.append(row)
        return self.seconds

    def ended(self, row: int, ran: float | None = None) -> None:
        self.ends.append(row)


def policy(*, soft: bool) -> SlurmRules:
    return SlurmRules("slurm:small", site([], rules=rules((23, 11), soft=soft)))


def test_predictions_are_made_at_submission_from_jobs_that_ended_before() -> None:
    jobs = workload(
        [(0.0, 100.0, 600.0, 2), (0.0, 1200.0, 3600.0, 2), (600.0, 60.0, 600.0, 2), (9000.0, 60.0, 600.0, 2)]
    )
    predictor = Constant(60.0)
    result = replay(jobs, policy(soft=True).machine, policy(soft=True), run_times=predictor)
    assert predictor.made == [0, 1, 2, 3] and predictor.ends == [0, 2, 1] and not result.rejected.any()


def test_a_prediction_lets_jobs_start_earlier_and_kills_none() -> None:
    jobs = workload([
        (0.0, 3600.0, 3600.0, CPUS - 4), (60.0, 60.0, 3600.0, CPUS), (60.0, 900.0, 10800.0, 4), (0.0, 5000.0, 10800.0, 4),
    ])  # fmt: skip
    base = replay(jobs, policy(soft=True).machine, policy(soft=True))
    same = replay(jobs, policy(soft=True).machine, policy(soft=True), run_times=Constant(None))
    assert same.start_time.tolist() == base.start_time.tolist()
    early = replay(jobs, policy(soft=True).machine, policy(soft=True), run_times=Constant(600.0))
    assert early.start_time[2:].min() < 600 < base.start_time[2:].min() and not early.overran.any()
    assert np.array_equal(early.finish_time - early.start_time, base.finish_time - base.start_time)


def test_hard_limits_refuse_predictions() -> None:
    with pytest.raises(ConfigError, match="no engine replays slurm:small where run times are predicted"):
        engine_for(policy(soft=False), {Feature.PREDICTED})
    case = ReplayCase(
        workload([]), policy(soft=True).machine, policy(soft=True), ReplayOptions(run_times=Constant(None))
    )
    assert "The engine is slurm, predictions" in explain(case)
