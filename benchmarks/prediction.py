"""Run times predicted at submission: how far off, how often too low, and how fast, beside the baselines of the field.

Rule: workloads are made up, so that nothing from outside is needed; of given traces those are measured that have users
and estimates.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from pilotfish.profiles.prediction.evaluate import PREDICTORS, Evaluation, evaluate
from pilotfish.profiles.prediction.trace import traced
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.formats.swf import read_swf
from pilotfish.simulate.workload import Workload

from .habits import WORLDS, made_up
from .show import heading, table


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print errors of all predictors, one line a workload."""
    heading("Run times predicted at submission (mean absolute error, too low): history, last two jobs, estimate")
    rows = []
    for workload in (made_up(WORLDS[0], 20_000 if quick else 250_000, 0), *_given(traces)):
        began = time.perf_counter()
        trace = traced(workload)
        evaluate(trace, ["history"])
        spent = time.perf_counter() - began
        found = evaluate(trace, list(PREDICTORS))
        if not found.silent:
            cells = [_score(found, name) for name in ("history", "last-two", "estimate")]
            rows.append([workload.name, *cells, f"{len(workload) / spent:,.0f}"])
    table(["workload", "history", "last two", "estimate", "jobs/s"], rows)


def _score(found: Evaluation, name: str) -> str:
    score = found.scores[name]
    return f"{score.mean_error:,.0f} s, {100 * score.underpredicted:.0f} %"


def _given(traces: Path | None) -> Iterator[Workload]:
    for path in sorted(traces.glob("*.swf*")) if traces else ():
        try:
            yield read_swf(path)
        except ConfigError as error:
            print(f"{path.name}: {error}")
