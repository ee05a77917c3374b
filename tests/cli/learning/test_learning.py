"""`train`, `evaluate` and `model`: from a trace to a verdict, and what is wrong in one sentence."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from pilotfish.cli.__main__ import FAILED, INTERRUPTED, USAGE, main
from pilotfish.cli.charts.learning_figure import Course, learning_curves
from pilotfish.cli.learning.training_progress import TrainingProgress
from pilotfish.formats.model_file import read_order, write_model
from pilotfish.formats.replays.swf import read_swf
from pilotfish.learning.contenders import rivals
from pilotfish.simulate.queue_policies.policy_specs import Easy
from pilotfish.simulate.replay.replay import replay

FEW = ("--seeds", "1", "--generations", "2", "--population", "4", "--workers", "1")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "year.swf.gz"
    assert main(["generate", "lublin", "--jobs", "400", "--procs", "64", "--load", "0.9", "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def model(trace: Path) -> Path:
    path = trace.parent / "mine.pfmodel.json"
    assert main(["train", "linear", str(trace), "--part", "first-half", *FEW, "-o", str(path)]) == 0
    return path


def test_the_same_command_writes_the_same_file(trace: Path, model: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.pfmodel.json"
    assert main(["train", "linear", str(trace), "--part", "first-half", *FEW, "-o", str(again)]) == 0
    assert again.read_bytes() == model.read_bytes()


def test_training_goes_on_where_it_was_interrupted(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "linear", str(trace), *FEW[2:], "-o", str(tmp_path / "a.pfmodel.json")]
    journal = ["--resume", str(tmp_path / "searches")]
    assert main([*words, "--seeds", "1", *journal]) == 0
    first = (tmp_path / "a.pfmodel.json").read_bytes()
    assert main([*words, "--seeds", "2", *journal]) == 0
    assert main([*words, "--seeds", "1", *journal]) == 0 and (tmp_path / "a.pfmodel.json").read_bytes() == first
    assert len(read_order(tmp_path / "a.pfmodel.json").trained["seeds"]) == 1
    capsys.readouterr()
    assert main([*words, "--seeds", "1", "--objective", "wait", *journal]) == FAILED
    assert "other inputs: --objective bsld there, wait here" in capsys.readouterr().err


def test_a_search_that_is_interrupted_keeps_the_best_so_far_and_goes_on_to_the_bit(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pilotfish.cli.learning.learning_tasks.GENERATIONS_EACH", 1)
    words = ["train", "linear", str(trace), *FEW, "--no-predictions", "-o"]
    cut, uncut = (tmp_path / f"{name}.pfmodel.json" for name in ("cut", "uncut"))
    assert main([*words, str(uncut)]) == 0
    with monkeypatch.context() as patch:
        patch.setattr(TrainingProgress, "reached", mock.Mock(side_effect=KeyboardInterrupt))
        capsys.readouterr()
        assert main([*words, str(cut), "--resume", str(tmp_path / "state")]) == INTERRUPTED
    error = " ".join(capsys.readouterr().err.split())
    assert (
        "1 of 1 training came to generation 1 of 2; the best so far is kept" in error
        and read_order(cut).trained["generations"] == 1
    )
    assert main([*words, str(cut), "--resume", str(tmp_path / "state")]) == 0
    assert cut.read_bytes() == uncut.read_bytes()


def test_jobs_that_are_left_out_are_counted(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = gzip.decompress(trace.read_bytes()).decode().splitlines()
    numbers = lines[-1].split()
    too_large = [*numbers[:4], "1000", *numbers[5:7], "1000", *numbers[8:]]
    wrong = [lines[-1].replace(" ", " x ", 1)] * 2
    (tmp_path / "some.swf").write_text("\n".join([*lines, " ".join(too_large), *wrong, ""]))
    words = ["train", "linear", str(tmp_path / "some.swf"), "--no-predictions", *FEW, "-o"]
    assert main([*words, str(tmp_path / "a.pfmodel.json")]) == 0
    error = " ".join(capsys.readouterr().err.split())
    assert "some: 400 jobs; left out: 2 lines without a job, 1 job larger than the machine" in error
    (tmp_path / "some.swf").write_text("\n".join(["; MaxProcs: 64", *[" ".join(too_large)] * 200, ""]))
    assert main([*words, str(tmp_path / "a.pfmodel.json")]) == FAILED
    error = " ".join(capsys.readouterr().err.split())
    assert "some: 0 jobs; left out: 200 jobs larger than the machine (allowed: at least 100 jobs)" in error


def test_the_model_is_not_written_over_the_journal(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "a.pfmodel.json")
    assert main(["train", "linear", str(trace), *FEW, "-o", path, "--resume", path]) == USAGE
    assert "is the file of --out" in " ".join(capsys.readouterr().err.split()) and not Path(path).exists()


def test_a_file_counts_once(trace: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for files in ([model, model, trace], [model, trace, trace]):
        assert main(["evaluate", *map(str, files), "--no-predictions"]) == USAGE
        assert "twice (allowed: each file once)" in " ".join(capsys.readouterr().err.split())


def test_a_replay_under_the_model_is_that_of_its_weights(
    trace: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(trace), "--policy", f"easy:order={model}", "--out", str(tmp_path), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    jobs = read_swf(trace)
    replayed = replay(jobs, 64, Easy(order=read_order(model).order("m")))
    waits = replayed.start_time - jobs.submit_time
    assert json.dumps(summary).count(f"{waits.mean():.6g}"[:5]) > 0


def test_the_learning_curves_are_drawn(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra plot, is not installed")
    words = ["train", "linear", str(trace), "--no-predictions", *FEW, "-o", str(tmp_path / "a.pfmodel.json"), "--plot"]
    assert main([*words, str(tmp_path / "curves.svg")]) == 0
    picture = (tmp_path / "curves.svg").read_text()
    assert "generation" in picture and "the picture is in" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "curves.gif")]) == USAGE
    assert "no known ending" in capsys.readouterr().err


def test_curves_have_the_values_of_the_searches() -> None:
    figure = learning_curves("bsld", {1: [1.0, 2.0], 7: [1.0]}, Course("epoch", "mean", ("easy", 3.0)))
    ((panel,),) = figure.rows
    lines = {line.label: (line.x.tolist(), line.y.tolist()) for line in panel.series}
    assert lines["seed 1"] == ([1.0, 2.0], [1.0, 2.0]) and lines["seed 7"][0] == [1.0]
    assert lines["baseline: easy"] == ([1.0, 2.0], [3.0, 3.0])


@pytest.mark.parametrize("kind", ["tanh", "fill"])
def test_other_kinds_of_orders_are_trained_shown_judged_and_guarded(
    kind: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.pfmodel.json"
    assert main(["train", kind, str(trace), "--no-predictions", *FEW, "-o", str(path)]) == 0
    assert main(["model", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80 and {"tanh": "UNIT 6", "fill": "BEHIND"}[kind] in shown
    words = ["evaluate", str(path), str(trace), "--copies", "2", "--workers", "1", "--no-predictions", "--json"]
    assert main(words) == 0 and json.loads(capsys.readouterr().out)["results"]
    waits = []
    for policy in (f"easy:order={path}", f"learned:{path}"):
        assert main(["simulate", str(trace), "--policy", policy, "--json"]) == 0
        waits.append(json.loads(capsys.readouterr().out)["mean_waiting_time"])
    assert waits[0] == waits[1]


def test_the_table_of_a_training_has_the_score_that_its_progress_shows(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "fill", str(trace), "--part", "first-half", "--no-predictions", *FEW]
    assert main([*words, "-o", str(tmp_path / "a.pfmodel.json")]) == 0
    out, error = capsys.readouterr()
    last_row = next(line for line in out.splitlines() if line.endswith("kept"))
    assert f"generation 2 of 2, 1 seed: score {last_row.split()[-2]}" in error
    rule = next(line for line in out.splitlines() if line.startswith("rule"))
    waits, score = (float(word.replace(",", "")) for word in rule.split()[-2:])
    assert waits > 0.0 and score >= float(last_row.split()[-2].replace(",", ""))
    assert max(map(len, out.splitlines())) <= 80


def test_a_model_that_is_only_the_rule_is_called_so(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, learned = tmp_path / "rule.pfmodel.json", tmp_path / "fill.pfmodel.json"
    sentence = "the model is only the rule that its search began with: first come, first served"
    words = ["--part", "first-half", "--no-predictions", *FEW]
    assert main(["train", "linear", str(trace), *words, "-o", str(path)]) == 0
    assert sentence in " ".join(capsys.readouterr().err.replace("pilotfish:", "").split())
    assert main(["train", "fill", str(trace), *words, "-o", str(learned)]) == 0
    assert "is only the rule" not in capsys.readouterr().err
    for words in (["model", "show", "MODEL"], ["evaluate", "MODEL", str(trace), "--copies", "2", "--workers", "1"]):
        for model, is_rule in ((path, True), (learned, False)):
            assert main([str(model) if word == "MODEL" else word for word in words]) == 0
            assert (sentence in " ".join(capsys.readouterr().out.split())) is is_rule


def test_each_rival_is_named_whole(trace: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", str(model), str(trace), "--part", "second-half", "--copies", "2", "--workers", "1"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = " ".join(" ".join(lines).split())
    assert [one.name for one in rivals(1e6, predicting=True) if one.name not in shown] == []
    assert max(map(len, lines)) <= 80 and "\N{HORIZONTAL ELLIPSIS}" not in shown
    assert "Intervals over 2 copies are often too narrow" in shown


def test_rivals_know_predictions_if_the_model_does(
    trace: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, sentence = (
        tmp_path / "plain.pfmodel.json",
        "--no-predictions: a model knows predicted run times, so its rivals do",
    )
    write_model(plain, replace(read_order(model), run_times="walltime"))
    write_model(knowing := tmp_path / "knowing.pfmodel.json", replace(read_order(model), run_times="predicted"))
    for path, is_told in ((plain, False), (knowing, True)):
        assert main(["evaluate", str(path), str(trace), "--copies", "2", "--workers", "1", "--no-predictions"]) == 0
        out, error = capsys.readouterr()
        assert (sentence in " ".join(error.split())) is is_told and ("f1, predicted" in out) is is_told


def test_the_verdict_names_the_best_rival_and_fits_80_columns(
    trace: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["evaluate", str(model), str(trace), "--part", "second-half", "--copies", "2", "--workers", "1"]
    assert main([*words, "--no-predictions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and any("easy:order=fcfs" in line for line in lines)
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = document["results"]
    assert [row["number"] for row in rows] == ["bsld", "bsld", "wait", "wait"]
    assert [row["chosen"] for row in rows] == ["chosen in training", "best in hindsight"] * 2
    baseline = read_order(model).baseline
    assert rows[0]["against"]["rival"].startswith(baseline.policy)
    assert all(row["against"]["low"] <= row["against"]["ratio"] for row in rows)


def test_the_card_says_what_it_rests_on(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "show", str(model)]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "trained on year, first half" in text and "Not for:" in text
    assert main(["model", "check", str(model)]) == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["train", "linear", "TRACE", "-o", "a.json"], USAGE, "a name that ends with .pfmodel.json"),
        (["train", "linear", "TRACE", "-o", "a.pfmodel.json", "--objective", "luck"], USAGE, "bsld, wait"),
        (["train", "linear", "TRACE", "-o", "a.pfmodel.json", "--part", "third"], USAGE, "first-half"),
        (["train", "linear", "absent.swf", "-o", "a.pfmodel.json"], FAILED, "absent.swf"),
        (["train", "linear", "TRACE", "--max-wait", "inf", "-o", "a.pfmodel.json"], USAGE, "0.01<=x<=36525"),
        (["train", "linear", "TRACE", "--windows", "50", "-o", "a.pfmodel.json"], FAILED, "50 leaves 8 jobs"),
        (["train", "linear", "TRACE", "--procs", "1", "-o", "a.pfmodel.json"], FAILED, "at least 100 jobs"),
        (["evaluate", "TRACE"], USAGE, "allowed: one of each"),
        (["evaluate", "--leave-one-out", "TRACE", "TRACE"], USAGE, "3 or more, one of each system"),
        (["evaluate", "--leave-one-out", "TRACE", "TRACE", "TRACE"], FAILED, "two traces are the same"),
        (["evaluate", "a.pfmodel.json", "TRACE", "--seeds", "3"], USAGE, "without --leave-one-out"),
        (["evaluate", "--leave-one-out", "a.pfmodel.json", "TRACE"], USAGE, "allowed: traces alone"),
        (["evaluate", "absent.pfmodel.json", "TRACE"], FAILED, "absent.pfmodel.json"),
        (["model", "show", "TRACE"], FAILED, "no JSON"),
        (["simulate", "TRACE", "--policy", "easy:order=absent.pfmodel.json"], FAILED, "absent.pfmodel.json"),
        (["simulate", "TRACE", "--policy", "easy:order=mine.json"], USAGE, "pfmodel.json"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    words: list[str], code: int, says: str, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main([str(trace) if word == "TRACE" else word for word in words]) == code
    error = capsys.readouterr().err
    assert says in error.replace("\n", " ") and "Traceback" not in error
