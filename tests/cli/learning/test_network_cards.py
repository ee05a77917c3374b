"""The card of a network that scores pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import FAILED, main
from pilotfish.formats.model_file import write_model
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


def test_what_needs_an_order_of_the_queue_refuses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, trace = tmp_path / "m.pfmodel.json", tmp_path / "t.swf.gz"
    write_model(path, pair_model())
    assert main(["generate", "lublin", "--jobs", "20", "--procs", "16", "-o", str(trace)]) == 0
    capsys.readouterr()
    assert main(["simulate", str(trace), "--policy", f"easy:order={path}"]) == FAILED
    error = capsys.readouterr().err.replace("\n", " ")
    assert "no order of the queue" in " ".join(error.split()) and "Traceback" not in error
