"""`train rules`: the same model however it is carried out; its card, its verdict, its replay, and what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import FAILED, USAGE, main
from pilotfish.formats.model_file import read_model
from pilotfish.formats.models.rule_model import RuleModel
from pilotfish.formats.user_policy import queue_mapping
from pilotfish.simulate.errors import ConfigError
from tests.support.learned_models import SJF, model_file
from tests.support.rule_models import lab_files

FEW = ("--episode", "12", "--seeds", "2", "--updates", "20", "--job-rules", "first,shortest")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    cluster, jobs = lab_files(tmp_path_factory.mktemp("lab"), 120)
    return str(cluster), str(jobs)


def train(lab: tuple[str, str], out: Path, *more: str) -> int:
    return main(["train", "rules", "--cluster", lab[0], "--workload", lab[1], *FEW, "-o", str(out), *more])


@pytest.fixture(scope="module")
def model(lab: tuple[str, str]) -> Path:
    path = Path(lab[0]).with_name("rules.pfmodel.json")
    assert train(lab, path) == 0
    return path


@pytest.mark.real
def test_the_best_seed_is_kept(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    best = read_model(model)
    assert isinstance(best, RuleModel)
    assert (best.nodes, best.cores) == (3, (4, 4, 4)) and len(best.options.actions) == 13
    values = {one["seed"]: one["value"] for one in best.trained["seeds"]}
    assert set(values) == {1, 2} and values[best.trained["seed"]] == min(values.values())
    assert main(["model", "check", str(model)]) == 0 and main(["model", "show", str(model)]) == 0
    output = capsys.readouterr().out
    assert "3 nodes, 3 processors, 12 cores; it sees: minimal" in output and "12 pairs of rules, or none" in output
    assert main(["model", "show", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["baseline"] == best.baseline


@pytest.mark.real
def test_a_resumed_training_gives_the_same_file(lab: tuple[str, str], model: Path, tmp_path: Path) -> None:
    state, out = tmp_path / "state", tmp_path / "b.pfmodel.json"
    assert train(lab, out, "--resume", str(state)) == 0
    assert out.read_bytes() == model.read_bytes()
    lines = state.read_bytes().splitlines(keepends=True)
    state.write_bytes(b"".join(lines[:2]))  # one stage of one seed
    assert train(lab, out, "--resume", str(state), "--workers", "1") == 0
    assert out.read_bytes() == model.read_bytes()
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra plot, is not installed")
    assert train(lab, out, "--resume", str(state), "--plot", str(tmp_path / "curves.svg")) == 0
    assert "update" in (tmp_path / "curves.svg").read_text()


@pytest.mark.real
def test_it_is_judged_and_replayed(
    lab: tuple[str, str], model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    blind = tmp_path / "blind.pfmodel.json"
    assert train(lab, blind, "--no-contention", "--agent", "reinforce", "--no-void") == 0
    other = read_model(blind)
    assert (
        isinstance(other, RuleModel) and other.trained["contention"] is False and other.trained["agent"] == "reinforce"
    )
    capsys.readouterr()
    words = ["evaluate", str(model), str(blind), lab[1], "--cluster", lab[0], "--part", "second-half", "--copies", "4"]
    assert main([*words, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert {row["number"] for row in results} == {"energy", "wait"} and len(results) == 4
    hindsight = next(row for row in results if row["number"] == "energy" and row["chosen"] == "best in hindsight")
    assert hindsight["against"]["rival"].startswith("pairs") and hindsight["against"]["ratio"] > 0.5
    assert main([*words, "--save"]) == 0 and len(read_model(blind).evaluated) == 4
    assert main(["simulate", lab[1], "--cluster", lab[0], "--policy", f"learned:{model}"]) == 0
    assert "120 completed" in capsys.readouterr().out


@pytest.mark.real
def test_no_plan_and_no_service_takes_it(model: Path) -> None:
    with pytest.raises(ConfigError, match="which only replays know") as error:
        queue_mapping(f"learned:{model}")
    assert error.value.key == "kind"


@pytest.mark.real
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--job-rules", "longest"), "'longest' is not a rule"),
        (("--core-rules", "first"), "'first' is not a rule"),
        (("--objective", "bsld"), "'bsld' is not an objective"),
        (("--observation", "all"), "'all' is not an observation"),
        (("--agent", "ppo"), "'ppo' is not an agent"),
        (("-o", "a.json"), "a name that ends with .pfmodel.json"),
    ],
)
def test_a_wrong_option_is_one_line(
    lab: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, str], message: str
) -> None:
    assert train(lab, tmp_path / "a.pfmodel.json", *words) == USAGE
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.real
def test_what_cannot_be_judged_is_one_line(
    lab: tuple[str, str], model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(lab, tmp_path / "a.pfmodel.json", "--episode", "50") == FAILED
    assert "at least 100, two episodes" in capsys.readouterr().err
    assert main(["evaluate", str(model), lab[1]]) == FAILED
    assert "--cluster FILE" in capsys.readouterr().err
    order = model_file(tmp_path, SJF)
    assert main(["evaluate", str(order), str(model), lab[1], "--cluster", lab[0]]) == FAILED
    assert "models of one kind" in capsys.readouterr().err
    assert main(["evaluate", str(order), lab[1], "--cluster", lab[0]]) == FAILED
    assert "no model here chooses rules" in capsys.readouterr().err
