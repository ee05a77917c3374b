"""The twin against recordings of a real Slurm 22.05: the same decisions and plans from the same history, free replays.

`python -m pilotfish.benchmarks --only slurm_truth` prints the numbers, with more phases of the clocks.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.support import effort
from tests.support.slurm_recordings import cases
from tests.support.twin_checks import (
    FreeRuns,
    OneStep,
    Plans,
    Windows,
    free_runs,
    one_step,
    planned,
    pooled,
    site_of,
    windows,
)

CASES = cases()
if not CASES:
    reason = "NOT TESTED: no recordings of a real Slurm in */data/slurm-real; SLURM_RECORDINGS=FOLDER"
    pytest.skip(reason, allow_module_level=True)

#: Case -> least share of recorded starts that the twin makes, least share of these on the same nodes, and largest share
#: of starts that it makes in addition. The goal is 95 %, 95 % and 5 % everywhere; a number here may only come nearer.
STEPS = {
    "arrays": (0.99, 0.97, 0.02),
    "memory": (0.99, 0.995, 0.005),
    "plain": (0.995, 0.99, 0.01),
    "preempt": (0.99, 0.965, 0.02),
    "realtime": (0.97, 0.99, 0.03),
    "tiers": (0.99, 0.985, 0.01),
}
#: Case -> least share of the starts that squeue expected and the twin plans within a minute. The goal is 75 % of all.
PLANS = {"arrays": 0.9, "memory": 0.95, "plain": 0.88, "preempt": 0.76, "realtime": 0.95, "tiers": 0.93}
PHASES = 3
#: Largest error of the mean wait over all cases.
MOST_ERROR = 0.03


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sites")


@pytest.mark.parametrize("case", effort.some(CASES))
def test_the_twin_makes_the_recorded_starts(case: str, folder: Path) -> None:
    steps = sum((one_step(run, site_of(run, folder)) for run in CASES[case]), OneStep())
    least, least_nodes, most_extra = STEPS[case]
    assert steps.real > 0
    assert steps.same >= least * steps.real, steps.summary()
    assert steps.same_nodes >= least_nodes * steps.same, steps.summary()
    assert steps.extra <= most_extra * steps.real, steps.summary()


@pytest.mark.parametrize("case", CASES)
def test_the_twin_plans_the_starts_that_squeue_expected(case: str, folder: Path) -> None:
    plans = sum((planned(run, site_of(run, folder)) for run in CASES[case]), Plans())
    assert plans.expected > 0
    assert plans.same >= PLANS[case] * plans.expected, plans.lines


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_jobs_wait_as_long_as_they_did_in_windows_that_begin_as_the_record(case: str, folder: Path) -> None:
    parts = sum((windows(run, site_of(run, folder), range(PHASES)) for run in CASES[case]), Windows())
    assert abs(parts.error) <= max(MOST_ERROR, parts.noise), parts.summary()


@cache
def free(case: str, folder: Path) -> FreeRuns:
    return free_runs(CASES[case], folder, range(PHASES))


@pytest.mark.parametrize("case", CASES)
def test_all_jobs_start_in_a_free_replay(case: str, folder: Path) -> None:
    assert free(case, folder).missing == 0


def test_free_replays_wait_as_long_as_the_real_slurm(folder: Path) -> None:
    """The mean over all cases is judged: two runs of the real Slurm differ by 5 to 10 % in a single case."""
    results = [free(case, folder) for case in CASES]
    error, noise = pooled(results)
    assert abs(error) <= max(MOST_ERROR, noise), [result.summary() for result in results]
