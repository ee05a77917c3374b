"""The kind `rule-choice` of a model's file: a network that chooses a pair of rules at each decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from ...simulate.errors import ConfigError
from ...simulate.kernels.mapping import choice_tables as tables
from ...simulate.learned.pair_network import Layer
from ...simulate.learned.rule_chooser import RuleChooser, RuleNetwork
from ...simulate.queue_policies.policy_specs import Pairs, parse
from ...simulate.world.rule_options import VOID, RuleOptions
from ..documents.document_errors import found
from .fields import ALLOWED, check_traces, example_inputs, finite_number, finite_numbers, mapping_of
from .layers import checked_layers, plain_layers
from .verdicts import checked_verdicts

#: Version of what the numbers of an observation mean; another meaning, order or constant is another version.
RULE_FEATURES = "rule-choice/1"
#: Examples in a file, and by how much a score computed again may differ, relative.
_EXAMPLES, _CLOSE = 8, 1e-9
_MOST_ACTIONS, _MOST_CORES = 64, 100_000


@dataclass(frozen=True, slots=True)
class RuleModel:
    """A network that chooses pairs of rules, and its card.

    Args:
        layers: of the network, see `RuleNetwork`.
        options: of its decisions: objective, observation, actions, and when it decides.
        cores: of each processor of the machine that it was trained on.
        nodes: how many nodes that machine has.
        trained: what it rests on: version, agent, traces with their hashes and jobs, seeds with their values.
        evaluated: rows of verdicts.
        baseline: SPEC of the pair that was best in the episodes that judged the training.
    """

    kind: ClassVar = "rule-choice"
    FEATURE_SET: ClassVar = RULE_FEATURES

    layers: tuple[Layer, ...]
    options: RuleOptions
    cores: tuple[int, ...]
    nodes: int
    trained: Mapping[str, Any]
    evaluated: tuple[Mapping[str, Any], ...] = ()
    baseline: str = "pairs"

    @property
    def objective(self) -> str:
        """Return what it makes small."""
        return self.options.objective

    def policy(self, name: str) -> RuleChooser:
        """Return it as a policy; `name`: its SPEC, for errors."""
        sees_machine = self.options.observation != "minimal"
        return RuleChooser(name, self.layers, self.options, self.cores if sees_machine else ())

    def guarded(self, text: str, digest: str) -> NoReturn:
        """Raise ConfigError: no plan and no service has its world; `text`: its file, `digest`: names the model."""
        problem = "it chooses rules for one-core tasks that contend for memory, which only replays know"
        raise ConfigError(text, "kind", f"{self.kind}: {problem}", "pilotfish simulate and evaluate with it")

    def body(self) -> dict[str, Any]:
        """Return what its file holds beyond the kind and the hash."""
        options = self.options
        return {
            "layers": plain_layers(self.layers), "activation": "leaky-relu", "objective": options.objective,
            "observation": options.observation,
            "actions": [action if isinstance(action, str) else list(action) for action in options.actions],
            "one": options.one, "always": options.always, "sensitivity": options.sensitivity,
            "world": {"nodes": self.nodes, "cores": list(self.cores)},
            "trained": self.trained, "evaluated": list(self.evaluated), "baseline": self.baseline,
            "examples": _examples(self.layers),
        }  # fmt: skip

    @classmethod
    def of(cls, body: Mapping[str, Any], source: str) -> RuleModel:
        """Return the model of what a file holds; `source`: the file. Raises ConfigError."""
        options = _options(body, source)
        world = mapping_of(body, source, "world")
        cores, nodes = (
            _whole(world.get("cores"), source, "world.cores"),
            _count(world.get("nodes"), source, "world.nodes"),
        )
        if body.get("activation") != "leaky-relu":
            raise ConfigError(source, "activation", found(body.get("activation")), "'leaky-relu'")
        inputs = inputs_of(options.observation, nodes, cores)
        layers = checked_layers(body.get("layers"), source, "layers", inputs, len(options.actions))
        _check_examples(body.get("examples"), layers, source)
        trained = mapping_of(body, source, "trained")
        check_traces(trained, source)
        _count(trained.get("episode"), source, "trained.episode")
        verdicts = checked_verdicts(body.get("evaluated"), source)
        return cls(layers, options, cores, nodes, trained, verdicts, _baseline(body.get("baseline"), source))


def inputs_of(observation: str, nodes: int, cores: tuple[int, ...]) -> int:
    """Return how many numbers are seen.

    Args:
        observation: `minimal`, `small` or `normal`.
        nodes: number of nodes.
        cores: of each processor.
    """
    queue, machine = tables.REQUESTS * tables.POINTS + 1, nodes + len(cores)
    of_cores = tables.CORE_COLUMNS * sum(cores)
    return queue + {"minimal": 0, "small": machine, "normal": machine + of_cores}[observation]


def _options(body: Mapping[str, Any], source: str) -> RuleOptions:
    """Return the options of the decisions. Raises ConfigError."""
    actions = body.get("actions")
    if not isinstance(actions, list) or not 1 <= len(actions) <= _MOST_ACTIONS:
        raise ConfigError(source, "actions", "none, or too many", f"1 to {_MOST_ACTIONS} actions")
    for place, action in enumerate(actions):
        is_pair = isinstance(action, list) and len(action) == 2 and all(isinstance(rule, str) for rule in action)
        if action != VOID and not is_pair:
            raise ConfigError(source, f"actions[{place}]", found(action), f"two names of rules, or {VOID!r}")
    for key in ("one", "always"):
        if not isinstance(body.get(key), bool):
            raise ConfigError(source, key, found(body.get(key)), "true, false")
    for key in ("objective", "observation"):
        if not isinstance(body.get(key), str):
            raise ConfigError(source, key, found(body.get(key)), "a name")
    sensitivity = finite_number(body.get("sensitivity"), source, "sensitivity")
    chosen = tuple(action if isinstance(action, str) else (action[0], action[1]) for action in actions)
    try:
        return RuleOptions(
            body["objective"], body["observation"], chosen, body["one"], body["always"], sensitivity
        )  # fmt: skip
    except ConfigError as error:
        raise ConfigError(source, error.key, error.problem[:200], error.allowed) from None


def _whole(value: Any, source: str, key: str) -> tuple[int, ...]:
    """Return whole numbers of 1 or more. Raises ConfigError."""
    numbers = finite_numbers(value, source, key)
    if not numbers or min(numbers) < 1 or any(one != int(one) for one in numbers) or sum(numbers) > _MOST_CORES:
        raise ConfigError(source, key, found(value), f"whole numbers from 1, of at most {_MOST_CORES:,} in all")
    return tuple(map(int, numbers))


def _count(value: Any, source: str, key: str) -> int:
    """Return a whole number of 1 or more. Raises ConfigError."""
    number = finite_number(value, source, key)
    if number < 1 or number != int(number):
        raise ConfigError(source, key, found(value), "a whole number from 1")
    return int(number)


def _baseline(text: Any, source: str) -> str:
    """Return the SPEC of a pair of rules. Raises ConfigError."""
    if not isinstance(text, str) or not text.startswith("pairs") or type(parse(text)) is not Pairs:
        raise ConfigError(source, "baseline", found(text), "a policy such as pairs:job=first,resource=low_power")
    return text


def _examples(layers: tuple[Layer, ...]) -> list[list[list[float]]]:
    """Return inputs with the scores of all actions."""
    network, rows = RuleNetwork(layers), example_inputs(len(layers[0][0]))[:_EXAMPLES]
    return [[row, network.scores(np.array(row)).tolist()] for row in rows]


def _check_examples(examples: Any, layers: tuple[Layer, ...], source: str) -> None:
    """Raise ConfigError if the scores of an example are not what the network gives."""
    if not isinstance(examples, list) or not examples:
        raise ConfigError(source, "examples", "none", "inputs with their scores")
    network, inputs, outputs = RuleNetwork(layers), len(layers[0][0]), len(layers[-1][1])
    for place, example in enumerate(examples):
        key = f"examples[{place}]"
        if not isinstance(example, list) or len(example) != 2:
            raise ConfigError(source, key, found(example), "an input and its scores")
        row, scores = (finite_numbers(example[i], source, key, (inputs, outputs)[i]) for i in range(2))
        if not np.allclose(network.scores(np.array(row)), scores, rtol=_CLOSE, atol=_CLOSE):
            raise ConfigError(source, key, "the weights give other scores than the file says", ALLOWED)
