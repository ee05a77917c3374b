"""Validation of the Slurm adapter's options.

Rule: pure; an invalid option is one ConfigError that names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from os import PathLike
from typing import Any

from ...simulate.errors import ConfigError

#: With fewer requests a minute, reading the queue would take too long.
LEAST_REQUESTS = 60


def _words(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(word, str) and word for word in value)


def _seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf


def _whole(value: Any, least: int) -> bool:
    return type(value) is int and value >= least


_LIST = (_words, "a list of texts, such as [name]")
_TIME = (_seconds, "seconds, above 0")
_TEXT = (lambda value: isinstance(value, str), "text")
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "partitions": _LIST,
    "qos": _LIST,
    "accounts": _LIST,
    "features": _LIST,
    "submit_options": _LIST,
    "comment": (lambda value: isinstance(value, bool), "true or false"),
    "timeout_s": _TIME,
    "max_defer_s": _TIME,
    "requests_per_minute": (lambda value: _whole(value, LEAST_REQUESTS), f"a whole number from {LEAST_REQUESTS}"),
    "wide_nodes": (lambda value: value is None or _whole(value, 1), "a whole number from 1"),
    "rest_url": _TEXT,
    "rest_user": _TEXT,
    "rest_token_file": _TEXT,
    "rest_token_command": _TEXT,
    "rest_token_lifespan_s": (lambda value: _seconds(value) and value >= 1, "seconds, 1 or more"),
    "output_dir": (lambda value: value is None or isinstance(value, (str, PathLike)), "a folder"),
}


def check(**options: Any) -> None:
    """Raise ConfigError for the first invalid option."""
    for name, value in options.items():
        fits, allowed = _KINDS[name]
        if not fits(value):
            raise ConfigError("adapter slurm", name, f"found {value!r}", allowed)
