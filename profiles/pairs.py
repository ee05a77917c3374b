"""From the scores of several programs (files of `profile corun --json`) to what each pair of them costs.

Rule: a program beside another one is taken to fare as beside a streamer that presses as much (bubble-up, Mars et al.,
MICRO 2011); scores of different machines are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..simulate.errors import ConfigError
from ..simulate.formats.reading import check_schema, read_document
from ..simulate.formats.shape import Convert, build, from_source, listed, mapping, name, number, text, whole
from .sensitivity import Level, Scores

#: Factors nearer to 1 than this are left out: any pair that is not given has factor 1.
LEAST = 0.005
_TIMES = number(0, 1e6, above=True)
_LEVEL: dict[str, Convert[Any]] = {
    "pressure": number(0, 1, above=True),
    "rate": number(),
    "factor": _TIMES,
    "least": _TIMES,
    "most": _TIMES,
    "slowed": _TIMES,
}
_SCORES: dict[str, Convert[Any]] = {
    "name": name,
    "levels": listed(lambda value: build(Level, _LEVEL, mapping(value), tuple(_LEVEL)), least=1),
    "pressure": lambda value: None if value is None else number(0, 1)(value),
    "rounds": whole(1, 10**9),
    "date": lambda value: text(value) if value else "",
    "cpu_model": lambda value: text(value) if value else "",
    "node_type": lambda value: name(value) if value else None,
}
_NEEDED = ("name", "levels", "pressure", "rounds", "date", "cpu_model")
#: What is written beside the scores for those who read them, and follows from them.
_TOLD = ("source", "co_run_inflation")


def read_scores(path: str | Path) -> Scores:
    """Return the scores in a file that `profile corun --json` wrote. Raises ConfigError."""
    return from_source(str(path), parse_scores, check_schema(read_document(path), "corun", str(path)))


def parse_scores(data: dict[str, Any]) -> Scores:
    """Return the scores that `Scores.to_dict` wrote. Raises ConfigError."""
    told = {key: part for key, part in mapping(data).items() if key not in _TOLD}
    found: Scores = build(Scores, _SCORES, told, _NEEDED)
    rising = [level.pressure for level in found.levels]
    if rising != sorted(set(rising)):
        raise ConfigError("", "levels", "pressures do not rise", "each pressure once, by rising pressure")
    return found


def factor(levels: Sequence[Level], pressure: float | None) -> float:
    """Return times of core time beside who presses so much, on straight lines between the levels, >= 1.

    Args:
        levels: of the program, by rising pressure.
        pressure: of its neighbour, [0, 1]; None = more than was tried: the last level, which may be too low.
    """
    wanted = levels[-1].pressure if pressure is None else pressure
    before, least = 0.0, 1.0
    for level in levels:
        times = max(1.0, level.factor)
        if wanted <= level.pressure:
            return max(1.0, least + (times - least) * (wanted - before) / (level.pressure - before))
        before, least = level.pressure, times
    return least


def co_run_inflation(scores: Iterable[Scores]) -> dict[str, dict[str, float]]:
    """Return {program: {neighbour: factor}} of all pairs, each program beside itself, too.

    Raises:
        ConfigError: a program is scored twice, or the scores are from different machines.
    """
    known = list(scores)
    for i, one in enumerate(known):
        if one.cpu_model != known[0].cpu_model:
            problem = f"{one.name} was scored on {one.cpu_model!r}, {known[0].name} on {known[0].cpu_model!r}"
            raise ConfigError("scores", "cpu_model", problem, "scores of one kind of machine")
        if one.name in (other.name for other in known[:i]):
            raise ConfigError("scores", "name", f"{one.name!r} twice", "each program once")
    pairs = {one.name: {other.name: factor(one.levels, other.pressure) for other in known} for one in known}
    worth = {
        job: {other: round(times, 3) for other, times in beside.items() if times > 1 + LEAST}
        for job, beside in pairs.items()
    }
    return {job: beside for job, beside in worth.items() if beside}
