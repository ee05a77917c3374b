"""`pilotfish evaluate --as irmasim`: the published tables, in few seeds and traces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilotfish.cli.__main__ import USAGE, main
from pilotfish.cli.learning import irmasim_report


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SEEDS", 1), ("TRACES", 2), ("UPDATES", 2)):
        monkeypatch.setattr(irmasim_report, name, value)


@pytest.mark.long
def test_the_examples_have_the_printed_seconds(few: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--as", "irmasim", "--json"]) == 0
    tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["tables"]
    assert [table["title"].split(":")[0] for table in tables] == [
        "IRMaSim's examples", "Agents of the examples", "Figure 9", "Figure 9",
        "Trained with contention and without, judged with it", "Trained with contention and without, judged with it",
    ]  # fmt: skip
    for _, seconds, printed, _, joules, printed_joules in tables[0]["rows"]:
        assert float(seconds) == pytest.approx(float(printed), abs=0.011)
        assert float(joules) == pytest.approx(float(printed_joules), rel=0.01)
    assert all(len(row) == len(table["columns"]) for table in tables for row in table["rows"])
    assert main(["evaluate", "--as", "irmasim"]) == 0
    text = capsys.readouterr().out
    assert all(table["title"].split(":")[0] in text for table in tables) and max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("words", [["year.swf"], ["--save"]])
def test_it_takes_no_files(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--as", "irmasim", *words]) == USAGE
    assert "with files or --save (allowed: neither" in " ".join(capsys.readouterr().err.split())


def test_an_unknown_work_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--as", "irmasin", "year.swf"]) == USAGE
    error = capsys.readouterr().err
    assert "irmasin" in error and "irmasim" in error
