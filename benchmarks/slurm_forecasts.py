"""Forecasts of waiting jobs from recorded samples of a real Slurm: by its twin, by a replay under EASY, by squeue.

Rule: the numbers are those of tests/simulate/slurm/test_recorded_forecasts.py, with more draws. Cold: no job has ended
that says how long others run, so they run until their limits.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from .show import heading, table

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from tests.support.slurm_forecasts import Forecasts, forecasts  # noqa: E402
from tests.support.slurm_recordings import cases  # noqa: E402
from tests.support.twin_checks import site_of  # noqa: E402

DRAWS, QUICK_DRAWS = 15, 5


def measure(quick: bool) -> None:
    """Print the shares of starts within 60 s and 10 min, and mean errors; nothing without recordings."""
    by_case = cases()
    heading("Forecasts of a real Slurm's waiting jobs" + ("" if by_case else ": no recordings here"))
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for predicted in (False, True) if by_case else ():
            total = Forecasts()
            for case, runs in by_case.items():
                one = sum(
                    (
                        forecasts(
                            run, site_of(run, Path(name)), predicted=predicted, draws=QUICK_DRAWS if quick else DRAWS
                        )
                        for run in runs
                    ),
                    Forecasts(),
                )
                total += one
                rows.append(_row(case, one, predicted=predicted))
            rows.append(_row("all", total, predicted=predicted))
    heads = ("case", "run times", "starts", *(f"{name}: 60 s, 10 min, mean" for name in ("twin", "EASY", "squeue")))
    table((*heads, "in 80 %"), rows)


def _row(case: str, one: Forecasts, *, predicted: bool) -> tuple[object, ...]:
    sides = [f"{100 * near:.0f} % {100 * fair:.0f} % {error:.0f} s" for near, fair, error in one.figures().values()]
    share = f"{100 * one.inside / max(len(one.twin), 1):.0f} %"
    return case, "drawn" if predicted else "limits", len(one.twin), *sides, share
