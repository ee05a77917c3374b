"""The file of a learned order: JSON with its weights, and the card that says what it rests on.

Rule: a model is numbers, never code. The file carries a hash of the rest of itself, and inputs with their scores, which
the reader computes again: a file that was cut, edited, or written for another meaning of the features is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..simulate.errors import ConfigError
from ..simulate.queue_policies.learned_order import FEATURE_SET, FEATURES, MODEL_SUFFIX, LearnedOrder, OrderFile, sum_of
from ..simulate.queue_policies.policy_specs import Easy, parse
from ..simulate.world.known_run_times import PREDICTED, WALLTIME
from .documents.atomic_write import write_whole
from .documents.files import read_bytes

if TYPE_CHECKING:
    from ..simulate.learned.guarded_order import GuardedOrder

SCHEMA, KIND = "pilotfish/model/v1", "linear"
MOST_BYTES = 1 << 20
#: The rival of a verdict that was best on the traces of the training.
IN_TRAINING = "chosen in training"
#: Fewest shaken copies of a verdict that proves something.
LEAST_COPIES = 20
#: By how much a score computed again may differ, relative.
_CLOSE = 1e-9
_LONGEST_TEXT = 1000
_ALLOWED = f"a file that `pilotfish train` wrote (*{MODEL_SUFFIX})"


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
class Model:
    """A learned order and its card.

    Args:
        weights: of FEATURES.
        max_wait: see `LearnedOrder`, seconds.
        objective: what it makes small, a key of the objectives.
        processors: resources of the machines that it was trained on.
        trained: what it rests on: version, command, traces with their hashes and jobs, seeds with their values.
        seen: quantiles of what jobs of the traces look like.
        evaluated: rows of verdicts.
        run_times: what it knows of run times, `walltime` or `predicted`.
        baseline: the best known policy on the traces.
    """

    weights: tuple[float, ...]
    max_wait: float
    objective: str
    processors: tuple[int, ...]
    trained: Mapping[str, Any]
    seen: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    evaluated: tuple[Mapping[str, Any], ...] = ()
    run_times: str = WALLTIME
    baseline: Baseline = Baseline()

    def order(self, text: str) -> LearnedOrder:
        """Return the order; `text` is its name in SPECs."""
        return LearnedOrder(text, self.weights, self.max_wait)

    def guarded(self, text: str) -> GuardedOrder:
        """Return the guarded order; `text` is its name, for errors.

        Raises ConfigError: the file does not say what the model was trained on.
        """
        from ..simulate.learned import guarded_order

        ends = dict[str, tuple[float, float]]()
        for name in ("limit", "share", "wait"):
            values = self.seen.get(name) or ()
            if len(values) < 2 or list(values) != sorted(values):
                raise ConfigError(text, f"seen.{name}", "no ascending quantiles", _ALLOWED)
            ends[name] = values[0], values[-1]
        if not self.processors or min(self.processors) < 1:
            raise ConfigError(text, "world.processors", repr(self.processors), "sizes of machines, 1 or more")
        longest = ends["wait"][1] if math.isinf(self.max_wait) else math.inf  # beyond the bound, a job goes first
        training = guarded_order.Seen(
            ends["limit"], ends["share"], longest, (min(self.processors), max(self.processors))
        )
        digest = hashlib.sha256(dump_model(self).encode()).hexdigest()
        baseline: Any = parse(self.baseline.policy)
        return guarded_order.GuardedOrder(self.order(text), str(baseline.order), training, digest, self.is_proven)

    @property
    def is_proven(self) -> bool:
        """Return whether a verdict on LEAST_COPIES says that it beats its baseline on jobs that it has not seen."""
        number = "wait" if self.objective == "wait" else "bsld"
        rows = [row for row in self.evaluated if row["number"] == number and row["chosen"] == IN_TRAINING]
        return any(row.get("beats") is True and row["copies"] >= LEAST_COPIES for row in rows)


def dump_model(model: Model) -> str:
    """Return the text of a model's file; the same model gives the same text."""
    examples = [[row, sum_of(model.weights, tuple(row))] for row in _example_inputs()]
    body = {
        "schema": SCHEMA, "kind": KIND, "feature_set": FEATURE_SET, "features": list(FEATURES),
        "weights": list(model.weights), "max_wait_s": model.max_wait if math.isfinite(model.max_wait) else None,
        "objective": model.objective, "run_times": model.run_times, "baseline": asdict(model.baseline),
        "world": {"nodes": "alike", "processors": list(model.processors)},
        "trained": model.trained, "seen": {name: list(values) for name, values in model.seen.items()},
        "evaluated": list(model.evaluated), "examples": examples,
    }  # fmt: skip
    return json.dumps(body | {"sha256": _digest(body)}, indent=1, allow_nan=False) + "\n"


