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

#: What a model's file has to be.
ALLOWED = f"a file that `pilotfish train` wrote (*{MODEL_SUFFIX})"
#: By how much a score computed again may differ, relative.
_CLOSE = 1e-9
_LONGEST_TEXT = 1000


def finite_numbers(
    value: Any, source: str, key: str, count: int | None = None, most: float = 1e300
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
    is_list = isinstance(value, list) and (count is None or len(value) == count)
    if not is_list or not all(type(one) in (int, float) and abs(one) < most for one in value):
        allowed = "finite numbers" if count is None else f"{count} finite numbers"
        raise ConfigError(source, key, repr(value)[:80], allowed if most == 1e300 else f"{allowed} within {most:g}")
    return tuple(map(float, value))


def checked_rows(
    rows: Any, source: str, key: str, numbers: Sequence[str], words: Sequence[str]
) -> tuple[Mapping[str, Any], ...]:
    """Return rows. Raises ConfigError: one is no mapping with finite numbers and short texts under these keys."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(source, key, "no list of mappings", "a list of mappings")
    for place, row in enumerate(rows):
        finite_numbers([row.get(name) for name in numbers], source, f"{key}[{place}]", len(numbers))
        if not all(isinstance(row.get(name), str) and len(row[name]) <= _LONGEST_TEXT for name in words):
            problem = f"{', '.join(words)}: not all are texts of at most {_LONGEST_TEXT} characters"
            raise ConfigError(source, f"{key}[{place}]", problem, ALLOWED)
    return tuple(rows)


def mapping_of(body: Mapping[str, Any], source: str, key: str) -> Mapping[str, Any]:
    """Return the mapping under a key. Raises ConfigError: it is missing."""
    value = body.get(key)
    if not isinstance(value, dict):
        raise ConfigError(source, key, "missing" if value is None else repr(value)[:80], "a mapping")
    return value


def checked_baseline(text: Any, source: str) -> str:
    """Return the SPEC of a baseline. Raises ConfigError: it is no order of EASY backfilling."""
    if not isinstance(text, str) or not text.startswith("easy") or MODEL_SUFFIX in text:
        raise ConfigError(source, "baseline", repr(text)[:80], "a policy such as easy:order=sjf")
    if type(policy := parse(text)) is not Easy or policy.needs_nodes:
        raise ConfigError(source, "baseline", repr(text)[:80], "EASY backfilling in one of its orders")
    return text


def checked_max_wait(body: Mapping[str, Any], source: str) -> float:
    """Return after how many seconds a job goes first, inf: never for its wait. Raises ConfigError."""
    wait = body.get("max_wait_s")
    seconds = math.inf if wait is None else finite_numbers([wait], source, "max_wait_s", 1)[0]
    if seconds <= 0.0:
        raise ConfigError(source, "max_wait_s", f"{seconds:g}", "above 0, or null")
    return seconds


def check_traces(trained: Mapping[str, Any], source: str) -> None:
    """Raise ConfigError if the rows of the traces or of the seeds of a training are wrong."""
    checked_rows(trained.get("traces", []), source, "trained.traces", ("jobs", "processors"), ("name", "sha256"))
    checked_rows(trained.get("seeds", []), source, "trained.seeds", ("value",), ())


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
            raise ConfigError(source, key, repr(example)[:80], "an input and its score")
        row, score = finite_numbers(example[0], source, key, columns), finite_numbers([example[1]], source, key, 1)[0]
        if not math.isclose(again := score_of(row), score, rel_tol=_CLOSE, abs_tol=_CLOSE):
            raise ConfigError(source, key, f"the weights give {again:.12g}, the file says {score:.12g}")


def example_inputs(columns: int) -> list[list[float]]:
    """Return 64 inputs of so many numbers from 0 to 1, which depend on nothing else."""
    return [[((row * 7919 + place * 104_729) % 997) / 997.0 for place in range(columns)] for row in range(64)]
