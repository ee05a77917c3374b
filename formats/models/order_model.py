"""Learned orders inside EASY backfilling in a model's file: the kinds `linear`, `tanh` and `fill`.

Rule: a linear order has a weight for each feature; a `tanh` order is a network; `fill` has the weights of two linear
orders, of the queue and of the jobs behind its reservation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ...simulate.errors import ConfigError
from ...simulate.queue_policies.learned_order import FEATURE_SET, FEATURES, LearnedOrder
from ...simulate.queue_policies.order_score import NETWORK, score_of
from ...simulate.queue_policies.policy_specs import parse
from ...simulate.world.known_run_times import PREDICTED, WALLTIME
from ..documents.document_errors import found
from .fields import (
    ALLOWED,
    check_examples,
    check_traces,
    checked_baseline,
    checked_max_wait,
    example_inputs,
    finite_number,
    finite_numbers,
    mapping_of,
)
from .verdicts import checked_verdicts, proves

if TYPE_CHECKING:
    from ...simulate.learned.guarded_order import GuardedOrder

#: Kinds of orders, and how many weights the order of the queue has.
ORDER_KINDS = {"linear": len(FEATURES), "tanh": NETWORK, "fill": len(FEATURES)}
#: Weights of a network are closer to 0 than this, so that no sum is too large for a number.
_MOST_WEIGHT = 1e6
#: Values of seeds are logarithms closer to 0 than this, so that what they stand for is a number.
_MOST_LOGARITHM = 300.0


@dataclass(frozen=True, slots=True)
class Baseline:
    """The policy that a model is to be better than, and that decides where the model may not.

    Args:
        policy: its SPEC.
        run_times: what it knows of run times, `walltime` or `predicted`.
    """

    policy: str = "easy"
    run_times: str = WALLTIME


@dataclass(frozen=True, slots=True)
class OrderModel:
    """A learned order and its card.

    Args:
        weights: of the queue, see `order_score.score_of`.
        max_wait: see `LearnedOrder`, seconds.
        objective: what it makes small, a key of the objectives.
        processors: resources of the machines that it was trained on.
        trained: what it rests on: version, command, traces with their hashes and jobs, seeds with their values.
        seen: quantiles of what jobs of the traces look like.
        evaluated: rows of verdicts.
        run_times: what it knows of run times, `walltime` or `predicted`.
        baseline: the best known policy on the traces.
        fill: the weights of the jobs behind the reservation; empty: they have the order of the queue.
    """

    FEATURE_SET: ClassVar = FEATURE_SET

    weights: tuple[float, ...]
    max_wait: float
    objective: str
    processors: tuple[int, ...]
    trained: Mapping[str, Any]
    seen: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    evaluated: tuple[Mapping[str, Any], ...] = ()
    run_times: str = WALLTIME
    baseline: Baseline = Baseline()
    fill: tuple[float, ...] = ()

    @property
    def kind(self) -> str:
        """The kind, a key of ORDER_KINDS."""
        if self.fill:
            return "fill"
        return "tanh" if len(self.weights) == NETWORK else "linear"

    @property
    def rule(self) -> str | None:
        """The simple rule that the search began with, if it also ended there and nothing was learned; else None."""
        searches = [one for one in self.trained.get("seeds", ()) if one.get("seed") == self.trained.get("seed")]
        return str(self.trained.get("start")) if searches and searches[0].get("is_rule") is True else None

    def order(self, text: str) -> LearnedOrder:
        """Return the order; `text` is its name in SPECs."""
        return LearnedOrder(text, self.weights, self.max_wait, self.fill, self.run_times)

    def guarded(self, text: str, digest: str) -> GuardedOrder:
        """Return the guarded order.

        Args:
            text: its name, for errors.
            digest: names the model.

        Raises:
            ConfigError: the file does not say what the model was trained on.
        """
        from ...simulate.learned import guarded_order

        ends = dict[str, tuple[float, float]]()
        for name in ("limit", "share", "wait"):
            values = self.seen.get(name) or ()
            if len(values) < 2 or list(values) != sorted(values):
                raise ConfigError(text, f"seen.{name}", "no ascending quantiles", ALLOWED)
            ends[name] = values[0], values[-1]
        if not self.processors or min(self.processors) < 1:
            raise ConfigError(text, "world.processors", found(self.processors), "sizes of machines, 1 or more")
        longest = ends["wait"][1] if math.isinf(self.max_wait) else math.inf  # beyond the bound, a job goes first
        training = guarded_order.Seen(
            ends["limit"], ends["share"], longest, (min(self.processors), max(self.processors))
        )
        baseline: Any = parse(self.baseline.policy)
        return guarded_order.GuardedOrder(self.order(text), str(baseline.order), training, digest, self.is_proven)

    @property
    def is_proven(self) -> bool:
        """Return whether a verdict says that it beats its baseline on jobs that it has not seen."""
        return proves(self.evaluated, "wait" if self.objective == "wait" else "bsld")

    def body(self) -> dict[str, Any]:
        """Return what its file holds beyond the kind and the hash."""
        return {
            "features": list(FEATURES), "weights": list(self.weights),
            **({"fill": list(self.fill)} if self.fill else {}),
            "max_wait_s": self.max_wait if math.isfinite(self.max_wait) else None,
            "objective": self.objective, "run_times": self.run_times, "baseline": asdict(self.baseline),
            "world": {"nodes": "alike", "processors": list(self.processors)},
            "trained": self.trained, "seen": {name: list(values) for name, values in self.seen.items()},
            "evaluated": list(self.evaluated),
            "examples": [[row, score_of(self.fill or self.weights, row)] for row in example_inputs(len(FEATURES))],
        }  # fmt: skip

    @classmethod
    def of(cls, body: Mapping[str, Any], source: str) -> OrderModel:
        """Return the model of what a file holds; `source`: the file. Raises ConfigError."""
        kind = str(body["kind"])
        weights = finite_numbers(body.get("weights"), source, "weights", ORDER_KINDS[kind], _MOST_WEIGHT)
        fill: tuple[float, ...] = ()
        if kind == "fill":
            fill = finite_numbers(body.get("fill"), source, "fill", len(FEATURES), _MOST_WEIGHT)
        max_wait = checked_max_wait(body, source)
        check_examples(body.get("examples"), len(FEATURES), lambda row: score_of(fill or weights, row), source)
        world, trained, columns = (mapping_of(body, source, key) for key in ("world", "trained", "seen"))
        verdicts = checked_verdicts(body.get("evaluated"), source)
        check_traces(trained, source)
        for place, row in enumerate(trained.get("seeds", ())):
            finite_number(trained.get("baseline_value"), source, "trained.baseline_value", _MOST_LOGARITHM)
            finite_number(row.get("value"), source, f"trained.seeds[{place}].value", _MOST_LOGARITHM)
        processors = tuple(map(int, finite_numbers(world.get("processors"), source, "world.processors")))
        quantiles = {str(name): finite_numbers(values, source, f"seen.{name}") for name, values in columns.items()}
        return cls(
            weights, max_wait, str(body.get("objective")), processors, trained, quantiles, verdicts,
            _run_times(body, source), _baseline(body.get("baseline"), source), fill,
        )  # fmt: skip


def _run_times(body: Mapping[str, Any], source: str) -> str:
    """Return what is known of run times. Raises ConfigError."""
    word = body.get("run_times")
    if word not in (WALLTIME, PREDICTED):
        raise ConfigError(source, "run_times", found(word), f"{WALLTIME}, {PREDICTED}")
    return str(word)


def _baseline(body: Any, source: str) -> Baseline:
    """Return the baseline. Raises ConfigError: it is no order of EASY backfilling."""
    text = checked_baseline(body.get("policy") if isinstance(body, dict) else None, source)
    return Baseline(text, _run_times(body, source))
