"""Forecasts of the waiting jobs in recorded samples of a real Slurm: the twin's are nearer than others'.

`python -m pilotfish.benchmarks --only slurm_forecasts` prints the numbers, with more draws.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.slurm_forecasts import Forecasts, forecasts
from tests.support.slurm_recordings import runs
from tests.support.twin_checks import site_of

RUNS = runs()
if not RUNS:
    reason = "NOT TESTED: no recordings of a real Slurm in */data/slurm-real; SLURM_RECORDINGS=FOLDER"
    pytest.skip(reason, allow_module_level=True)

#: Of all starts, least share that is forecast within a minute and within ten minutes.
NEAR, FAIR = 0.15, 0.6
#: Least share of starts in the interval between five draws, which would hold two thirds if all were known.
INSIDE = 0.5


@pytest.mark.long
def test_the_twin_forecasts_starts_better_than_slurm_and_than_a_replay_under_easy(tmp_path: Path) -> None:
    total = sum((forecasts(run, site_of(run, tmp_path), predicted=True, draws=5) for run in RUNS), Forecasts())
    figures = total.figures()
    (near, fair, error), easy, squeue = (figures[name] for name in ("twin", "easy", "squeue"))
    assert near >= NEAR and fair >= FAIR, total.summary()
    assert near > easy[0] and fair > easy[1] and error < easy[2], total.summary()
    assert error < squeue[2] / 3, total.summary()
    assert total.inside >= INSIDE * len(total.twin), total.summary()
