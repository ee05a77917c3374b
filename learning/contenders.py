"""The policies that are compared: EASY in every order, conservative backfilling, simple rules, and learned orders.

Rule: a contender is a policy and what it knows of run times: limits, or predictions made from jobs that ended before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..simulate.queue_policies.learned_order import FEATURES, LearnedOrder
from ..simulate.queue_policies.order_ranks import ORDERS
from ..simulate.queue_policies.policy_facts import PolicySpec
from ..simulate.queue_policies.policy_specs import Conservative, Easy
from ..simulate.replay.replay import replay
from ..simulate.world.known_run_times import WALLTIME, RunTimePredictor
from ..simulate.world.replay_result import Replayed
from .objectives import metrics
from .traces import Trace

#: Makes a predictor for the jobs of a trace.
Predicting = Callable[[Trace], RunTimePredictor]
#: Weight of a rule's one feature.
_STRENGTH = 2.0
#: Rules that are weights: name -> the weight of each of FEATURES.
RULES: dict[str, tuple[float, ...]] = {
    name: tuple(weight if place == feature else 0.0 for place in range(len(FEATURES)))
    for name, feature, weight in (
        ("first come, first served", 3, -_STRENGTH),
        ("shortest limit first", 0, _STRENGTH),
        ("shortest expected run first", 2, _STRENGTH),
        ("fewest resources first", 1, _STRENGTH),
    )
}


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy that is judged.

    Args:
        name: unique among those that are compared.
        policy: the policy.
        predicted: it knows predicted run times.
    """

    name: str
    policy: PolicySpec
    predicted: bool = False


def contender(order: LearnedOrder, *, predicted: bool, name: str = "") -> Contender:
    """Return a learned order inside EASY backfilling; its name is that of the order, unless it has another."""
    return Contender(name or order.text, Easy(order=order), predicted)


def variants(predicting: bool) -> list[Contender]:
    """Return EASY in each order but the random one; if `predicting`, with predicted run times, too."""
    names = [name for name in ORDERS if name != "random"]
    sides = [Contender(f"easy:order={name}", Easy(order=name)) for name in names]
    if predicting:
        sides += [Contender(f"easy:order={name}, predicted", Easy(order=name), predicted=True) for name in names]
    return sides


def rivals(max_wait: float, predicting: bool) -> list[Contender]:
    """Return all rivals: `variants`, conservative backfilling, and the rules with the bound of the learned order.

    Args:
        max_wait: the bound on waits, seconds.
        predicting: add those with predicted run times.
    """
    sides = variants(predicting)
    sides += [Contender(f"conservative:order={name}", Conservative(order=name)) for name in ("fcfs", "sjf")]
    for name, weights in RULES.items():
        order = LearnedOrder(name, weights, max_wait)
        sides.append(contender(order, predicted=False, name=f"{name}, bounded"))
        if predicting:
            sides.append(contender(order, predicted=True, name=f"{name}, bounded, predicted"))
    return sides


def replayed(trace: Trace, side: Contender, predict: Predicting | None) -> Replayed:
    """Return the replay of a trace under a contender; without `predict` it knows limits. Raises ConfigError."""
    run_times = predict(trace) if side.predicted and predict is not None else WALLTIME
    return replay(trace.jobs, trace.processors, side.policy, run_times=run_times)


def numbers_of(trace: Trace, side: Contender, predict: Predicting | None) -> dict[str, float]:
    """Return the `metrics` of the jobs that count, from a replay of a trace under a contender."""
    return metrics(replayed(trace, side, predict), trace.counts)


class RecordedRunTimes:
    """The predictions that a predictor makes in one replay, for others of the same jobs; a `RunTimePredictor`.

    They are nearly what it would predict in the other replays, and cost nothing.

    Args:
        trace: the trace.
        side: the contender of the replay.
        predict: makes the predictor.
    """

    def __init__(self, trace: Trace, side: Contender, predict: Predicting) -> None:
        self._predictor: RunTimePredictor | None = predict(trace)
        self._expected = dict[int, float | None]()
        replayed(trace, side, lambda _: self)
        self._predictor = None

    def expected(self, row: int) -> float | None:
        """Return the expected run time of a job, seconds; None: its limit."""
        if self._predictor is not None:
            self._expected[row] = self._predictor.expected(row)
        return self._expected.get(row)

    def ended(self, row: int, ran: float | None = None) -> None:
        """Learn from a job that has ended, in the first replay."""
        if self._predictor is not None:
            self._predictor.ended(row, ran)
