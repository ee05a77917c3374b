"""`evaluate` with models that choose pairs: better is proven, worse is said, and what is wrong is one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pilotfish.cli.__main__ import FAILED, USAGE, main
from pilotfish.cli.learning.pair_tasks import PairInput
from pilotfish.daemon.config import load_config, load_policy_of
from pilotfish.formats.model_file import read_model, write_model
from pilotfish.simulate.errors import ConfigError
from tests.cli.learning.test_pair_policy import LAB
from tests.daemon.planning.test_learned_pairs import LONGEST, SHORTEST
from tests.support.learned_models import SJF, model_file
from tests.support.pair_models import SEEN, pair_model

#: The nodes of LAB.
NODES = ((4, 1e9), (4, 2e9), (8, 1e9), (8, 2e9))


def written_trace(path: Path, jobs: int) -> Path:
    """Write jobs that make a queue: one each 20 s, of 10 to 2,000 s and 1 to 8 cores."""
    draw = np.random.default_rng(5)
    rows = zip(draw.integers(10, 2000, jobs), draw.integers(1, 9, jobs), strict=True)
    lines = [
        f"{place + 1} {20 * place} -1 {run} {size} -1 -1 {size} {run} -1 1 {place % 5 + 1} -1 -1 -1 -1 -1 -1"
        for place, (run, size) in enumerate(rows)
    ]
    path.write_text("; MaxProcs: 24\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_trace(tmp_path_factory.mktemp("traces") / "year.swf", 100)


def written(folder: Path, name: str = "m", **changes: Any) -> Path:
    """Write a model that was trained on LAB, with the first job first as its baseline."""
    fields = {"layers": SHORTEST, "seen": SEEN, "nodes": NODES, "baseline": "easy", "max_wait": 1e7} | changes
    path = folder / f"{name}.pfmodel.json"
    write_model(path, pair_model(**fields))
    path.chmod(0o600)
    return path


def judged(path: Path, trace: Path, *words: str) -> int:
    return main(["evaluate", str(path), str(trace), "--workers", "1", *words])


@pytest.mark.long
def test_a_model_that_beats_its_baseline_is_proven_and_may_act(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, config, lab = written(tmp_path), tmp_path / "pilotfish.yaml", tmp_path / "lab.yaml"
    lab.write_text(yaml.safe_dump(LAB))
    config.write_text("schema: pilotfish/daemon/v1\ncluster: lab.yaml\npolicy: learned:m.pfmodel.json\n")
    with pytest.raises(ConfigError, match="no verdict"):
        load_policy_of(load_config(config), config, acts=True)
    assert judged(model, trace, "--copies", "20", "--save") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and any("beats it" in line for line in lines)
    assert any("best fit node" in line for line in lines) and any("easy:order=f1" in line for line in lines)
    assert read_model(model).is_proven
    load_policy_of(load_config(config), config, acts=True)
    assert main(["model", "show", str(model)]) == 0
    shown = capsys.readouterr().out
    assert "beats easy:order=fcfs" in shown and "20 copies" in shown and "\nproven\n" in shown


def test_a_model_that_is_worse_is_said_to_be(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = written(tmp_path, layers=LONGEST, baseline="easy:order=sjf")
    assert judged(model, trace, "--copies", "2", "--save", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    ways = ["chosen in training", "best order of EASY in hindsight", "best rule in hindsight"]
    assert [(row["number"], row["chosen"]) for row in rows] == [
        (number, way) for number in ("bsld", "wait") for way in ways
    ]
    assert rows[0]["against"]["rival"] == "easy:order=sjf" and rows[0]["against"]["low"] > 1.0
    assert not any(row["beats"] for row in rows) and not read_model(model).is_proven
    assert judged(model, trace, "--copies", "2") == 0
    assert "is worse" in capsys.readouterr().out


def test_the_objective_of_the_model_is_judged(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(written(tmp_path, objective="wait"), trace, "--copies", "2", "--json") == 0
    assert {row["number"] for row in json.loads(capsys.readouterr().out)["results"]} == {"wait"}


def test_the_half_that_was_not_trained_on_is_unseen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = written_trace(tmp_path / "year.swf", 200)
    row = {"name": "year", "sha256": PairInput.of(trace).digest, "jobs": 100, "processors": 24}
    model = written(tmp_path, trained={"traces": [row], "part": "first-half", "epochs": 1})
    assert judged(model, trace, "--copies", "2", "--part", "first-half", "--save") == 0
    assert "nothing was written" in capsys.readouterr().err and read_model(model).evaluated == ()
    assert judged(model, trace, "--copies", "2", "--part", "second-half", "--save") == 0
    assert {row["part"] for row in read_model(model).evaluated} == {"second-half"}


@pytest.mark.parametrize(
    ("models", "code", "says"),
    [
        ({"a": {"seen": {}}}, FAILED, "seen: missing"),
        ({"a": {}, "b": {"objective": "wait"}}, FAILED, "objective: not as that of the first model"),
        ({"a": {}, "b": {"nodes": NODES[:2]}}, FAILED, "nodes: not as that of the first model"),
        ({"a": {}, "order": None}, FAILED, "models of one kind"),
        ({"a": {"nodes": ((1, 1.0),)}}, FAILED, "at least 100 jobs"),
        ({}, USAGE, "allowed: one of each"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    models: dict[str, Any], code: int, says: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [
        model_file(tmp_path, SJF, name) if changes is None else written(tmp_path, name, **changes)
        for name, changes in models.items()
    ]
    capsys.readouterr()
    assert main(["evaluate", *map(str, paths), str(trace), "--copies", "2", "--workers", "1"]) == code
    error = " ".join(capsys.readouterr().err.split())
    assert says in error and "Traceback" not in error
