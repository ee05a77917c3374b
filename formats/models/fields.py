"""Checked values of a model's file.

Rule: whatever the file holds, a wrong value is one ConfigError that names the key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...simulate.errors import ConfigError
from ...simulate.queue_policies.learned_order import MODEL_SUFFIX
from ...simulate.queue_policies.policy_specs import Easy, parse
from ..documents.document_errors import found

#: What a model's file has to be.
ALLOWED = f"a file that `pilotfish train` wrote (*{MODEL_SUFFIX})"
#: By how much a score computed again may differ, relative.
_CLOSE = 1e-9
_LONGEST_TEXT = 1000
#: Numbers are closer to 0 than this.
_MOST = 1e300


def finite_numbers(
    value: Any, source: str, key: str, count: int | None = None, most: float = _MOST
) -> tuple[float, ...]:
    """Return a list of numbers.

    Args:
        value: what the file holds.
        source: the file, for errors.
        key: its key, for errors.
        count: how many there have to be; None: any number.
        most: each is closer to 0 than this.

    Raises:
        ConfigError: it is no such list.
    """
    if not isinstance(value, list) or (count is not None and len(value) != count):
        allowed = "finite numbers" if count is None else f"{count} finite numbers"
        raise ConfigError(source, key, found(value), allowed if most == _MOST else f"{allowed} within {most:g}")
    for place, one in enumerate(value):
        if not _is_number(one, most):
            raise _no_number(one, source, f"{key}[{place}]", most)
    return tuple(map(float, value))


def finite_number(value: Any, source: str, key: str, most: float = _MOST) -> float:
    """Return a number.

    Args:
        value: what the file holds.
        source: the file, for errors.
        key: its key, for errors.
        most: it is closer to 0 than this.

    Raises:
        ConfigError: it is no such number.
    """
    if not _is_number(value, most):
        raise _no_number(value, source, key, most)
    return float(value)


def _is_number(value: Any, most: float) -> bool:
    return type(value) in (int, float) and abs(value) < most


def _no_number(value: Any, source: str, key: str, most: float) -> ConfigError:
    allowed = "a finite number" if most == _MOST else f"a finite number within {most:g}"
    return ConfigError(source, key, found(value), allowed)


def checked_rows(
    rows: Any, source: str, key: str, numbers: Sequence[str], words: Sequence[str]
) -> tuple[Mapping[str, Any], ...]:
    """Return rows. Raises ConfigError: one is no mapping with finite numbers and short texts under these keys."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(source, key, "no list of mappings", "a list of mappings")
    for place, row in enumerate(rows):
        for name in numbers:
            finite_number(row.get(name), source, f"{key}[{place}].{name}")
        if not all(isinstance(row.get(name), str) and len(row[name]) <= _LONGEST_TEXT for name in words):
            problem = f"{', '.join(words)}: not all are texts of at most {_LONGEST_TEXT} characters"
            raise ConfigError(source, f"{key}[{place}]", problem, ALLOWED)
    return tuple(rows)


def mapping_of(body: Mapping[str, Any], source: str, key: str) -> Mapping[str, Any]:
    """Return the mapping under a key. Raises ConfigError: it is missing."""
    value = body.get(key)
    if not isinstance(value, dict):
        raise ConfigError(source, key, found(value), "a mapping")
    return value


def checked_baseline(text: Any, source: str) -> str:
    """Return the SPEC of a baseline. Raises ConfigError: it is no order of EASY backfilling."""
    if not isinstance(text, str) or not text.startswith("easy") or MODEL_SUFFIX in text:
        raise ConfigError(source, "baseline", found(text), "a policy such as easy:order=sjf")
    if type(policy := parse(text)) is not Easy or policy.needs_nodes:
        raise ConfigError(source, "baseline", found(text), "EASY backfilling in one of its orders")
    return text


def checked_max_wait(body: Mapping[str, Any], source: str) -> float:
    """Return after how many seconds a job goes first, inf: never for its wait. Raises ConfigError."""
    wait = body.get("max_wait_s")
    seconds = math.inf if wait is None else finite_number(wait, source, "max_wait_s")
    if seconds <= 0.0:
        raise ConfigError(source, "max_wait_s", f"{seconds:g}", "above 0, or null")
    return seconds


def check_traces(trained: Mapping[str, Any], source: str) -> None:
    """Raise ConfigError if the rows of traces or seeds, or a value in training are wrong; a seed's may be unknown."""
    checked_rows(trained.get("traces", []), source, "trained.traces", ("jobs", "processors"), ("name", "sha256"))
    for place, row in enumerate(checked_rows(trained.get("seeds", []), source, "trained.seeds", (), ())):
        if row.get("value") is not None:
            finite_number(row["value"], source, f"trained.seeds[{place}].value")
    for key in ("value", "baseline_value"):
        if key in trained:
            finite_number(trained[key], source, f"trained.{key}")


def check_examples(examples: Any, columns: int, score_of: Callable[[tuple[float, ...]], float], source: str) -> None:
    """Raise ConfigError if the score of an example is not what the model gives.

    Args:
        examples: what the file holds, an input and its score each.
        columns: numbers of an input.
        score_of: the score that the model gives.
        source: the file, for errors.
    """
    if not isinstance(examples, list) or not examples:
        raise ConfigError(source, "examples", "none", "inputs with their scores")
    for place, example in enumerate(examples):
        key = f"examples[{place}]"
        if not isinstance(example, list) or len(example) != 2:
            raise ConfigError(source, key, found(example), "an input and its score")
        row, score = finite_numbers(example[0], source, key, columns), finite_number(example[1], source, key)
        if not math.isclose(again := score_of(row), score, rel_tol=_CLOSE, abs_tol=_CLOSE):
            raise ConfigError(source, key, f"the weights give {again:.12g}, the file says {score:.12g}")


def example_inputs(columns: int) -> list[list[float]]:
    """Return 64 inputs of so many numbers from 0 to 1, which depend on nothing else."""
    return [[((row * 7919 + place * 104_729) % 997) / 997.0 for place in range(columns)] for row in range(64)]
