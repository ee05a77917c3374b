"""`train priorities`: lines for slurm.conf that are judged on other jobs, and what is wrong in one sentence."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from unittest import mock

import pytest

from pilotfish.cli.__main__ import FAILED, USAGE, main
from pilotfish.cli.learning.training_progress import TrainingProgress
from pilotfish.formats.model_file import read_order

FEW = ("--generations", "1", "--population", "4", "--repeat", "2", "--workers", "1")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sites") / "gpu"
    assert main(["generate", "site", "gpu", "--jobs", "600", "-o", str(folder)]) == 0
    return folder


@pytest.mark.real
def test_the_lines_are_judged_and_the_same_each_time(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "priorities", str(site), *FEW, "--keep", "PriorityWeightfairshare"]
    texts = list[str]()
    for _ in range(2):
        assert main(words) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    lines = texts[0].splitlines()
    assert max(map(len, lines)) <= 80 and "Fairshare=" not in texts[0]
    assert any("mean bounded slowdown: " in line for line in lines)
    assert all(line.startswith("# ") or re.fullmatch(r"PriorityWeight\w+=\d+", line) for line in lines)
    settings = [line for line in lines if "PriorityWeight" in line]
    is_noise = "# not shown to be better" in texts[0]
    assert settings and all(line.startswith("# ") is is_noise for line in settings)
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["is_noise"] is is_noise
    assert document["before"]["PriorityWeightFairshare"] == document["after"]["PriorityWeightFairshare"] == 2000


@pytest.mark.real
def test_an_interrupted_search_goes_on_with_the_replays_that_ended(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, journal = ["train", "priorities", str(site), *FEW], tmp_path / "replays"
    assert main(words) == 0
    text = capsys.readouterr().out
    with monkeypatch.context() as patch:
        patch.setattr(TrainingProgress, "reached", mock.Mock(side_effect=KeyboardInterrupt))
        assert main([*words, "--resume", str(journal)]) == 130
    assert journal.read_text().count('"value"') == 4
    assert main([*words, "--resume", str(journal)]) == 0 and capsys.readouterr().out == text
    replays = journal.read_text()
    assert replays.count('"value"') == 4 and replays.count("\n") == 1 + 4 + 2 * 2
    assert main([*words, "--resume", str(journal)]) == 0 and capsys.readouterr().out == text
    assert journal.read_text() == replays


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (["--objective", "luck"], USAGE, "bsld, wait"),
        (["--keep", "PriorityWeightLuck"], USAGE, "PriorityWeightAge"),
        (["--population", "1"], USAGE, "population"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    more: list[str], code: int, says: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "priorities", str(site), *more]) == code
    error = capsys.readouterr().err
    assert says in error.replace("\n", " ") and "Traceback" not in error


def test_a_site_without_weights_or_jobs_is_one_sentence(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "priorities", str(tmp_path / "absent")]) == FAILED
    other = tmp_path / "basic"
    other.mkdir()
    for file in site.iterdir():
        text = file.read_bytes()
        (other / file.name).write_bytes(text.replace(b"priority/multifactor", b"priority/basic"))
    assert main(["train", "priorities", str(other)]) == FAILED
    assert "PriorityType" in capsys.readouterr().err
    lines = gzip.decompress((site / "sacct.psv.gz").read_bytes()).splitlines(keepends=True)
    (other / "sacct.psv.gz").write_bytes(gzip.compress(b"".join(lines[:50])))
    (other / "slurm.conf").write_bytes((site / "slurm.conf").read_bytes())
    assert main(["train", "priorities", str(other)]) == FAILED
    assert "at least 200 jobs" in capsys.readouterr().err


@pytest.mark.real
def test_a_folder_of_a_site_is_a_trace(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.pfmodel.json"
    brief = ("--seeds", "1", "--generations", "1", "--population", "4", "--workers", "1", "--no-predictions")
    assert main(["train", "linear", str(site), "--part", "first-half", *brief, "-o", str(model)]) == 0
    (row,) = read_order(model).trained["traces"]
    assert row["name"] == "gpu, first half" and row["jobs"] == 300
    capsys.readouterr()
    words = ["evaluate", str(model), str(site), "--copies", "2", "--no-predictions", "--workers", "1", "--json"]
    assert main([*words, "--part", "second-half"]) == 0
    output = capsys.readouterr()
    assert len(json.loads(output.out)["results"]) == 4 and "the training had the same file" in " ".join(
        output.err.split()
    )
