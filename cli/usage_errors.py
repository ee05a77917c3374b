"""Errors about the command line itself. They end with exit code 64."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import typer

from ..simulate.errors import ConfigError, did_you_mean


def bad(option: str, problem: str) -> typer.BadParameter:
    """Return a usage error about `option`."""
    return typer.BadParameter(problem, param_hint=f"'{option}'")


def bad_value(option: str, error: ConfigError) -> typer.BadParameter:
    """Return a usage error about the value of `option`, with the problem that its parser found."""
    return bad(option, error.problem + (f" (allowed: {error.allowed})" if error.allowed else ""))


def not_among(option: str, found: str, what: str, allowed: Iterable[str]) -> typer.BadParameter:
    """Return a usage error about an option that takes one word of a list.

    Args:
        option: its name, such as `--policy`.
        found: the word given.
        what: what the word should name, such as "a policy".
        allowed: all words that the option takes.
    """
    words = list(allowed)
    return bad(option, f"{found!r} is not {what}{did_you_mean(found, words)} (allowed: {', '.join(words)})")


def given_options(context: typer.Context) -> set[str]:
    """Return the names of the parameters that stand on the command line."""
    return {key for key in context.params if str(context.get_parameter_source(key)).endswith("COMMANDLINE")}


def refuse(parameters: Iterable[str], given: Collection[str], why: str) -> None:
    """Refuse parameters that are given.

    Args:
        parameters: their names.
        given: names of the parameters that are given.
        why: they are not allowed.

    Raises:
        typer.BadParameter: for the first of them.
    """
    for name in parameters:
        if name in given:
            raise bad({"other": "B", "picture": "--plot"}.get(name) or f"--{name.replace('_', '-')}", why)


def check_positive(option: str, seconds: float | None) -> None:
    """Raise typer.BadParameter unless the value of `option` is above 0 and finite, or None."""
    if seconds is not None and not 0 < seconds < math.inf:
        raise bad(option, f"{seconds:g} (allowed: seconds, above 0)")


def check_period(begin: float | None, end: float | None, valid: Callable[[float], bool]) -> None:
    """Raise typer.BadParameter unless --from is below --until, where given, and both are valid seconds."""
    for name, value in (("--from", begin), ("--until", end)):
        if value is not None and not valid(value):
            raise bad(name, f"{value:g} (allowed: seconds)")
    if begin is not None and end is not None and begin >= end:
        raise bad("--until", f"{end:g} (allowed: more than --from, {begin:g})")


@contextmanager
def value_of(option: str, *, source: str | None = None) -> Iterator[None]:
    """Turn a ConfigError (only one from `source`, if given) into a usage error about the value of `option`."""
    try:
        yield
    except ConfigError as error:
        raise (bad_value(option, error) if source in (None, error.source) else error) from None


def adapter_errors(config: Path | None) -> AbstractContextManager[None]:
    """Name the origin of the adapter in its errors: the configuration, or `--adapter` (a usage error)."""
    if config is None:
        return value_of("--adapter", source="adapter")
    from ..daemon.config import naming_config

    return naming_config(config)
