"""What the service costs: counted over all of its runs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pilotfish.adapters.base import Load
from pilotfish.adapters.simulated.adapter import SimulatedAdapter
from pilotfish.cli.service.accuracy import read_journal
from pilotfish.daemon.report.cycle_report import CycleReport
from pilotfish.daemon.report.running_cost import EVERY_S, RunningCost, used_cpu_s
from pilotfish.daemon.run_modes import RunMode
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.unsaved import Unsaved
from pilotfish.simulate.model.snapshot import NodeState, Snapshot
from tests.daemon.conftest import make_cluster

SNAPSHOT = Snapshot(0.0, 1, make_cluster(1, 1), (NodeState.UP,), ())


class Counting(SimulatedAdapter):
    """An adapter that counts its requests."""

    def load(self) -> Load:
        return Load(requests={("squeue", "ok"): 10, ("squeue", "timeout"): 2, ("squeue", "budget"): 5})


def run(path: Path, adapter: SimulatedAdapter, before_s: float = 0.0, seconds: float = EVERY_S) -> None:
    """Run a service for a while, and end it."""
    journal, unsaved, now = Journal(path), Unsaved(), 50.0
    cost = RunningCost(adapter, journal, unsaved, lambda: now, before_s)
    for later in (0.0, 1.0, seconds):
        now = 50.0 + later
        cost.on_cycle(CycleReport(1, 0.0, RunMode.SHADOW), SNAPSHOT)
    journal.save([], unsaved=unsaved)
    journal.close()


def test_the_costs_of_all_runs_are_kept(tmp_path: Path) -> None:
    path, adapter = tmp_path / "journal.sqlite", Counting(make_cluster(1, 1))
    begun = used_cpu_s()
    run(path, adapter)
    first = read_journal(path)["cost"]
    assert first["until"] == SNAPSHOT.time
    assert first["requests"] == 12 and first["running_s"] == EVERY_S and begun <= first["cpu_s"] <= used_cpu_s()
    counted = used_cpu_s()
    while used_cpu_s() < counted + 0.05:
        time.sleep(0.0)
    run(path, adapter, before_s=counted)
    both = read_journal(path)["cost"]
    assert both["requests"] == 24 and both["running_s"] == 2 * EVERY_S
    assert both["cpu_s"] - first["cpu_s"] == pytest.approx(used_cpu_s() - counted, abs=0.5)
    assert both["cpu_s"] > first["cpu_s"] + 0.03  # both are rounded


def test_a_stop_notes_what_came_after_the_last_note_and_cards_count(tmp_path: Path) -> None:
    journal, unsaved, now, cards = Journal(tmp_path / "journal.sqlite"), Unsaved(), 0.0, 0
    cost = RunningCost(Counting(make_cluster(1, 1)), journal, unsaved, lambda: now, 0.0, lambda: cards)
    cost.on_cycle(CycleReport(1, 0.0, RunMode.SHADOW), SNAPSHOT)
    now, cards = EVERY_S / 2, 7
    cost.on_cycle(CycleReport(2, 0.0, RunMode.SHADOW), SNAPSHOT)
    assert unsaved.kept["cost"]["running_s"] == 0.0
    cost.note()
    assert unsaved.kept["cost"]["running_s"] == EVERY_S / 2 and unsaved.kept["cost"]["requests"] == 19
    journal.close()


def test_requests_that_are_not_counted_are_unknown(tmp_path: Path) -> None:
    run(tmp_path / "journal.sqlite", SimulatedAdapter(make_cluster(1, 1)))
    assert read_journal(tmp_path / "journal.sqlite")["cost"]["requests"] is None


def test_a_journal_without_costs_has_none(tmp_path: Path) -> None:
    Journal(tmp_path / "journal.sqlite").close()
    assert read_journal(tmp_path / "journal.sqlite")["cost"] == {}
