"""`train squared` and `evaluate --as thesis`: the same model however it is carried out, and what is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotfish.cli.__main__ import FAILED, INTERRUPTED, USAGE, main
from pilotfish.cli.learning import train_squared
from pilotfish.cli.learning.training_progress import TrainingProgress
from pilotfish.formats.model_file import read_model, write_model
from pilotfish.formats.models.pair_model import PairModel
from pilotfish.learning.environments.site_pairs import BASELINES
from pilotfish.learning.thesis_table import ThesisTable, thesis_table
from tests.cli.learning.test_pair_policy import LAB
from tests.support.learned_models import SJF, model_file
from tests.support.pair_models import pair_model

#: One epoch more than at which a network is judged.
EPOCHS = ("--epochs", "6")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "year.swf.gz"
    assert main(["generate", "lublin", "--jobs", "1300", "--procs", "256", "--load", "0.5", "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def lab(trace: Path) -> Path:
    """A site of four small nodes, where an epoch takes a tenth of one on the nodes of the thesis."""
    path = trace.parent / "lab.yaml"
    path.write_text(yaml.safe_dump(LAB))
    return path


@pytest.fixture(scope="module")
def of_thesis(trace: Path) -> Path:
    path = trace.parent / "thesis.pfmodel.json"
    assert main(["train", "squared", str(trace), "--seeds", "1", "--epochs", "1", "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def of_lab(trace: Path, lab: Path) -> Path:
    path = trace.parent / "lab.pfmodel.json"
    words = ["train", "squared", str(trace), "--cluster", str(lab), "--seeds", "2", *EPOCHS, "--every-seed"]
    assert main([*words, "-o", str(path)]) == 0
    return path


@pytest.mark.real
def test_the_best_seed_is_kept_and_each_can_be(of_lab: Path) -> None:
    best = read_model(of_lab)
    assert isinstance(best, PairModel) and best.trained["epochs"] == 6
    values = {one["seed"]: one["value"] for one in best.trained["seeds"]}
    assert set(values) == {1, 2} and values[best.trained["seed"]] == min(values.values())
    for seed, value in values.items():
        one = read_model(of_lab.with_name(f"lab-{seed}.pfmodel.json"))
        assert isinstance(one, PairModel) and one.trained["seeds"][0]["value"] == value
        assert (one.layers == best.layers) == (seed == best.trained["seed"])


def test_a_seed_that_was_not_judged_is_never_better_than_one_that_was() -> None:
    judged, played = ({"course": [50.0], "value": 99.0}, {"course": [1.0], "value": None})
    assert min([played, judged], key=train_squared._rank) is judged
    assert min([{"course": [2.0], "value": None}, played], key=train_squared._rank) is played


@pytest.mark.real
def test_what_is_unknown_or_worse_than_the_baseline_is_said(
    trace: Path, lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.pfmodel.json"
    words = ["train", "squared", str(trace), "--cluster", str(lab), "--seeds", "2", "--epochs", "1", "-o", str(path)]
    assert main(words) == 0
    printed = capsys.readouterr()
    assert printed.out.count("not judged") == 2 and printed.out.count("kept") == 1
    trained = read_model(path).trained
    assert [one["value"] for one in trained["seeds"]] == [None, None]
    assert ("it was written all the same" in printed.err) == (trained["value"] >= trained["baseline_value"])
    assert main(["model", "show", str(path)]) == 0
    card = " ".join(capsys.readouterr().out.split())
    assert card.count("not judged") == 2 and "on jobs of its training the model is" in card


@pytest.mark.real
@pytest.mark.parametrize("agent", ["double-sep", "clustered"])
def test_each_head_is_a_model(trace: Path, lab: Path, agent: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.pfmodel.json" for number in range(2)]
    words = ["train", "squared", str(trace), "--cluster", str(lab), "--head", agent, "--seeds", "1", "--epochs", "2"]
    for path in paths:
        assert main([*words, "-o", str(path)]) == 0
    model = read_model(paths[0])
    assert isinstance(model, PairModel) and model.agent == agent and paths[0].read_bytes() == paths[1].read_bytes()
    assert bool(model.job_layers) == agent.startswith("double")


@pytest.mark.real
def test_a_site_trains_on_its_own_nodes_and_the_model_has_a_net(of_lab: Path, of_thesis: Path) -> None:
    site, thesis = read_model(of_lab), read_model(of_thesis)
    assert isinstance(site, PairModel) and site.nodes == ((4, 1e9), (4, 2e9), (8, 1e9), (8, 2e9))
    assert site.sight.due == "any" and site.seen["size"][-1] == 8.0 and site.trained["as"] == ""
    assert 100 < site.trained["traces"][0]["jobs"] < 1300  # the others need more than a node
    assert isinstance(thesis, PairModel) and len(thesis.nodes) == 20 and thesis.seen["size"][-1] == 64.0
    for one in (site, thesis):
        low, *_, high = one.seen["limit"]
        assert 0.0 < low < high <= one.max_wait < 1e9 and one.baseline in BASELINES
        assert len(one.seen["usual"]) == 7 and not one.is_proven


@pytest.mark.real
def test_a_training_that_was_interrupted_keeps_the_best_so_far_and_goes_on_to_the_bit(
    trace: Path, lab: Path, of_lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out, calls = tmp_path / "a.pfmodel.json", list[int]()
    words = ["train", "squared", str(trace), "--cluster", str(lab), "--seeds", "1", *EPOCHS]
    words += ["--resume", str(tmp_path / "state")]

    def stopped(*_: Any) -> None:
        calls.append(1)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(TrainingProgress, "reached", stopped)
        assert main([*words, "-o", str(out)]) == INTERRUPTED
    assert "came to epoch 5 of 6" in capsys.readouterr().err and calls == [1]
    assert read_model(out).trained["epochs"] == 5
    assert main([*words, "-o", str(out)]) == 0
    assert out.read_bytes() == of_lab.with_name("lab-1.pfmodel.json").read_bytes()
    capsys.readouterr()
    assert main([*words, "--objective", "wait", "-o", str(out)]) == FAILED
    assert "other inputs: --objective bsld there, wait here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["train", "squared", "TRACE", "-o", "a.json"], USAGE, "a name that ends with .pfmodel.json"),
        (["train", "squared", "TRACE", "-o", "a.pfmodel.json", "--objective", "luck"], USAGE, "bsld, sld, wait"),
        (["train", "squared", "TRACE", "-o", "a.pfmodel.json", "--as", "irmasim"], USAGE, "thesis"),
        (["train", "squared", "TRACE", "-o", "a.pfmodel.json", "--head", "triple"], USAGE, "double-add, double-mean"),
        (
            ["train", "squared", "TRACE", "-o", "a.pfmodel.json", "--as", "thesis", "--cluster", "l.yaml"],
            USAGE,
            "--as thesis has its own nodes",
        ),
        (["train", "squared", "TRACE", "-o", "a.pfmodel.json", "--cluster", "absent.yaml"], FAILED, "absent.yaml"),
        (["train", "squared", "absent.swf", "-o", "a.pfmodel.json"], FAILED, "absent.swf"),
        (["train", "squared", "short.swf", "-o", "a.pfmodel.json"], FAILED, "at least 1,281 jobs"),
        (["evaluate", "--as", "thesis", "TRACE"], FAILED, "at least 9,984 jobs"),
        (["evaluate", "--as", "batsim", "TRACE"], USAGE, "thesis"),
        (["evaluate", "--as", "thesis", "pairs.pfmodel.json"], USAGE, "allowed: one"),
        (["evaluate", "--as", "thesis", "m.pfmodel.json", "TRACE"], FAILED, "linear: it chooses no pairs"),
        (["evaluate", "--as", "thesis", "pairs.pfmodel.json", "TRACE"], FAILED, "another machine"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    words: list[str], code: int, says: str, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    model_file(tmp_path, SJF)
    write_model(tmp_path / "pairs.pfmodel.json", pair_model())
    assert main(["generate", "lublin", "--jobs", "50", "--procs", "16", "-o", "short.swf"]) == 0
    capsys.readouterr()
    assert main([str(trace) if word == "TRACE" else word for word in words]) == code
    error = " ".join(capsys.readouterr().err.split())
    assert says in error and "Traceback" not in error


@pytest.mark.real
@pytest.mark.long
def test_the_table_has_all_rules_and_the_figures_of_the_thesis(
    of_thesis: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "other.swf.gz"
    assert main(["generate", "lublin", "--jobs", "10000", "--procs", "256", "--seed", "3", "-o", str(trace)]) == 0
    capsys.readouterr()
    tables = list[ThesisTable]()

    def table_once(*arguments: Any, **options: Any) -> ThesisTable:
        tables[:] = tables or [thesis_table(*arguments, **options)]
        return tables[0]

    monkeypatch.setattr("pilotfish.cli.learning.thesis_report.thesis_table", table_once)  # one, printed in both ways
    assert main(["evaluate", "--as", "thesis", str(of_thesis), str(trace), "--save"]) == 0
    lines = capsys.readouterr().out.splitlines()
    has_figure = re.compile(r"  .*(?:[\d,.]+ +){4}\d+\.\d\d \(")  # mean, median, most, and that of the thesis; ratio
    assert max(map(len, lines)) <= 80 and sum(has_figure.match(line) is not None for line in lines) == 12
    assert f"> squared, model 1: {of_thesis}".replace(" ", "") in "".join(lines).replace(" ", "")
    assert any("40.7" in line for line in lines) and any(line.startswith("> squared") for line in lines)
    assert {row["windows"] for row in read_model(of_thesis).evaluated} == {20}
    assert main(["evaluate", "--as", "thesis", str(of_thesis), str(trace), "--json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)["tables"]
    (windows,), published = document["agents"]["squared"]["windows"], document["agents"]["squared"]["published"]
    assert len(document["rules"]) == 32 and len(windows) == 20 and published == 9.7
    assert document["rules"][0]["ratios"]["squared"]["low"] > 0.0