def write_model(path: Path, model: Model) -> None:
    """Write a model's file, whole or not at all. Raises OSError."""
    write_whole(path, dump_model(model))


def read_model(path: Path) -> Model:
    """Read a model's file. Raises ConfigError: it is none, or not intact; OSError: it cannot be read."""
    return parse_model(read_bytes(path), str(path))


def parse_model(data: bytes, source: str) -> Model:
    """Read a model from the content of its file. Raises ConfigError.

    Args:
        data: the content.
        source: the file, for errors.
    """
    if len(data) > MOST_BYTES:
        raise ConfigError(source, "", f"{len(data):,} bytes or more", f"at most {MOST_BYTES:,}")
    try:
        body = json.loads(data.decode(), parse_constant=lambda word: _refuse_constant(word, source))
    except (ValueError, RecursionError) as error:
        raise ConfigError(source, "", f"no JSON: {str(error)[:200]}", _ALLOWED) from None
    if not isinstance(body, dict):
        raise ConfigError(source, "", "no model", _ALLOWED)
    for key, value in (("schema", SCHEMA), ("kind", KIND), ("feature_set", FEATURE_SET)):
        if body.get(key) != value:
            raise ConfigError(source, key, repr(body.get(key))[:80], repr(value))
    digest = body.pop("sha256", None)
    if digest != _digest(body):
        raise ConfigError(source, "sha256", "the file was changed after it was written", "the file as it was written")
    weights = _numbers(body.get("weights"), source, "weights", len(FEATURES))
    wait = body.get("max_wait_s")
    max_wait = math.inf if wait is None else _numbers([wait], source, "max_wait_s", 1)[0]
    if max_wait <= 0.0:
        raise ConfigError(source, "max_wait_s", f"{max_wait:g}", "above 0, or null")
    _check_examples(body.get("examples"), weights, source)
    world, trained, columns, rows = (body.get(key) for key in ("world", "trained", "seen", "evaluated"))
    if not isinstance(world, dict) or not isinstance(trained, dict) or not isinstance(columns, dict):
        raise ConfigError(source, "world", "world, trained or seen is missing", "a mapping each")
    verdicts = _checked(
        rows, source, "evaluated", ("ratio", "low", "high", "copies"), ("trace", "rival", "number", "chosen")
    )
    _checked(trained.get("traces", []), source, "trained.traces", ("jobs", "processors"), ("name", "sha256"))
    _checked(trained.get("seeds", []), source, "trained.seeds", ("value",), ())
    if trained.get("seeds"):
        _numbers([trained.get("baseline_value")], source, "trained.baseline_value", 1)
    processors = tuple(int(number) for number in _numbers(world.get("processors"), source, "processors", None))
    quantiles = {str(name): _numbers(values, source, f"seen.{name}", None) for name, values in columns.items()}
    return Model(
        weights, max_wait, str(body.get("objective")), processors, trained, quantiles, verdicts,
        _run_times(body, source), _baseline(body.get("baseline"), source),
    )  # fmt: skip


