"""`model report`: what a model has to show, and the line that promotes it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pilotfish.cli.__main__ import FAILED, USAGE, main
from pilotfish.daemon.mode_log import GUARD_RAIL
from pilotfish.daemon.state.audit import AuditedChange
from pilotfish.daemon.state.journal import Journal
from tests.support.learned_models import BEATS, LIAR, SJF, model_file

DAY_S, DAYS, JOBS = 86_400, 8, 130


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight days with a burst of jobs each, on 16 processors."""
    draws, lines = np.random.default_rng(3), ["; MaxProcs: 16"]
    for number in range(DAYS * JOBS):
        submit = DAY_S * (number // JOBS) + 20 * (number % JOBS)
        run, size = int(draws.choice((60, 300, 3000), p=(0.6, 0.3, 0.1))), int(draws.integers(1, 9))
        lines.append(f"{number + 1} {submit} 0 {run} {size} -1 -1 {size} {2 * run} -1 1 1 1 -1 -1 -1 -1 -1")
    path = tmp_path_factory.mktemp("traces") / "burst.swf"
    path.write_text("\n".join(lines) + "\n")
    return path


def service_in(folder: Path, *changes: AuditedChange) -> Path:
    """Return the configuration of a service that has run."""
    config = folder / "pilotfish.yaml"
    config.write_text(
        f"schema: pilotfish/daemon/v1\ncluster: {folder / 'c.yaml'}\nadapter: {{name: slurm}}\nstate_dir: {folder / 'state'}\n"
    )
    journal = Journal(folder / "state" / "journal.sqlite")
    for change in changes:
        journal.note_change(change)
    journal.close()
    return config


def trip(by: str, after: str) -> AuditedChange:
    return AuditedChange(2000.0, "mode", by, before="shadow", after=after)


@pytest.mark.real
def test_a_model_that_has_shown_all_is_offered(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = model_file(tmp_path, SJF, baseline="easy")
    config = service_in(tmp_path, trip("administrator", "fallback"), trip(GUARD_RAIL, "shadow"))
    assert main(["model", "report", str(model), str(trace), "--config", str(config)]) == 0
    output = capsys.readouterr().out
    assert "burst.swf: 1,040 jobs, 8 days" in output and "tripped: 0 times" in output
    assert f"policy: learned:{model}" in output and "allow_unproven: true" in output
    assert max(len(line) for line in output.splitlines() if str(tmp_path) not in line) <= 80
    proven = model_file(tmp_path, SJF, "proven", baseline="easy", evaluated=(BEATS,))
    assert main(["model", "report", str(proven), str(trace), "--config", str(config), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["missing"] == [] and document["lines"] == [f"policy: learned:{proven}"]
    assert document["gain"]["ratios"]["bsld"][2] < 1.0


@pytest.mark.real
def test_what_is_not_shown_is_named(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = service_in(tmp_path, trip(GUARD_RAIL, "fallback"))
    worse = model_file(tmp_path, LIAR, baseline="easy")
    assert main(["model", "report", str(worse), str(trace), "--config", str(config), "--json"]) == 0
    missing = json.loads(capsys.readouterr().out)["missing"]
    assert [text.split(";")[0] for text in missing] == [
        "an interval that ends below 1", "a service in shadow whose guard rail never tripped",
    ]  # fmt: skip
    assert main(["model", "report", str(worse), str(trace), "--part", "second-half"]) == 0
    output = capsys.readouterr().out
    assert "Not to be promoted yet" in output and "policy:" not in output and "not known (--config)" in output
    assert "7 days with jobs; these are 4" in output and "1,000 jobs; these are 520" in output


@pytest.mark.real
def test_the_baseline_itself_gains_nothing(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "report", str(model_file(tmp_path, SJF)), str(trace), "--json"]) == 0
    gain = json.loads(capsys.readouterr().out)["gain"]
    assert gain["moved"] == 0 and gain["ratios"]["bsld"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--part", "third"], USAGE, "--part"),
        (["--config", "absent.yaml"], FAILED, "absent.yaml"),
    ],
)
def test_a_wrong_word_is_one_sentence(
    words: list[str], code: int, says: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert main(["model", "report", str(model_file(tmp_path, SJF)), str(trace), *words]) == code
    error = capsys.readouterr().err
    assert says in error and "Traceback" not in error
