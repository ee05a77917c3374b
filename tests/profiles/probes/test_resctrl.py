"""Bandwidth monitoring by resctrl, on a simulated tree whose folders fill like the kernel's."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from pilotfish.profiles.measure.counters import Counters
from pilotfish.profiles.probes.process_tree import ProcessTree
from pilotfish.profiles.probes.resctrl import (
    MonitoredTraffic,
    Resctrl,
    group_name,
    membership,
    read_total,
)

STAT = "77 (a job) S 1 77 " + "0 " * 16 + "4711 0 0"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """/sys/fs/resctrl of a machine with two last-level caches; making a folder there makes a group."""
    folder = tmp_path / "sys/fs/resctrl"
    (folder / "mon_groups").mkdir(parents=True)
    (folder / "batch/mon_groups").mkdir(parents=True)
    (folder / "info/L3_MON").mkdir(parents=True)
    (folder / "info/L3_MON/mon_features").write_text("llc_occupancy\nmbm_total_bytes\nmbm_local_bytes\n")
    for pid in (77, os.getpid()):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/stat").write_text(STAT)
    (tmp_path / "proc/77/cpu_resctrl_groups").write_text("res:/\nmon:\n")
    mkdir, rmdir = os.mkdir, os.rmdir

    def make(path, mode=0o777, **options):
        mkdir(path, mode, **options)
        if Path(path).parent.name == "mon_groups":
            (Path(path) / "tasks").write_text("")
            fill(Path(path), 100)

    def remove(path, **options):
        if Path(path).parent.name == "mon_groups":
            shutil.move(path, tmp_path / "removed" / f"{len(list((tmp_path / 'removed').iterdir()))}")
        else:
            rmdir(path, **options)

    (tmp_path / "removed").mkdir()

    monkeypatch.setattr(os, "mkdir", make)
    monkeypatch.setattr(os, "rmdir", remove)
    return tmp_path


def fill(group, total):
    for domain in ("mon_L3_00", "mon_L3_01"):
        (group / "mon_data" / domain).mkdir(parents=True, exist_ok=True)
        (group / "mon_data" / domain / "mbm_total_bytes").write_text(f"{total}\n")


def groups(root):
    return sorted((root / "sys/fs/resctrl").glob("**/mon_groups/*"))


def test_a_job_gets_a_monitoring_group(root):
    probe = Resctrl(root)
    assert probe.available() is None
    probe.start(ProcessTree(77), 0.0)
    (group,) = groups(root)
    assert group.name == group_name(os.getpid(), root, 77)
    assert (group / "tasks").read_text() == "77"
    fill(group, 1100)
    probe.sample(1.0)
    fill(group, "Unavailable")
    probe.sample(2.0)
    assert probe.stop() == MonitoredTraffic(2000.0)
    assert groups(root) == []


def test_a_job_in_a_control_group_is_monitored_there(root):
    (root / "proc/77/cpu_resctrl_groups").write_text("res:batch\nmon:\n")
    probe = Resctrl(root)
    probe.start(ProcessTree(77), 0.0)
    assert [group.parent.parent.name for group in groups(root)] == ["batch"]
    probe.stop()
    assert groups(root) == []


def test_a_monitored_job_is_left_alone(root):
    (root / "proc/77/cpu_resctrl_groups").write_text("res:batch\nmon:theirs\n")
    probe = Resctrl(root)
    probe.start(ProcessTree(77), 0.0)
    probe.sample(1.0)
    assert probe.stop().problem == "stepped back: the job is already in the monitoring group theirs"
    assert groups(root) == []


def test_no_free_group_is_reported(root, monkeypatch):
    def full(path, *rest):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(os, "mkdir", full)
    probe = Resctrl(root)
    probe.start(ProcessTree(77), 0.0)
    assert probe.stop().problem.startswith("stepped back: no monitoring group is available")


def test_only_stale_groups_are_removed(root):
    folder = root / "sys/fs/resctrl"
    alive, reused, dead = (
        folder / "mon_groups" / name for name in ("pilotfish.77.4711.5", "pilotfish.77.12.5", "pilotfish.99.4711.5")
    )
    inner, foreign = folder / "batch/mon_groups/pilotfish.98.1.1", folder / "mon_groups/somebody.99.1.1"
    for group in (alive, reused, dead, inner, foreign):
        group.mkdir()
    probe = Resctrl(root)
    probe.start(ProcessTree(77), 0.0)
    probe.stop()
    assert groups(root) == sorted([alive, foreign])


def test_unavailable_counters_are_not_zero(root):
    probe = Resctrl(root)
    probe.start(ProcessTree(77), 0.0)
    (group,) = groups(root)
    fill(group, "Unassigned")
    probe._first = probe._last = None
    probe.sample(1.0)
    found = probe.stop()
    assert found.moved_bytes is None and "unavailable" in found.problem


def test_one_unreadable_cache_makes_the_sum_unknown(tmp_path):
    fill(tmp_path, 5)
    assert read_total(tmp_path) == 10.0
    (tmp_path / "mon_data/mon_L3_01/mbm_total_bytes").write_text("Unavailable\n")
    assert read_total(tmp_path) is None
    assert read_total(tmp_path / "gone") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("", "")),
        ("res:\nmon:\n", ("", "")),
        ("res:/\nmon:m\n", ("", "m")),
        ("res:g\nmon:\n", ("g", "")),
        ("x", ("", "")),
    ],
)
def test_membership(text, expected):
    assert membership(text) == expected


def test_an_unavailable_probe_says_why(tmp_path):
    assert "no resctrl" in Resctrl(tmp_path).available()
    (tmp_path / "sys/fs/resctrl").mkdir(parents=True)
    assert "not mounted" in Resctrl(tmp_path).available()
    (tmp_path / "sys/fs/resctrl/mon_groups").mkdir()
    assert "only nothing" in Resctrl(tmp_path).available()


def test_traffic_history_gives_phases(root):
    counters = Counters(root, ["resctrl"])
    counters.start(ProcessTree(77), 0.0)
    (group,) = groups(root)
    for second, total in ((1.0, 600), (2.0, 1600)):
        fill(group, total)
        counters.sample(second)
    moved, _ = counters.traffic.at([0.0, 1.0, 1.5, 2.0])
    assert moved.tolist() == [0.0, 1000.0, 2000.0, 3000.0]  # of both caches
    counters.give_up()
    assert Counters(root, []).traffic is None


def test_without_counters_there_is_no_traffic_history(root):
    counters = Counters(root, ["resctrl"])
    (root / "proc/77/cpu_resctrl_groups").write_text("res:batch\nmon:theirs\n")
    counters.start(ProcessTree(77), 0.0)
    counters.sample(1.0)
    assert counters.traffic is None