def with_models(policy: Any, folder: Path = Path()) -> Any:
    """Return a policy with the learned order of the file that its SPEC names, if it names one.

    Args:
        policy: the policy, a `PolicySpec`.
        folder: where a relative path begins.

    Raises:
        ConfigError: see `read_model`, or parts of the policy do not go with a learned order.
        OSError: the file cannot be read.
    """
    plain = policy.plain
    order = getattr(plain, "order", None)
    if not isinstance(order, OrderFile):
        return policy
    learned = replace(plain, order=read_model(folder / order.path).order(order.path))
    return learned if plain is policy else replace(policy, base=learned)


def _run_times(body: Mapping[str, Any], source: str) -> str:
    """Return what is known of run times. Raises ConfigError."""
    word = body.get("run_times")
    if word not in (WALLTIME, PREDICTED):
        raise ConfigError(source, "run_times", repr(word)[:80], f"{WALLTIME}, {PREDICTED}")
    return str(word)


def _baseline(body: Any, source: str) -> Baseline:
    """Return the baseline. Raises ConfigError: it is no order of EASY backfilling."""
    text = body.get("policy") if isinstance(body, dict) else None
    if not isinstance(text, str) or not text.startswith("easy") or MODEL_SUFFIX in text:
        raise ConfigError(source, "baseline", repr(body)[:80], "a policy such as easy:order=sjf, and run_times")
    if type(policy := parse(text)) is not Easy or policy.needs_nodes:
        raise ConfigError(source, "baseline", repr(text)[:80], "EASY backfilling in one of its orders")
    return Baseline(text, _run_times(body, source))


def _refuse_constant(word: str, source: str) -> float:
    raise ConfigError(source, "", f"{word} is no number", "finite numbers")


def _numbers(value: Any, source: str, key: str, count: int | None) -> tuple[float, ...]:
    """Return a list of finite numbers. Raises ConfigError."""
    is_list = isinstance(value, list) and (count is None or len(value) == count)
    if not is_list or not all(type(one) in (int, float) and abs(one) < 1e300 for one in value):
        allowed = "finite numbers" if count is None else f"{count} finite numbers"
        raise ConfigError(source, key, repr(value)[:80], allowed)
    return tuple(map(float, value))


def _checked(
    rows: Any, source: str, key: str, numbers: tuple[str, ...], words: tuple[str, ...]
) -> tuple[Mapping[str, Any], ...]:
    """Return rows. Raises ConfigError: one is no mapping with finite numbers and short texts under these keys."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(source, key, "no list of mappings", "a list of mappings")
    for place, row in enumerate(rows):
        _numbers([row.get(name) for name in numbers], source, f"{key}[{place}]", len(numbers))
        if not all(isinstance(row.get(name), str) and len(row[name]) <= _LONGEST_TEXT for name in words):
            problem = f"{', '.join(words)}: not all are texts of at most {_LONGEST_TEXT} characters"
            raise ConfigError(source, f"{key}[{place}]", problem, _ALLOWED)
    return tuple(rows)


def _check_examples(examples: Any, weights: tuple[float, ...], source: str) -> None:
    """Raise ConfigError if a score is not what the weights give."""
    if not isinstance(examples, list) or not examples:
        raise ConfigError(source, "examples", "none", "inputs with their scores")
    for place, example in enumerate(examples):
        key = f"examples[{place}]"
        if not isinstance(example, list) or len(example) != 2:
            raise ConfigError(source, key, repr(example)[:80], "an input and its score")
        row, score = _numbers(example[0], source, key, len(weights)), _numbers([example[1]], source, key, 1)[0]
        if not math.isclose(sum_of(weights, row), score, rel_tol=_CLOSE, abs_tol=_CLOSE):
            raise ConfigError(source, key, f"the weights give {sum_of(weights, row):.12g}, the file says {score:.12g}")


def _example_inputs() -> list[list[float]]:
    """Return 64 inputs that depend on nothing."""
    return [[((row * 7919 + place * 104_729) % 997) / 997.0 for place in range(len(FEATURES))] for row in range(64)]


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode()).hexdigest()
