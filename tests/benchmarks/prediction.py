"""Run times predicted at submission: how far off, how often too low, and how fast, beside the baselines of the field.

Rule: workloads are made up, so that nothing from outside is needed; of given traces those are measured that have users
and estimates.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pilotfish.profiles.prediction.evaluate import PREDICTORS, Evaluation, evaluate
from pilotfish.profiles.prediction.trace import traced
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.formats.swf import read_swf
from pilotfish.simulate.workload import Workload

from .show import heading, table


def habits(jobs: int, users: int = 200, programs: int = 4) -> Workload:
    """Users with some programs each, which need about the same each time, and much less than is asked for."""
    draw = np.random.default_rng(0)
    user, program = draw.integers(users, size=jobs), draw.integers(programs, size=jobs)
    typical = np.exp(draw.normal(7, 1.5, (users, programs)))
    limit = 3600 * np.ceil(typical * draw.uniform(2, 8, typical.shape) / 3600)[user, program]
    size = 2 ** draw.integers(0, 8, typical.shape)[user, program]
    run = np.minimum(np.ceil(typical[user, program] * draw.lognormal(0, 0.5, jobs)), limit)
    more = {"user": user.astype(float), "requested_time": limit, "wait_time": np.floor(draw.exponential(600, jobs))}
    submit = np.cumsum(np.ceil(draw.exponential(60, jobs)))
    return Workload(f"habits-{jobs:,}", np.arange(jobs), submit, run, limit, size, more=more)


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print errors of all predictors, one line a workload."""
    heading("Run times predicted at submission (mean absolute error, too low): history, last two jobs, estimate")
    rows = []
    for workload in (habits(20_000 if quick else 250_000), *_given(traces)):
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
