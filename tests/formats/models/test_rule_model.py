"""The file of a network that chooses rules: what is written is read, and nothing that was cut, edited or made up is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilotfish.formats.model_file import dump_model, parse_model, read_model, read_order, write_model
from pilotfish.simulate.errors import ConfigError
from tests.formats.test_model_file import edited, without
from tests.support.rule_models import rule_model

MODEL = rule_model()
BODY: dict[str, Any] = json.loads(dump_model(MODEL))


@pytest.mark.parametrize("observation", ["minimal", "small", "normal"])
def test_what_is_written_is_read(observation: str, tmp_path: Path) -> None:
    path, model = tmp_path / "a.pfmodel.json", rule_model(observation, 3, one=True)
    write_model(path, model)
    assert read_model(path) == model and dump_model(read_model(path)) == path.read_text()
    with pytest.raises(ConfigError, match="no order of the queue"):
        read_order(path)


def layer(place: int, **changes: Any) -> Callable[[dict[str, Any]], bytes]:
    return edited(layers=[one | changes if number == place else one for number, one in enumerate(BODY["layers"])])


BROKEN: list[tuple[Callable[[dict[str, Any]], bytes], str]] = [
    (edited(feature_set="rule-choice/2"), "feature_set"),
    (edited(objective="speed"), "objective"),
    (edited(objective=["energy"]), "objective"),
    (edited(observation="normal"), "layers[0].weights"),
    (edited(observation=None), "observation"),
    (edited(actions=[]), "actions"),
    (edited(actions=["void"] * 65), "actions"),
    (edited(actions=["void"]), "actions"),
    (edited(actions=[["first", "high_core"]] * 3), "actions"),
    (edited(actions=[["first", {}]]), "actions[0]"),
    (edited(actions=[["first", "best"]]), "actions"),
    (edited(actions=[["first", "high_core"], "void"]), "layers[4].biases"),
    (edited(one="yes"), "one"),
    (without("always"), "always"),
    (edited(sensitivity=0.0), "sensitivity"),
    (edited(sensitivity="1"), "sensitivity"),
    (edited(activation="relu"), "activation"),
    (edited(world={"nodes": 2, "cores": []}), "world.cores"),
    (edited(world={"nodes": 0, "cores": [4]}), "world.nodes"),
    (edited(world={"nodes": 1, "cores": [100_001]}), "world.cores"),
    (edited(world=[1]), "world"),
    (layer(0, biases=[0.0] * 300), "layers[0].biases"),
    (layer(1, weights=[]), "layers[1].weights"),
    (layer(1, biases=[1e9] * 5), "layers[1].biases[0]"),
    (layer(1, biases=[1.0] * 5), "examples[0]"),
    (edited(layers=[BODY["layers"][0]] * 9), "layers"),
    (edited(examples=[]), "examples"),
    (edited(examples=[[[0.0] * 21]]), "examples[0]"),
    (edited(examples=[[[0.0] * 21, [1.0, 2.0]]]), "examples[0]"),
    (edited(trained={}), "trained.episode"),
    (edited(baseline="easy"), "baseline"),
    (edited(baseline="nodes"), "baseline"),
    (edited(evaluated={}), "evaluated"),
]


@pytest.mark.parametrize(("change", "key"), BROKEN)
def test_a_broken_file_is_one_error(change: Callable[[dict[str, Any]], bytes], key: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_model(change(dict(BODY)), "a.pfmodel.json")
    assert (error.value.source, error.value.key) == ("a.pfmodel.json", key)
