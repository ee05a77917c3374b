"""Errors about the command line itself. They end with exit code 64."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from ..simulate.errors import ConfigError


def bad(option: str, problem: str) -> typer.BadParameter:
    """Return a usage error about `option`."""
    return typer.BadParameter(problem, param_hint=f"'{option}'")


def bad_value(option: str, error: ConfigError) -> typer.BadParameter:
    """Return a usage error about the value of `option`, with the problem that its parser found."""
    return bad(option, error.problem + (f" (allowed: {error.allowed})" if error.allowed else ""))


def not_among(option: str, found: str, what: str, allowed: Iterable[str]) -> typer.BadParameter:
    """Return a usage error about an option that takes one word of a list.

    Args:
        option: its name, such as `--engine`.
        found: the word given.
        what: what the word should name, such as "an engine".
        allowed: all words that the option takes.
    """
    words = list(allowed)
    return bad(option, f"{found!r} is not {what}{did_you_mean(found, words)} (allowed: {', '.join(words)})")


def did_you_mean(found: str, words: Iterable[str], cutoff: float = 0.6) -> str:
    """Return "; did you mean 'x'?" for the closest of `words`, or "" if none is close.

    Args:
        found: the word given.
        words: all that it could be.
        cutoff: least similarity, 0 to 1; see `difflib.get_close_matches`.
    """
    near = difflib.get_close_matches(found, list(words), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""


@contextmanager
def adapter_errors(config: Path | None) -> Iterator[None]:
    """Name the origin of the adapter in its errors: the configuration, or `--adapter` (a usage error)."""
    if config is not None:
        from ..daemon.config import naming_config

        with naming_config(config):
            yield
        return
    try:
        yield
    except ConfigError as error:
        raise (bad_value("--adapter", error) if error.source == "adapter" else error) from None
