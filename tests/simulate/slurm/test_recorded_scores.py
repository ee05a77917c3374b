"""The card on recordings of a real Slurm: its baseline is the recorded schedule, within the twin's error."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from pilotfish.simulate.slurm.handed_order import Handling, left_to_slurm, ordered_jobs
from pilotfish.simulate.slurm.site_outcome import recorded_outcome, replayed_outcome
from pilotfish.simulate.slurm.site_score import SAME, SiteScore, score
from pilotfish.simulate.slurm.twin import replay_site
from tests.support import effort
from tests.support.slurm_recordings import cases
from tests.support.twin_checks import site_of

CASES = cases()
if not CASES:
    reason = "NOT TESTED: no recordings of a real Slurm in */data/slurm-real; SLURM_RECORDINGS=FOLDER"
    pytest.skip(reason, allow_module_level=True)
#: Largest error of the twin's mean wait in a single run, as a share: two runs of the real Slurm differ as much.
MOST_ERROR = 0.25


@pytest.mark.parametrize("case", effort.some(CASES))
def test_the_baseline_is_the_recorded_schedule(case: str, tmp_path: Path) -> None:
    site = site_of(CASES[case][0], tmp_path)
    recorded, reasons = recorded_outcome(site), left_to_slurm(site)
    twin = [replayed_outcome(site, replay_site(site, seed)) for seed in range(3)]

    def judged(hold_s: float) -> SiteScore:
        handed = ordered_jobs(site, "sjf", reasons, Handling(hold_s))
        pilotfish = [replayed_outcome(site, replay_site(site, seed, handed=handed)) for seed in range(3)]
        return score(site, recorded, twin, pilotfish, reasons, handed)

    at_once, always = judged(0.0), judged(math.inf)
    waiting = at_once.headline
    assert waiting.mean.recorded is not None and waiting.mean.error is not None
    assert abs(waiting.mean.error) <= max(MOST_ERROR * waiting.mean.recorded, 10.0)
    assert at_once.headline.verdict == SAME
    assert always.handed.compared == at_once.handed.compared
    assert always.handed.released <= at_once.handed.released  # of wide jobs and behind them, holds are short anyway
