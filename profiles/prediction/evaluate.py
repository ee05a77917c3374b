"""Several predictors over one trace, side by side.

Rule: a predictor that can say nothing about a trace is named and left out; the others are compared over the jobs that
all of them predict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .baselines import Estimate, LastTwo
from .history import QUANTILE, History
from .jobs import Predictor
from .online import predict_all
from .score import Score, common, score
from .trace import Traced

#: Predictors by name, each made for a quantile, which only some predict.
PREDICTORS: Mapping[str, Callable[[float], Predictor]] = {
    "estimate": lambda quantile: Estimate(),
    "last-two": lambda quantile: LastTwo(),
    "history": History,
}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What predictors are worth on a trace.

    Args:
        jobs: how many jobs they are compared over; left_out: how many are not.
        quantile: what `history` predicts.
        scores: by the predictor's name.
        silent: predictors that could say nothing.
        unknown_waits: jobs whose waiting time is not known, so that they count as ended that much earlier.
    """

    jobs: int
    left_out: int
    quantile: float
    scores: Mapping[str, Score]
    silent: Sequence[str]
    unknown_waits: int


def evaluate(trace: Traced, names: Sequence[str], quantile: float = QUANTILE) -> Evaluation:
    """Let predictors predict a trace's jobs, each at its submission, and judge them.

    Args:
        names: of `PREDICTORS`.
        quantile: (0, 1), for those that predict one.
    """
    observed = trace.observed
    made = {name: predict_all(observed, PREDICTORS[name](quantile)) for name in names}
    silent = [name for name in names if not any(made[name])]
    heard = {name: predictions for name, predictions in made.items() if name not in silent}
    rows = common(observed.values, list(heard.values()))
    jobs = int(rows.sum()) if heard else 0
    scores = {name: score(observed.values, trace.limits, one, rows) for name, one in heard.items()} if jobs else {}
    return Evaluation(jobs, len(rows) - jobs, quantile, scores, silent, trace.unknown_waits)
