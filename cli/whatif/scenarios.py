"""Scenarios of `whatif`: named groups of changes, from the command line or from a file.

Rule: a scenario is read into the same ChangeOptions as the options of the command. An error names the scenario, and the
file and key where there is one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from ...formats.text import clean
from ...simulate.errors import ConfigError, did_you_mean
from ..usage_errors import bad
from .change_options import CHANGES, ChangeOptions

#: Names of the site without changes, and of the changes that stand on the command line by themselves.
UNCHANGED, CHANGED = "as it is", "changed"
#: Longest name of a scenario, so that it fits into a table.
LONGEST_NAME = 24


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named group of changes; `file`: where it stands, "" for the command line."""

    name: str
    change: ChangeOptions
    file: str = ""

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Name the scenario in usage errors about its changes. Raises ConfigError, typer.BadParameter."""
        with _errors_of(self.name, self.file):
            yield


@contextmanager
def _errors_of(name: str, file: str) -> Iterator[None]:
    try:
        yield
    except typer.BadParameter as error:
        option = str(error.param_hint).strip("'")
        if file:
            raise ConfigError(file, f"scenarios.{name}.{_key(option)}", error.message) from None
        raise error if name == CHANGED else bad("--scenario", f"{name}: {option}: {error.message}") from None


def scenarios_of(change: ChangeOptions, texts: Sequence[str], file: Path | None) -> tuple[Scenario, ...]:
    """Return all scenarios of a command, in the order: its own changes, --scenario, the file.

    Args:
        change: its own changes.
        texts: values of --scenario.
        file: of --scenarios.

    Raises:
        typer.BadParameter: a text is wrong, or two scenarios have one name.
        ConfigError: the file is wrong.
    """
    scenarios = [Scenario(CHANGED, change)] if change.described() else []
    scenarios += [_of_text(text) for text in texts]
    scenarios += _of_file(file) if file else []
    names = {UNCHANGED}
    for one in scenarios:
        if one.name in names or len(clean(one.name)) > LONGEST_NAME:
            problem = f"{one.name!r} (allowed: another name, at most {LONGEST_NAME} characters)"
            if one.file:
                raise ConfigError(one.file, "scenarios", problem)
            raise bad("--scenario", problem)
        names.add(one.name)
    return tuple(scenarios)


def _of_text(text: str) -> Scenario:
    """Return the scenario of `NAME: --set KEY=VALUE --scale-load 1.2`."""
    name, colon, options = text.partition(":")
    name = name.strip()
    example = "NAME: OPTIONS, such as 'wide: --set SchedulerParameters=bf_window=4320'"
    try:
        words = shlex.split(options)
    except ValueError:
        words = []
    if not name or not colon or not words:
        raise bad("--scenario", f"{text!r} (allowed: {example})")
    with _errors_of(name, ""):
        return Scenario(name, ChangeOptions.of(_texts(words)))


def _texts(words: Iterable[str]) -> Mapping[str, list[str]]:
    """Return option -> values of a list of words."""
    texts, rest = dict[str, list[str]](), iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if option not in CHANGES:
            raise bad(option, f"not a change{did_you_mean(option, CHANGES)} (allowed: {', '.join(CHANGES)})")
        if not equals and (value := next(rest, "")) == "":
            raise bad(option, "has no value")
        texts.setdefault(option, []).append(value)
    return texts


def _of_file(path: Path) -> Iterator[Scenario]:
    from ...formats.site.scenario_file import read_scenarios

    keys = {_key(option): option for option in CHANGES}
    for name, texts in read_scenarios(path, keys).items():
        with _errors_of(name, str(path)):
            yield Scenario(name, ChangeOptions.of({keys[key]: values for key, values in texts.items()}), str(path))


def _key(option: str) -> str:
    """Return the key of an option in a file: `set_qos`."""
    return option.removeprefix("--").replace("-", "_")
