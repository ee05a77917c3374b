"""Scores of a program from runs next to a memory streamer, and the factors of program pairs: pure arithmetic.

Rule: scores are relative to this streamer on this machine, and carry the range over the runs. They use core time
instead of run time, so that waiting for a core does not count as sensitivity. A program next to another is assumed to
slow down as next to a streamer of the same pressure; scores of different machines are not compared. In a cluster they
hold for the node type that they name, or else, like profiles, for the first one, and only fill gaps: a pair given by
the cluster file is unchanged, and if the bandwidths of both programs are known and the node's model uses them, the
model alone applies, so that contention is not counted twice.
Source: bubble-up (Mars et al., MICRO 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from ...formats.documents.document_errors import from_source
from ...formats.documents.files import check_schema, read_document
from ...formats.documents.quantities import Convert, number, whole
from ...formats.documents.schema import build, listed, mapping, name, text
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster, Contention, CoRun, NodeType

#: The streamer's name among profiles.
STREAMER = "streamer"
#: Factors closer to 1 than this are omitted: a missing pair has factor 1.
LEAST = 0.005
#: Number of the latest scored programs that count: pairs grow with the square.
MOST = 100
_TIMES = number(0, 1e6, above=True)
_LEVEL: dict[str, Convert[Any]] = {
    "pressure": number(0, 1, above=True),
    "rate": number(),
    "factor": _TIMES,
    "least": _TIMES,
    "most": _TIMES,
    "slowed": _TIMES,
}
_NEEDED = ("name", "levels", "pressure", "rounds", "date", "cpu_model")
#: Derived keys of the written scores.
_DERIVED = ("source", "co_run_inflation")


@dataclass(frozen=True, slots=True)
class RunNextToStreamer:
    """A run next to the streamer and the one alone before it: CPU seconds, and the streamer's bytes/s of core time."""

    pressure: float
    alone_s: float
    beside_s: float
    rate_alone: float
    rate_beside: float


@dataclass(frozen=True, slots=True)
class PressureEffect:
    """The effect of one pressure: the share of time that the streamer copied, (0, 1], at `rate` bytes/s alone.

    Factors are of core time, relative to alone: the program's median over the rounds with its range, and the median of
    the streamer (`slowed`).
    """

    pressure: float
    rate: float
    factor: float
    least: float
    most: float
    slowed: float


@dataclass(frozen=True, slots=True)
class Scores:
    """A program's relative scores.

    Args:
        name: of the program.
        levels: by rising pressure; the last one is the streamer's full pressure.
        pressure: that of a streamer which slows a second one as the program does; None = higher than any.
        rounds: runs at each pressure.
        date: ISO 8601; cpu_model: processor; node_type: the cluster file's name for such nodes, None = not given.
    """

    name: str
    levels: tuple[PressureEffect, ...]
    pressure: float | None
    rounds: int
    date: str = ""
    cpu_model: str = ""
    node_type: str | None = None

    @property
    def sensitivity(self) -> float:
        """Core time factor next to the streamer at full pressure."""
        return self.levels[-1].factor

    @property
    def co_run_inflation(self) -> dict[str, dict[str, float]]:
        """The pairs of program and streamer, as a node type has them: at least 1."""
        last = self.levels[-1]
        factor, slowed = (round(max(1.0, value), 3) for value in (last.factor, last.slowed))
        return {self.name: {STREAMER: factor}, STREAMER: {self.name: slowed}}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"source": "relative score", "co_run_inflation": self.co_run_inflation}


def levels(runs: Sequence[RunNextToStreamer]) -> tuple[PressureEffect, ...]:
    """Return the effect of each pressure, by rising pressure; needs at least one run."""
    effects = []
    for pressure in sorted({run.pressure for run in runs}):
        same = [run for run in runs if run.pressure == pressure]
        factors = [run.beside_s / run.alone_s for run in same]
        rate = pressure * median(run.rate_alone for run in same)
        slowed = median(run.rate_alone / run.rate_beside for run in same)
        effects.append(PressureEffect(pressure, rate, median(factors), min(factors), max(factors), slowed))
    return tuple(effects)


def pressure_of(slowed: float, calibration: Sequence[tuple[float, float]]) -> float | None:
    """Return the pressure that slows a streamer as much, by linear interpolation of the calibration.

    Args:
        slowed: core time factor of a streamer next to the program.
        calibration: (pressure, core time factor next to a streamer of that pressure), by rising pressure.

    Returns:
        From 0 if nothing is slowed; None above the last point.
    """
    before, least = 0.0, 1.0
    for pressure, times in calibration:
        if slowed <= least:
            return before
        if slowed <= times:
            return before + (pressure - before) * (slowed - least) / (times - least)
        before, least = pressure, max(least, times)
    return before if slowed <= least else None


