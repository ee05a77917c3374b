"""`pilotfish replay RECORD`: as it was, or under another policy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import USAGE, main
from tests.support.recorded_site import RecordedSite


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = RecordedSite(tmp_path_factory.mktemp("site"), seed=3, policy="lookahead")
    site.run(60)
    return site.config.record_folder


def document(capsys: pytest.CaptureFixture[str]) -> dict:
    return json.loads(capsys.readouterr().out)


def test_under_its_own_policy_a_record_is_the_same(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(record), "--json"]) == 0
    as_recorded = document(capsys)
    assert main(["replay", str(record), "--policy", "lookahead", "--json"]) == 0
    assert document(capsys) == as_recorded and as_recorded["equal"] == as_recorded["cycles"]


@pytest.mark.parametrize("policy", ["loadavg", "easy:order=sjf"])
def test_another_policy_shows_what_it_does_otherwise(
    record: Path, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(record), "--policy", policy, "--json"]) == 0
    outcome = document(capsys)
    assert outcome["equal"] < outcome["cycles"] and outcome["differences"]


def test_a_policy_that_does_not_exist_is_one_error(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(record), "--policy", "no-such"]) != 0
    text = capsys.readouterr().err
    assert "--policy" in text and "no-such" in text and "Traceback" not in text
    assert main(["replay", str(record), "--runtimes", "actual"]) == USAGE
