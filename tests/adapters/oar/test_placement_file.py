"""The placement file: what it holds after a restart, and what it refuses."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.oar.placement_file import LONGEST_ALIVE_S, PlacementFile, silent_since
from pilotfish.simulate.errors import ConfigError
from tests.support.clock import Clock


def test_a_placement_ends_and_a_job_that_was_let_go_stays_so(tmp_path: Path) -> None:
    clock = Clock(1_000_000.0)
    file = PlacementFile(tmp_path / "f", ["queue q"], 600.0, clock)
    file.place(1, ("a",), 60.0, 30.0)
    file.free(2)
    file.place(2, ("a",), 60.0, 30.0)
    file.free(2)
    clock.now += 61
    reopened = PlacementFile(tmp_path / "f", ["queue q"], 600.0, clock)
    assert (dict(reopened.placed), set(reopened.freed)) == ({}, {2})
    reopened.retain([1])
    reopened.beat(30.0)
    assert not PlacementFile(tmp_path / "f", [], 600.0, clock).freed


@pytest.mark.parametrize("change", [lambda file: file.free(2), lambda file: file.unplace(1)], ids=["free", "unplace"])
def test_a_change_after_a_restart_ends_no_heartbeat(tmp_path: Path, change: Callable[[PlacementFile], None]) -> None:
    clock = Clock(1_000_000.0)
    PlacementFile(tmp_path / "f", ["queue q"], 600.0, clock).place(1, ("a",), 60.0, 30.0)
    clock.now += 5
    change(PlacementFile(tmp_path / "f", ["queue q"], 600.0, clock))
    assert silent_since(tmp_path / "f") == 1_000_030.0
    clock.now -= 3600  # now it holds for longer than any file may
    PlacementFile(tmp_path / "f", ["queue q"], 600.0, clock).free(3)
    assert silent_since(tmp_path / "f") == 0.0


def test_a_clock_that_is_set_back_prolongs_no_placement(tmp_path: Path) -> None:
    clock = Clock(1_000_000.0)
    file = PlacementFile(tmp_path / "f", ["queue q"], 600.0, clock)
    file.place(1, ("a",), 60.0, 30.0)
    clock.now -= 3600
    assert not file.placed
    file.beat(30.0)
    assert "\nplace" not in file.text() and f"alive {int(clock.now) + 30}\n" in file.text()


def test_a_placement_never_shortens_the_heartbeat_and_nothing_holds_for_long(tmp_path: Path) -> None:
    clock = Clock(1_000_000.0)
    file = PlacementFile(tmp_path / "f", ["queue q"], 600.0, clock)
    file.beat(1e9)
    assert f"alive {int(clock.now) + LONGEST_ALIVE_S - 1}\n" in file.path.read_text()
    file.place(1, ("a",), 60.0, 5.0)
    assert f"alive {int(clock.now) + LONGEST_ALIVE_S - 1}\n" in file.path.read_text()


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    file = PlacementFile(tmp_path / "f", ["queue q"], 600.0)
    file.read_only = True
    file.beat(30.0)
    file.place(1, ("a",), 60.0, 30.0)
    file.free(2)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("node", ["a b", "a'", "", "ä", "a\n", "x" * 101])
def test_a_node_that_the_file_cannot_hold_is_refused(tmp_path: Path, node: str) -> None:
    file = PlacementFile(tmp_path / "f", ["queue q"], 600.0)
    with pytest.raises(AdapterError, match="cannot hold"):
        file.place(1, (node,), 60.0, 30.0)
    assert not file.path.exists()


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    file = PlacementFile(tmp_path / "missing" / "f", ["queue q"], 600.0)
    with pytest.raises(AdapterError, match="OAR places jobs without us") as caught:
        file.beat(30.0)
    assert caught.value.transient and "missing" in str(caught.value)


def test_a_folder_of_others_is_not_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(AdapterError, match="not trusted"):
        PlacementFile(folder / "f", ["queue q"], 600.0).beat(30.0)


def test_one_daemon_at_a_time_writes_a_file(tmp_path: Path) -> None:
    first, second = (PlacementFile(tmp_path / "placements", ["queue pilot"], 600.0) for _ in range(2))
    first.lock()
    with pytest.raises(ConfigError, match=rf"another pilotfish daemon .process {os.getpid()}. writes {first.path}"):
        second.lock()
    first.unlock()
    second.lock()
    second.unlock()
    PlacementFile(
        tmp_path / "missing" / "placements", ["queue pilot"], 600.0
    ).lock()  # the heartbeat says what is wrong
