"""The file of a learned order: what is written is read, and nothing that was cut, edited or made up is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.model_file import dump_model, parse_model, read_model, with_models, write_model
from pilotfish.formats.models.order_model import OrderModel
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.queue_policies.learned_order import FEATURES, LearnedOrder
from pilotfish.simulate.queue_policies.order_score import NETWORK
from pilotfish.simulate.queue_policies.policy_specs import parse

MODEL = OrderModel(
    tuple(0.5 * place - 2.0 for place in range(len(FEATURES))), 3600.0, "bsld", (256,),
    {"traces": [{"name": "t", "sha256": "0" * 64, "jobs": 100, "processors": 256}], "part": "all"}, {"limit": (1.0, 2.0)},
)  # fmt: skip


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.pfmodel.json"
    write_model(path, MODEL)
    assert read_model(path) == MODEL and dump_model(read_model(path)) == path.read_text()
    policy = with_models(parse("easy:order=a.pfmodel.json"), tmp_path)
    assert policy.order == LearnedOrder("a.pfmodel.json", MODEL.weights, MODEL.max_wait, (), MODEL.run_times)
    assert with_models(parse("easy:order=sjf")) == parse("easy:order=sjf")


NETWORK_WEIGHTS = tuple(0.01 * place - 0.3 for place in range(NETWORK))
OTHER_KINDS = {"tanh": replace(MODEL, weights=NETWORK_WEIGHTS), "fill": replace(MODEL, fill=MODEL.weights[::-1])}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_an_order_of_another_kind_is_read(kind: str, tmp_path: Path) -> None:
    path, model = tmp_path / "a.pfmodel.json", OTHER_KINDS[kind]
    write_model(path, model)
    assert read_model(path) == model and json.loads(path.read_text())["kind"] == model.kind == kind
    assert read_model(path).order("m") == LearnedOrder("m", model.weights, model.max_wait, model.fill, model.run_times)
    for key, change in (
        ("weights", {"weights": list(MODEL.weights[:-1])}), ("weights", {"weights": [1e7, *model.weights[1:]]}),
        ("examples", {"weights": [0.5] * len(model.weights), "fill": [0.5] * len(FEATURES)}),
        *([("fill", {"fill": None}), ("fill", {"fill": [1.0]})] if kind == "fill" else []),
    ):  # fmt: skip
        with pytest.raises(ConfigError) as raised:
            parse_model(signed(json.loads(dump_model(model)) | change), "m")
        assert raised.value.key.startswith(key)


def signed(body: dict[str, Any]) -> bytes:
    """Return the text of a body with a right hash, as a malicious writer would make it."""
    import hashlib

    body.pop("sha256", None)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return json.dumps(body | {"sha256": digest}).encode()


def edited(**changes: Any) -> Callable[[dict[str, Any]], bytes]:
    return lambda body: signed(body | changes)


def without(key: str) -> Callable[[dict[str, Any]], bytes]:
    return lambda body: signed({name: value for name, value in body.items() if name != key})


WEIGHTS = list(MODEL.weights)
BROKEN: list[tuple[Callable[[dict[str, Any]], bytes], str]] = [
    (edited(schema="pilotfish/model/v2"), "schema"),
    (edited(schema=None), "schema"),
    (edited(kind="network"), "kind"),
    (edited(kind=["linear"]), "kind"),
    (edited(kind="pairs"), "feature_set"),
    (edited(kind="pairs", feature_set="pairs/1"), "head"),
    (edited(feature_set="queue/1"), "feature_set"),
    (without("feature_set"), "feature_set"),
    (edited(run_times="actual"), "run_times"),
    (without("run_times"), "run_times"),
    (without("baseline"), "baseline"),
    (edited(baseline={"policy": "nowhere"}), "baseline"),
    (edited(baseline={"policy": "easy:order=a.pfmodel.json"}), "baseline"),
    (edited(baseline={"policy": "easy"}), "run_times"),
    (edited(weights=WEIGHTS[:-1]), "weights"),
    (edited(weights=[*WEIGHTS, 1.0]), "weights"),
    (edited(weights=["1"] * len(WEIGHTS)), "weights"),
    (edited(weights=[True, *WEIGHTS[1:]]), "weights"),
    (edited(weights=[10**400, *WEIGHTS[1:]]), "weights"),
    (edited(weights={"0": 1}), "weights"),
    (without("weights"), "weights"),
    (edited(max_wait_s=0), "max_wait_s"),
    (edited(max_wait_s=-5.0), "max_wait_s"),
    (edited(max_wait_s="2d"), "max_wait_s"),
    (edited(weights=[weight + 1e-3 for weight in WEIGHTS]), "examples"),
    (edited(examples=[]), "examples"),
    (edited(examples=[[1, 2, 3]]), "examples"),
    (edited(examples="x"), "examples"),
    (without("examples"), "examples"),
    (edited(world={"processors": ["many"]}), "world.processors[0]"),
    (edited(world={}), "world.processors"),
    (edited(trained={"seeds": [{"value": None}], "baseline_value": 1.0}), "trained.seeds[0].value"),
    (edited(trained={"seeds": [{"value": 1e30}], "baseline_value": 1.0}), "trained.seeds[0].value"),
    (edited(world=[1]), "world"),
    (without("trained"), "trained"),
    (edited(seen={"limit": [1, None]}), "seen.limit"),
    (edited(seen=[]), "seen"),
    (edited(evaluated={"a": 1}), "evaluated"),
    (lambda body: json.dumps(body | {"max_wait_s": 7.0}).encode(), "sha256"),
    (lambda body: json.dumps(body).encode()[:-40], ""),
    (lambda body: json.dumps(body).replace("3600.0", "NaN").encode(), ""),
    (lambda body: json.dumps(body).replace("3600.0", "Infinity").encode(), ""),
    (lambda body: json.dumps(body).replace("3600.0", "1e400").encode(), ""),
    (lambda body: json.dumps(body).replace("3600.0", "-36.0E+308").encode(), ""),
    (lambda body: b"[" * 100_000, ""),
    (lambda body: b"\xff\xfe\x00" * 50, ""),
    (lambda body: b"null", ""),
    (lambda body: b"x" * (1 << 21), ""),
]


@pytest.mark.parametrize("place", range(len(BROKEN)))
def test_a_broken_file_is_one_error_that_names_the_key(place: int, tmp_path: Path) -> None:
    break_it, key = BROKEN[place]
    path = tmp_path / "broken.pfmodel.json"
    path.write_bytes(break_it(json.loads(dump_model(MODEL))))
    with pytest.raises(ConfigError) as raised:
        read_model(path)
    assert raised.value.source == str(path) and raised.value.key.startswith(key)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 500


@given(st.data())
@settings(max_examples=200, deadline=None)
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
