"""The card of a canary: each line fits 80 columns, and says no more than was shown."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.cli.output.text import Screen
from pilotfish.cli.score.group_card import ASSUMPTIONS, comparison_document, read_comparison, show_comparison
from pilotfish.cli.score.group_page import comparison_figure, comparison_page
from pilotfish.daemon.canary.comparison import compare
from pilotfish.daemon.config import DaemonConfig
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.members import Member
from pilotfish.daemon.state.unsaved import Unsaved
from pilotfish.simulate.errors import ConfigError

NOW = 1e5


def members(number: int, wait_s: float, *, ended: bool = True) -> list[Member]:
    """Return jobs of both groups, submitted every 10 s; those of the canary wait so much longer than others."""
    jobs = []
    for one in range(number):
        side, submit = "canary" if one % 2 else "control", 10.0 * one
        start = submit + 200.0 + 7.0 * (one // 2 % 11) + (wait_s if side == "canary" else 0.0)
        end, state = (start + 600.0, "completed") if ended else (None, "running")
        name = f"slurm/{one}"
        jobs.append(Member(name, name, side, 0.5, 1, "drawn", 1000, "main", 4, 3600.0, submit, start, end, state))
    return jobs


def shown(jobs: list[Member], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    show_comparison(Screen(), compare(jobs, NOW))
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80 and " ".join(text.split()).count(ASSUMPTIONS[1]) == 1
    return text


@pytest.mark.parametrize(("wait_s", "verdict"), [(-150.0, "waiting: gain, significant"), (150.0, "waiting: loss, sig")])
def test_a_difference_is_shown_with_its_size_and_verdict(
    wait_s: float, verdict: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(members(200, wait_s), monkeypatch, capsys)
    assert verdict in text and "100 canary (0 waiting, 0 running), 100 control" in text
    row = next(line for line in text.splitlines() if line.startswith("waiting"))
    assert ("-" if wait_s < 0.0 else "+") + "2.5 min" in row and row.endswith("200")


def test_a_gain_that_the_hold_of_the_control_group_explains_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = members(200, -30.0)
    assert "waiting: gain, significant" in shown(jobs, monkeypatch, capsys)
    text = shown([replace(one, held_s=40.0) for one in jobs], monkeypatch, capsys)
    assert "waiting: gain" not in text and "hold of the control group explains" in " ".join(text.split())
    assert "held 40 s in the mean over the control group" in " ".join(text.split())


def test_few_jobs_are_no_evidence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(members(2, 0.0), monkeypatch, capsys)
    assert "not enough evidence yet" in text and "significant" not in text.partition("Assumptions")[0]


def test_what_has_not_ended_has_no_slowdown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(members(40, 0.0, ended=False), monkeypatch, capsys)
    rows = {line.split()[0]: line for line in text.splitlines() if line.startswith(("slowdown", "waiting"))}
    assert "unknown" in rows["slowdown"] and "unknown" not in rows["waiting"]


@pytest.mark.parametrize(("since_s", "until"), [(1e6, NOW), (60.0, NOW + 60.0)], ids=["stopped", "running"])
def test_open_jobs_count_until_the_service_stopped(tmp_path: Path, since_s: float, until: float) -> None:
    (path := tmp_path / "cluster.yaml").write_text("")
    config = DaemonConfig.model_validate({"cluster": str(path), "state_dir": str(tmp_path), "handover": {"share": 0.1}})
    jobs = {one.key: one for one in members(40, 0.0, ended=False)}
    with closing(Journal(config.journal)) as journal:
        journal.save([], unsaved=Unsaved(members=jobs, kept={"cost": {"until": NOW}}))
    assert read_comparison(config, None, NOW + since_s) == compare(jobs.values(), until)


def test_the_document_says_what_the_text_says() -> None:
    document = json.loads(json.dumps(comparison_document(compare(members(200, 150.0), NOW))))
    waiting = document["measures"]["waiting"]
    assert waiting["difference"] == pytest.approx(150.0) and waiting["significant"] and waiting["low"] > 0.0
    assert document["harm"] and document["jobs"] == {"canary": 100, "control": 100}


def test_the_page_has_the_text_and_draws_what_is_known() -> None:
    comparison = compare(members(200, -150.0), NOW)
    page = comparison_page(comparison)
    assert "waiting: gain, significant" in page and "mean turnaround" in page
    *pairs, (intervals,) = comparison_figure(comparison).rows
    bars = [panel for pair in pairs for panel in pair]
    waiting = comparison.measures["waiting"]
    assert [panel.title for panel in bars] == ["mean waiting", "mean turnaround", "mean slowdown", "mean run time"]
    assert waiting and bars[0].series[0].values == pytest.approx([waiting.control, waiting.canary])
    assert intervals.series[0].left[0] == pytest.approx(100.0 * waiting.low / waiting.control)
    assert len(comparison_figure(compare(members(20, 0.0), NOW)).rows) == 2, "few jobs have no interval"


def test_a_canary_whose_groups_are_empty_yet_has_a_card_without_evidence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown([], monkeypatch, capsys)
    assert "0 canary (0 waiting, 0 running), 0 control" in text and text.count("not enough evidence yet") == 4


@pytest.mark.parametrize(("share", "is_shown"), [(0.1, True), (1.0, False)])
def test_without_jobs_only_a_configured_canary_has_a_card(tmp_path: Path, share: float, is_shown: bool) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("")
    config = DaemonConfig.model_validate(
        {"cluster": str(path), "state_dir": str(tmp_path), "handover": {"share": share}}
    )
    Journal(config.journal).close()
    if is_shown:
        assert read_comparison(config, None, NOW).jobs == {"canary": 0, "control": 0}
    else:
        with pytest.raises(ConfigError, match="no job has a group"):
            read_comparison(config, None, NOW)
