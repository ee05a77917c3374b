"""The card of a network that scores pairs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import FAILED, main
from pilotfish.formats.model_file import Model, write_model
from pilotfish.formats.models.pair_model import PairModel
from pilotfish.formats.user_policy import queue_mapping
from pilotfish.simulate.errors import ConfigError
from tests.support.learned_models import SJF, model_of
from tests.support.pair_models import SEEN, pair_model


def test_the_card_says_what_the_model_is_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.pfmodel.json"
    write_model(path, pair_model(seen=SEEN, max_wait=86_400.0))
    assert main(["model", "show", str(path)]) == 0
    text = capsys.readouterr().out
    assert "; else easy:order=sjf decides" in text and "unproven" in text
    assert max(map(len, text.splitlines())) <= 100 and "trained on t: 100 jobs" in text and "Not for:" in text
    assert main(["model", "show", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "pairs" and document["world"]["nodes"][0] == [4, 1.0]
    assert main(["model", "check", str(path)]) == 0


@pytest.mark.parametrize(
    "model", [pair_model(), replace(model_of(SJF), seen={}), replace(model_of(SJF), processors=())]
)
def test_a_check_refuses_what_a_use_refuses(model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.pfmodel.json"
    write_model(path, model)
    assert main(["model", "check", str(path)]) == FAILED
    refusal = capsys.readouterr().err
    assert f"{path}: seen" in refusal or f"{path}: world.processors: found a list that is empty" in refusal
    with pytest.raises(ConfigError) as use:
        queue_mapping(f"learned:{path}", service=True)
    assert str(use.value) in refusal


@pytest.mark.parametrize(
    ("value", "baseline_value", "words"),
    [(2.0, 3.0, "better than"), (3.0, 3.0, "no better than"), (4.0, 3.0, "worse than")],
)
def test_the_card_compares_the_model_with_its_baseline(
    value: float, baseline_value: float, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.pfmodel.json"
    seeds = {"seed": 1, "seeds": [{"seed": 1, "value": math.log(value)}], "baseline_value": math.log(baseline_value)}
    network = {"seed": 1, "seeds": [{"seed": 1, "value": None}], "value": value, "baseline_value": baseline_value}
    for model in (replace(model_of(SJF), trained=seeds), pair_model(trained=network)):
        write_model(path, model)
        assert main(["model", "show", str(path)]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert f"the model is {words} its baseline, easy:order=sjf: {value:g} and 3" in text
        assert ("not judged kept" in text) == isinstance(model, PairModel)


def test_what_needs_an_order_of_the_queue_refuses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, trace = tmp_path / "m.pfmodel.json", tmp_path / "t.swf.gz"
    write_model(path, pair_model())
    assert main(["generate", "lublin", "--jobs", "20", "--procs", "16", "-o", str(trace)]) == 0
    capsys.readouterr()
    assert main(["simulate", str(trace), "--policy", f"easy:order={path}"]) == FAILED
    error = capsys.readouterr().err.replace("\n", " ")
    assert "no order of the queue" in " ".join(error.split()) and "Traceback" not in error
