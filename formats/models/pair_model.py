"""The kind `pairs` of a model's file: networks that choose a waiting job and its node."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...simulate.errors import ConfigError
from ...simulate.learned.pair_heads import HEADS, PairChooser
from ...simulate.learned.pair_network import (
    JOB_COLUMNS,
    PAIR_COLUMNS,
    PAIR_FEATURES,
    Layer,
    PairNetwork,
    PairSight,
)
from ...simulate.queue_policies.policy_specs import parse
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
from .layers import checked_layers, plain_layers
from .verdicts import checked_verdicts, proves

if TYPE_CHECKING:
    from ...simulate.learned.guarded_pairs import GuardedPairs
    from ...simulate.learned.pair_queue import NetworkPairQueue

#: Nodes of a machine at most.
_MOST_NODES = 10_000
#: When a decision is due, by the names of environment A that a model can be trained under.
_DUE = ("any", "largest")


@dataclass(frozen=True, slots=True)
class PairModel:
    """Networks that choose pairs, and their card.

    Args:
        layers: of the network that scores pairs, see `PairNetwork`.
        sight: what it sees.
        objective: what it makes small: bounded slowdown, slowdown or wait.
        nodes: processors and speed of each node of the machine that it was trained on.
        trained: what it rests on: version, traces with their hashes and jobs, seeds with their values.
        evaluated: rows of verdicts.
        head: how scores come to a pair, a key of HEADS.
        job_layers: of the network that scores jobs; empty for heads that score no jobs.
        seen: of the jobs of the training, ascending quantiles of `limit`, seconds, and of `size`, cores; `usual`: the
            medians of PAIR_COLUMNS. Empty: the model has no net.
        max_wait: a job that has waited for longer goes first, seconds.
        baseline: SPEC of what decides in its place, an order of EASY backfilling.
    """

    kind: ClassVar = "pairs"
    FEATURE_SET: ClassVar = PAIR_FEATURES

    layers: tuple[Layer, ...]
    sight: PairSight
    objective: str
    nodes: tuple[tuple[int, float], ...]
    trained: Mapping[str, Any]
    evaluated: tuple[Mapping[str, Any], ...] = ()
    head: str = "squared"
    job_layers: tuple[Layer, ...] = ()
    seen: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    max_wait: float = math.inf
    baseline: str = "easy:order=sjf"

    @property
    def network(self) -> PairNetwork:
        """Return the network that scores pairs."""
        return PairNetwork(self.layers)

    @property
    def agent(self) -> str:
        """Return the name of its recipe."""
        return str(self.trained.get("agent", self.head))

    @property
    def chooser(self) -> PairChooser:
        """Return the networks with their head."""
        networks = [PairNetwork(layers) for layers in (self.job_layers, self.layers) if layers]
        return PairChooser(HEADS[self.head], [network.scores for network in networks])

    def policy(self, name: str) -> NetworkPairQueue:
        """Return it as a queue policy; `name`: for errors."""
        from ...simulate.learned.pair_queue import NetworkPairQueue  # replays of other policies need no interface

        return NetworkPairQueue(name, self.chooser, self.sight, self.nodes)

    @property
    def is_proven(self) -> bool:
        """Return whether a verdict says that it beats its baseline on jobs that it has not seen."""
        return proves(self.evaluated, self.objective)

    def guarded(self, text: str, digest: str) -> GuardedPairs:
        """Return the guarded choice of pairs.

        Args:
            text: its name, for errors.
            digest: names the model.

        Raises:
            ConfigError: the file does not say what the model was trained on.
        """
        from ...simulate.learned.guarded_pairs import GuardedPairs, SeenJobs

        if not self.seen:
            raise ConfigError(text, "seen", "missing: what the model was trained on", "`train squared` writes it")
        limit, size = self.seen["limit"], self.seen["size"]
        jobs = SeenJobs((limit[0], limit[-1]), (size[0], size[-1]), self.seen["usual"])
        order = str(getattr(parse(self.baseline), "order", ""))
        return GuardedPairs(lambda: self.policy(text), order, jobs, self.max_wait, digest, self.is_proven)

    def body(self) -> dict[str, Any]:
        """Return what its file holds beyond the kind and the hash."""
        sight = self.sight
        of_jobs = {"job_layers": plain_layers(self.job_layers), "job_examples": _examples(self.job_layers)}
        return {
            "head": self.head, "columns": list(PAIR_COLUMNS), "layers": plain_layers(self.layers),
            **(of_jobs if self.job_layers else {}), "activation": "relu",
            "sight": {
                "due": sight.due, "rows": sight.rows, "longest_s": sight.longest, "patience_s": sight.patience,
                "logarithmic": sight.logarithmic,
            },
            "objective": self.objective, "world": {"nodes": [list(node) for node in self.nodes]},
            "trained": self.trained, "evaluated": list(self.evaluated),
            "seen": {name: list(values) for name, values in self.seen.items()},
            "max_wait_s": self.max_wait if math.isfinite(self.max_wait) else None, "baseline": self.baseline,
            "examples": _examples(self.layers),
        }  # fmt: skip

    @classmethod
    def of(cls, body: Mapping[str, Any], source: str) -> PairModel:
        """Return the model of what a file holds; `source`: the file. Raises ConfigError."""
        head = body.get("head")
        if not isinstance(head, str) or head not in HEADS:
            raise ConfigError(source, "head", found(head), ", ".join(HEADS))
        layers, job_layers = (
            checked_layers(body.get("layers"), source, "layers", len(PAIR_COLUMNS)),
            tuple[Layer, ...](),
        )
        if HEADS[head].jobs_first:
            job_layers = checked_layers(body.get("job_layers"), source, "job_layers", JOB_COLUMNS)
        if body.get("activation") != "relu":
            raise ConfigError(source, "activation", found(body.get("activation")), "'relu'")
        check_examples(body.get("examples"), len(PAIR_COLUMNS), _scored(layers), source)
        if job_layers:
            check_examples(body.get("job_examples"), JOB_COLUMNS, _scored(job_layers), source)
        trained = mapping_of(body, source, "trained")
        check_traces(trained, source)
        verdicts = checked_verdicts(body.get("evaluated"), source)
        if body.get("objective") not in ("bsld", "sld", "wait"):
            raise ConfigError(source, "objective", found(body.get("objective")), "bsld, sld, wait")
        sight, nodes = _sight(mapping_of(body, source, "sight"), source), _nodes(body, source)
        max_wait = checked_max_wait(body, source)
        return cls(
            layers, sight, str(body["objective"]), nodes, trained, verdicts, head, job_layers,
            _quantiles(body.get("seen", {}), source), max_wait, checked_baseline(body.get("baseline"), source),
        )  # fmt: skip


def _examples(layers: tuple[Layer, ...]) -> list[list[Any]]:
    """Return rows with their scores; none without layers."""
    if not layers:
        return []
    rows = example_inputs(len(layers[0][0]))
    return [list(pair) for pair in zip(rows, map(_scored(layers), rows), strict=True)]


def _scored(layers: tuple[Layer, ...]) -> Callable[[Sequence[float]], float]:
    """Return the score of a row as a function."""
    network = PairNetwork(layers)
    return lambda row: float(network.scores(np.array([row]))[0])


def _quantiles(value: Any, source: str) -> dict[str, tuple[float, ...]]:
    """Return what the training saw; empty: the file does not say. Raises ConfigError."""
    if not isinstance(value, dict) or (value and set(value) != {"limit", "size", "usual"}):
        raise ConfigError(source, "seen", found(value), "limit, size and usual, or nothing")
    columns = {name: finite_numbers(numbers, source, f"seen.{name}") for name, numbers in value.items()}
    for name in ("limit", "size") if columns else ():
        if len(columns[name]) < 2 or list(columns[name]) != sorted(columns[name]):
            raise ConfigError(source, f"seen.{name}", "no ascending quantiles", ALLOWED)
    if columns and len(columns["usual"]) != len(PAIR_COLUMNS):
        raise ConfigError(source, "seen.usual", f"{len(columns['usual'])} numbers", f"{len(PAIR_COLUMNS)}")
    return columns


def _sight(value: Mapping[str, Any], source: str) -> PairSight:
    """Return what the model sees. Raises ConfigError."""
    names = ("rows", "longest_s", "patience_s")
    rows, longest, patience = (finite_number(value.get(name), source, f"sight.{name}") for name in names)
    if not 1 <= rows <= 4096 or rows != int(rows) or longest < 1.0 or patience <= 0.0:
        problem = f"{rows:g} rows, times of {longest:g} and {patience:g} s"
        raise ConfigError(source, "sight", problem, "1 to 4096 rows, longest_s of 1 or more, patience_s above 0")
    if value.get("due") not in _DUE or not isinstance(value.get("logarithmic"), bool):
        problem = f"due: {str(value.get('due'))[:40]}, logarithmic: {str(value.get('logarithmic'))[:40]}"
        raise ConfigError(source, "sight", problem, f"due: {', '.join(_DUE)}; logarithmic: true, false")
    return PairSight(str(value["due"]), int(rows), longest, patience, value["logarithmic"])


def _nodes(body: Mapping[str, Any], source: str) -> tuple[tuple[int, float], ...]:
    """Return processors and speed of each node of the training. Raises ConfigError."""
    value = mapping_of(body, source, "world").get("nodes")
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_NODES:
        raise ConfigError(source, "world.nodes", "no nodes, or too many", f"1 to {_MOST_NODES:,} nodes")
    nodes = list[tuple[int, float]]()
    for place, row in enumerate(value):
        processors, speed = finite_numbers(row, source, f"world.nodes[{place}]", 2)
        if processors < 1 or processors != int(processors) or speed <= 0.0:
            problem = f"{processors:g} processors, speed {speed:g}"
            raise ConfigError(source, f"world.nodes[{place}]", problem, "1 processor or more, a speed above 0")
        nodes.append((int(processors), speed))
    return tuple(nodes)
