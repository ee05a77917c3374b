"""The file of a network that scores pairs: what is written is read, and nothing that was cut, edited or made up is."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.model_file import dump_model, parse_model, read_model, read_order, write_model
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.learned.pair_heads import HEADS
from tests.formats.test_model_file import edited, without
from tests.support.pair_models import SEEN as SEEN_JOBS
from tests.support.pair_models import headed_model, pair_model

MODEL = pair_model(seed=3)
LAYERS: list[dict[str, Any]] = json.loads(dump_model(MODEL))["layers"]
JOB_LAYERS: list[dict[str, Any]] = json.loads(dump_model(headed_model("double", 3)))["job_layers"]
SEEN = {name: list(numbers) for name, numbers in SEEN_JOBS.items()}
SIGHT: dict[str, Any] = json.loads(dump_model(MODEL))["sight"]


@pytest.mark.parametrize("head", HEADS)
def test_what_is_written_is_read(head: str, tmp_path: Path) -> None:
    path, model = tmp_path / "a.pfmodel.json", headed_model(head, 3, seen=SEEN_JOBS, max_wait=9e4)
    write_model(path, model)
    assert read_model(path) == model and dump_model(read_model(path)) == path.read_text()
    with pytest.raises(ConfigError, match="no order of the queue"):
        read_order(path)


def layer(place: int, **changes: Any) -> Callable[[dict[str, Any]], bytes]:
    return edited(layers=[one | changes if number == place else one for number, one in enumerate(LAYERS)])


def number(value: Any) -> Callable[[dict[str, Any]], bytes]:
    """Put a value in place of one weight."""
    first, *others = LAYERS[1]["weights"]
    return layer(1, weights=[[value, *first[1:]], *others])


BROKEN: list[tuple[Callable[[dict[str, Any]], bytes], str]] = [
    (edited(schema="pilotfish/model/v2"), "schema"),
    (edited(kind="pairs-double"), "kind"),
    (edited(head="double"), "job_layers"),
    (edited(head="double", job_layers=LAYERS, job_examples=[]), "job_layers[0].weights"),
    (edited(head="double", job_layers=JOB_LAYERS, job_examples=[]), "examples"),
    (edited(head="double", job_layers=JOB_LAYERS, job_examples=[[[0.0] * 4, 1e9]]), "examples"),
    (edited(head="alone"), "head"),
    (edited(seen=5), "seen"),
    (edited(seen={"limit": [1.0, 2.0]}), "seen"),
    (edited(seen=SEEN | {"limit": [2.0, 1.0]}), "seen.limit"),
    (edited(seen=SEEN | {"size": ["1", 2.0]}), "seen.size"),
    (edited(seen=SEEN | {"usual": [0.5]}), "seen.usual"),
    (edited(max_wait_s=0.0), "max_wait_s"),
    (edited(baseline="conservative"), "baseline"),
    (without("baseline"), "baseline"),
    (edited(head=["squared"]), "head"),
    (without("head"), "head"),
    (edited(kind=None), "kind"),
    (edited(kind="linear"), "feature_set"),
    (edited(feature_set="pairs/0"), "feature_set"),
    (edited(activation="tanh"), "activation"),
    (without("activation"), "activation"),
    (edited(objective="luck"), "objective"),
    (edited(objective=["bsld"]), "objective"),
    (edited(layers=[]), "layers"),
    (edited(layers=LAYERS * 3), "layers"),
    (edited(layers="x"), "layers"),
    (edited(layers=LAYERS[1:]), "layers[0].weights"),
    (edited(layers=LAYERS[:-1]), "layers[2].biases"),
    (edited(layers=[*LAYERS[:1], *LAYERS[2:]]), "layers[1].weights"),
    (edited(layers=[1, *LAYERS[1:]]), "layers[0]"),
    (layer(0, biases=[]), "layers[0].biases"),
    (layer(0, biases=[0.0] * 257), "layers[0].biases"),
    (layer(0, weights={"0": 1}), "layers[0]"),
    (layer(0, weights=[[1.0] * 3] * 7), "layers[0].weights"),
    (layer(0, weights=[1.0] * 7), "layers[0].weights"),
    (number("1"), "layers[1].weights"),
    (number(True), "layers[1].weights"),
    (number(None), "layers[1].weights"),
    (number(1e7), "layers[1].weights"),
    (number(10**400), "layers[1].weights"),
    (layer(3, biases=[LAYERS[3]["biases"][0] + 0.5]), "examples"),
    (edited(examples=[]), "examples"),
    (edited(examples=[[[1.0] * 6, 0.0]]), "examples"),
    (edited(examples={"a": 1}), "examples"),
    (without("sight"), "sight"),
    (edited(sight=SIGHT | {"due": "shortest"}), "sight"),
    (edited(sight=SIGHT | {"due": ["any"]}), "sight"),
    (edited(sight=SIGHT | {"rows": 1e9}), "sight"),
    (edited(sight=SIGHT | {"rows": 1.5}), "sight"),
    (edited(sight=SIGHT | {"longest_s": 0}), "sight"),
    (edited(sight=SIGHT | {"patience_s": -1}), "sight"),
    (edited(sight=SIGHT | {"logarithmic": 1}), "sight"),
    (edited(sight={}), "sight"),
    (edited(world={"nodes": []}), "world.nodes"),
    (edited(world={"nodes": [[0, 1.0]]}), "world.nodes"),
    (edited(world={"nodes": [[4, 0.0]]}), "world.nodes"),
    (edited(world={"nodes": [[4]]}), "world.nodes"),
    (edited(world=7), "world"),
    (without("trained"), "trained"),
    (edited(trained={"traces": [{"name": 1}]}), "trained.traces"),
    (edited(trained={"seeds": [{"value": "1"}]}), "trained.seeds[0].value"),
    (edited(evaluated=[{"ratio": 1.0}]), "evaluated"),
    (without("evaluated"), "evaluated"),
    (lambda body: json.dumps(body | {"objective": "wait"}).encode(), "sha256"),
    (lambda body: json.dumps(body).encode()[:-40], ""),
    (lambda body: json.dumps(body).replace('"rows": 128', '"rows": NaN').encode(), ""),
    (lambda body: b"[" * 100_000, ""),
    (lambda body: b"x" * (1 << 21), ""),
    (lambda body: zlib.compress(b"0" * (1 << 24)), ""),
]


@pytest.mark.parametrize("place", range(len(BROKEN)))
def test_a_broken_file_is_one_error_that_names_the_key(place: int, tmp_path: Path) -> None:
    break_it, key = BROKEN[place]
    path = tmp_path / "broken.pfmodel.json"
    path.write_bytes(break_it(json.loads(dump_model(MODEL))))
    with pytest.raises(ConfigError) as raised:
        read_model(path)
    assert raised.value.source == str(path) and raised.value.key.startswith(key), raised.value
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 500


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_a_file_with_changed_bytes_is_refused_or_equal(data: st.DataObject) -> None:
    text = bytearray(dump_model(MODEL).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place] = data.draw(st.integers(0, 255))
    try:
        model = parse_model(bytes(text), "m")
    except ConfigError:
        return
    assert dump_model(model) == dump_model(MODEL)


def test_the_largest_weights_give_finite_scores() -> None:
    huge = ((999_999.0,) * 256,) * 7, (999_999.0,) * 256
    more = ((999_999.0,) * 256,) * 256, (999_999.0,) * 256
    last = ((999_999.0,),) * 256, (999_999.0,)
    network = pair_model(layers=(huge, *[more] * 6, last)).network
    assert np.isfinite(network.scores(np.ones((2, 7)))).all()
