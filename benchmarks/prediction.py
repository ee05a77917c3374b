"""Error and speed of run-time prediction at submission, compared with the baselines of the field.

Rule: workloads are synthetic, so no external data is needed; given traces are measured if they have users and
estimates.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from pilotfish.benchmarks.show import heading, table
from pilotfish.benchmarks.synthetic_users import SCENARIOS, synthetic_users
from pilotfish.formats.replays.swf import read_swf
from pilotfish.profiles.prediction.evaluate import PREDICTORS, Evaluation, evaluate, traced
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.workload import Workload


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the errors of all predictors, one line per workload."""
    heading("Run times predicted at submission (mean absolute error, too low): history, last two jobs, estimate")
    rows = []
    for workload in (synthetic_users(SCENARIOS[0], 20_000 if quick else 250_000, 0), *_recorded(traces)):
        began = time.perf_counter()
        trace = traced(workload)
        evaluate(trace, ["history"])
        spent = time.perf_counter() - began
        evaluation = evaluate(trace, list(PREDICTORS))
        if not evaluation.silent:
            cells = [_score(evaluation, name) for name in ("history", "last-two", "estimate")]
            rows.append([workload.name, *cells, f"{len(workload) / spent:,.0f}"])
    table(["workload", "history", "last two", "estimate", "jobs/s"], rows)


def _score(evaluation: Evaluation, name: str) -> str:
    score = evaluation.scores[name]
    return f"{score.mean_error:,.0f} s, {100 * score.underpredicted:.0f} %"


def _recorded(traces: Path | None) -> Iterator[Workload]:
    for path in sorted(traces.glob("*.swf*")) if traces else ():
        try:
            yield read_swf(path)
        except ConfigError as error:
            print(f"{path.name}: {error}")
