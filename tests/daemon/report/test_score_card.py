"""The card as metrics of the daemon: made by a real process, marked by its time, and never in the way."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.daemon.report.cycle_report import CycleReport
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.report.score_card import NICE, ScoreCard, score_command
from pilotfish.daemon.run_modes import RunMode
from pilotfish.simulate.model.snapshot import NodeState, Snapshot
from tests.daemon.conftest import make_cluster

pytestmark = pytest.mark.real  # it starts processes
POLICY = {"policy": "easy:order=sjf"}
SNAPSHOT = Snapshot(0.0, 1, make_cluster(1, 1), (NodeState.UP,), ())
DAY_S = 86_400.0


class Desk:
    """A card whose clock is moved by hand."""

    def __init__(self, command: Sequence[str], file: Path | None = None) -> None:
        self.now, self.metrics = 100.0, Metrics()
        self.card = ScoreCard(command, self.metrics.score, lambda: self.now, DAY_S, file)

    def cycle(self, later_s: float = 0.0) -> None:
        self.now += later_s
        self.card.on_cycle(CycleReport(1, 0.0, RunMode.SHADOW), SNAPSHOT)

    def make(self, later_s: float = DAY_S) -> None:
        self.cycle(later_s)
        while self.card.is_busy:
            time.sleep(0.05)
            self.cycle()

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"pilotfish_score_{name}", POLICY | labels)


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_the_metrics_are_the_numbers_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = tmp_path / "gpu"
    assert main(["generate", "site", "gpu", "--jobs", "300", "-o", str(site)]) == 0
    options = ["score", str(site), "--policy", "lookahead", "--repeat", "1", "--workers", "1", "--json"]
    capsys.readouterr()
    assert main(options) == 0
    card = json.loads(capsys.readouterr().out)
    desk = Desk([*score_command(tmp_path)[:5], *options])
    assert desk.value("timestamp_seconds") is None and desk.value("waiting_seconds", side="twin") is None
    began = time.time()
    desk.make()
    mean = card["measures"]["waiting"]["mean"]
    assert began <= (desk.value("timestamp_seconds") or 0.0) <= time.time()
    for side in ("recorded", "twin", "pilotfish"):
        assert desk.value("waiting_seconds", side=side) == pytest.approx(mean[side])
    assert desk.value("waiting_difference_seconds", bound="mean") == pytest.approx(mean["pilotfish"] - mean["twin"])
    assert desk.value("waiting_difference_seconds", bound="low") == mean["low"]
    assert desk.value("verdict", verdict=card["verdict"]) == 1.0
    assert desk.value("jobs", state="seen") == card["handed"]["seen"] == 300
    assert desk.value("period_seconds") == pytest.approx(card["days"] * DAY_S)
    assert card["makespan"] is None and desk.value("busy_makespan_seconds", side="twin") is None
    assert desk.value("utilisation_difference_ratio", bound="low") == pytest.approx(card["utilisation"]["low"])
    assert card["energy_j"] is None and desk.value("energy_joules", side="twin") is None
    assert card["contention"] is None and desk.value("contention_slowdown_ratio", side="actual") is None


def test_a_card_that_fails_leaves_the_one_before_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(python("import sys; sys.stderr.write('first\\nsacct cannot be read'); sys.exit(1)"))
    desk.metrics.score.show(document(), 1000.0)
    with caplog.at_level(logging.WARNING, logger="pilotfish.service"):
        desk.make()
        desk.make()
    assert [record.getMessage() for record in caplog.records] == ["no card can be made: sacct cannot be read"]
    assert desk.value("timestamp_seconds") == 1000.0 and desk.value("waiting_seconds", side="twin") == 9.0


def test_the_newest_card_outlasts_the_service(tmp_path: Path) -> None:
    file = tmp_path / "card.json"
    first = Desk(python(f"print({json.dumps(document())!r})"), file)
    assert first.card.newest is None and first.card.why_not
    first.make()
    second = Desk(python("import sys; sys.exit(1)"), file)
    assert second.card.newest == first.card.newest and not second.card.why_not
    assert second.value("waiting_seconds", side="twin") == 9.0
    assert second.value("timestamp_seconds") == first.value("timestamp_seconds")
    assert second.card.requests == 0 and file.stat().st_mode & 0o777 == 0o600
    second.make()  # it fails, and leaves the one before
    assert Desk(python(""), file).card.newest == first.card.newest


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"time": 1, "card": {}}', '{"time": "x", "card": null}', "[" * 10**5], ids=range(6)
)
def test_a_kept_card_that_cannot_be_read_counts_as_missing(content: str, tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(content)
    desk = Desk(python(""), tmp_path / "card.json")
    assert desk.card.newest is None and desk.card.why_not and desk.value("timestamp_seconds") is None


def test_without_room_the_card_is_shown_and_the_log_says_that_it_is_not_kept(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(python(f"print({json.dumps(document())!r})"), Path("/proc/card.json"))
    with caplog.at_level(logging.WARNING, logger="pilotfish.service"):
        desk.make()
    assert "a restart will not know the card" in caplog.text and desk.value("waiting_seconds", side="twin") == 9.0


@pytest.mark.parametrize("answer", ["", "[]", "{}", '{"judged": 1, "handed": 2}'])
def test_a_document_that_is_no_card_is_no_fault(answer: str, caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(python(f"print({answer!r})"))
    with caplog.at_level(logging.WARNING, logger="pilotfish.service"):
        desk.make()
    assert "its document cannot be read" in caplog.text and desk.value("timestamp_seconds") is None


def test_the_process_is_nice_comes_when_it_is_due_and_ends_with_the_service(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    desk = Desk(python(f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"))
    desk.cycle(1.0)
    assert not desk.card.is_busy
    desk.cycle(3600.0)
    while not (pid_file.exists() and pid_file.read_text()):
        time.sleep(0.01)
    pid = int(pid_file.read_text())
    assert desk.card.is_busy and os.getpriority(os.PRIO_PROCESS, pid) == NICE
    desk.card.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_process_ends_with_a_service_that_is_killed(tmp_path: Path) -> None:
    """Slurm's first answer never comes: the card waits for it, and its service is killed meanwhile."""
    pid_file, slow = tmp_path / "pid", tmp_path / "scontrol"
    slow.write_text(f"#!/bin/sh\necho $PPID > {pid_file}.new; mv {pid_file}.new {pid_file}\nexec sleep 600\n")
    slow.chmod(0o755)
    (tmp_path / "cluster.yaml").write_text("schema: pilotfish/cluster/v1\n")
    config = tmp_path / "pilotfish.yaml"
    config.write_text(
        f"schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nstate_dir: {tmp_path}\nadapter: {{name: slurm}}\n"
    )
    start = (
        "import pathlib, subprocess, time; from pilotfish.daemon.report.score_card import score_command; "
        f"subprocess.Popen(score_command(pathlib.Path({str(config)!r}))); time.sleep(600)"
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    with subprocess.Popen(python(start), env=os.environ | {"PATH": path}) as service:
        try:
            wait_until(pid_file.exists)
            card = Path("/proc") / pid_file.read_text().strip()
            assert b"score" in (card / "cmdline").read_bytes()
        finally:
            service.kill()
    wait_until(lambda: not card.exists() or b"score" not in (card / "cmdline").read_bytes())


def wait_until(wanted: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not wanted():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_requests_of_cards_are_counted() -> None:
    desk = Desk(python(f"print({json.dumps(document())!r})"))
    desk.make()
    assert desk.card.requests == desk.value("requests") == 17
    desk.make()
    assert desk.card.requests == 34 and desk.value("requests") == 17


def test_an_unknown_number_is_no_metric() -> None:
    desk = Desk(python(""))
    desk.metrics.score.show(document(), 1000.0)
    desk.metrics.score.show(document(recorded=None, low=None, verdict="loss"), 2000.0)
    assert desk.value("waiting_seconds", side="recorded") is None and desk.value("waiting_seconds", side="twin") == 9.0
    assert desk.value("waiting_difference_seconds", bound="low") is None
    assert desk.value("busy_makespan_seconds", side="twin") == 9.0
    assert desk.value("energy_joules", side="pilotfish") == 7.0 and desk.value("energy_joules", side="recorded") is None
    assert desk.value("contention_slowdown_ratio", side="actual") == 1.2
    assert desk.value("verdict", verdict="gain") is None and desk.value("verdict", verdict="loss") == 1.0


def document(verdict: str = "gain", **changes: float | None) -> dict[str, object]:
    mean = {"recorded": 8.0, "twin": 9.0, "pilotfish": 7.0, "low": -3.0, "high": -1.0} | changes
    handed = {"seen": 4, "compared": 4, "placed": 3.0, "released": 1.0}
    measures = {name: {"mean": mean} for name in ("waiting", "turnaround", "slowdown")}
    machine = {"makespan": mean, "utilisation": mean, "energy_j": mean, "contention": {"forecast": 1.1, "actual": 1.2}}
    card = {
        "judged": POLICY["policy"],
        "own_requests": 17,
        "days": 1.0,
        "verdict": verdict,
        "handed": handed,
        "measures": measures,
    }
    return card | machine