_SCORES: dict[str, Convert[Any]] = {
    "name": name,
    "levels": listed(lambda value: build(PressureEffect, _LEVEL, mapping(value), tuple(_LEVEL)), least=1),
    "pressure": lambda value: None if value is None else number(0, 1)(value),
    "rounds": whole(1, 10**9),
    "date": lambda value: text(value) if value else "",
    "cpu_model": lambda value: text(value) if value else "",
    "node_type": lambda value: name(value) if value else None,
}


def read_scores(path: str | Path) -> Scores:
    """Return the scores in a file that `profile corun --json` wrote. Raises ConfigError."""
    return from_source(str(path), parse_scores, check_schema(read_document(path), "corun", str(path)))


def parse_scores(data: dict[str, Any]) -> Scores:
    """Return the scores that `Scores.to_dict` wrote. Raises ConfigError."""
    values = {key: part for key, part in mapping(data).items() if key not in _DERIVED}
    scores: Scores = build(Scores, _SCORES, values, _NEEDED)
    rising = [level.pressure for level in scores.levels]
    if rising != sorted(set(rising)):
        raise ConfigError("", "levels", "pressures do not rise", "each pressure once, by rising pressure")
    return scores


def factor(levels: Sequence[PressureEffect], pressure: float | None) -> float:
    """Return the core time factor next to such pressure, by linear interpolation of the levels, >= 1.

    Args:
        levels: of the program, by rising pressure.
        pressure: of its neighbour, [0, 1]; None = above the last level, whose factor is then a lower bound.
    """
    import numpy as np

    target = levels[-1].pressure if pressure is None else pressure
    times = [max(1.0, level.factor) for level in levels]
    return float(np.interp(target, [0.0, *(level.pressure for level in levels)], [1.0, *times]))


def co_run_inflation(scores: Iterable[Scores]) -> dict[str, dict[str, float]]:
    """Return {program: {neighbour: factor}} of all pairs, including each program next to itself.

    Raises ConfigError: a program is scored twice, or the scores are from different machines.
    """
    by_name = dict[str, Scores]()
    for one in scores:
        first = next(iter(by_name.values()), one)
        if one.cpu_model != first.cpu_model:
            problem = f"{one.name} was scored on {one.cpu_model!r}, {first.name} on {first.cpu_model!r}"
            raise ConfigError("scores", "cpu_model", problem, "scores of one kind of machine")
        if one.name in by_name:
            raise ConfigError("scores", "name", f"{one.name!r} twice", "each program once")
        by_name[one.name] = one
    factors = dict[str, dict[str, float]]()
    for one, other in product(by_name.values(), repeat=2):
        if (times := factor(one.levels, other.pressure)) > 1 + LEAST:
            factors.setdefault(one.name, {})[other.name] = round(times, 3)
    return factors


def with_scores(cluster: Cluster, scores: Iterable[Scores], counted: Callable[[str], bool]) -> Cluster:
    """Return the cluster with the pairs that scores add, or itself if they add none.

    Args:
        cluster: whose node types are extended.
        scores: oldest first.
        counted: whether the bandwidth of a program (by its profile's name) is known.
    """
    latest = list(scores)[-MOST:]
    first = cluster.types[0].name
    kinds = {kind: _with(kind, [one for one in latest if (one.node_type or first) == kind.name], counted)
             for kind in cluster.types}  # fmt: skip
    if all(kind is kinds[kind] for kind in kinds):
        return cluster
    return replace(cluster, nodes=tuple(replace(node, type=kinds[node.type]) for node in cluster.nodes))


def added(before: Cluster, after: Cluster) -> int:
    """Return how many pairs `with_scores` added, over all node types."""
    old, new = (sum(len(kind.co_run_inflation) for kind in cluster.types) for cluster in (before, after))
    return new - old


def _with(kind: NodeType, scores: Sequence[Scores], counted: Callable[[str], bool]) -> NodeType:
    """Return the node type with the pairs of each processor's scores, the latest if several have one."""
    pairs: dict[tuple[str, str], CoRun] = {}
    for model in dict.fromkeys(one.cpu_model for one in scores):
        for job, factors in co_run_inflation(one for one in scores if one.cpu_model == model).items():
            pairs |= {(job, other): CoRun(job, other, times) for other, times in factors.items()}
    covered_pairs = {(pair.job, pair.neighbour) for pair in kind.co_run_inflation}
    if kind.contention is not Contention.NONE:
        covered_pairs |= {key for key in pairs if all(map(counted, key))}
    more = [pair for key, pair in pairs.items() if key not in covered_pairs]
    return replace(kind, co_run_inflation=(*kind.co_run_inflation, *more)) if more else kind
