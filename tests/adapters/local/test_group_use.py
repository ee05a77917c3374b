"""What control groups counted of an ended job, in both versions, complete or not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pilotfish.adapters.local.cgroups import ControlGroups, group_use
from tests.support.local_world import LocalWorld, sh

PRESSURE = "some avg10=1.00 avg60=0.50 avg300=0.10 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n"


def group(folder: Path, **files: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return str(folder)


def test_version_2(tmp_path: Path) -> None:
    directory = group(
        tmp_path / "g",
        cpu__stat="usage_usec 900\nuser_usec 600\nnr_periods 4\nnr_throttled 2\nthrottled_usec 1500000\n",
        memory__events="low 0\nhigh 12\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n",
        memory__peak="1048576\n",
        cpu__pressure=PRESSURE,
        io__pressure=PRESSURE.partition("\n")[0],
    )
    assert group_use([directory]) == {
        "throttled_seconds": 1.5,
        "memory_high_events": 12.0,
        "memory_max_events": 3.0,
        "oom_kill_events": 1.0,
        "group_memory_bytes": 1048576.0,
        "stalled_cpu_some_seconds": 2.5,
        "stalled_cpu_full_seconds": 0.5,
        "stalled_io_some_seconds": 2.5,
    }


def test_version_1_counts_in_several_hierarchies(tmp_path: Path) -> None:
    cpu = group(tmp_path / "cpu", cpu__stat="nr_periods 4\nnr_throttled 2\nthrottled_time 2000000000\n")
    oom = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"
    memory = group(
        tmp_path / "memory", memory__max_usage_in_bytes="4096\n", memory__failcnt="7\n", memory__oom_control=oom
    )
    assert group_use([cpu, memory, str(tmp_path / "gone")]) == {
        "throttled_seconds": 2.0,
        "group_memory_bytes": 4096.0,
        "memory_max_events": 7.0,
        "oom_kill_events": 2.0,
    }


@pytest.mark.parametrize(
    "text", ["", "\n", "throttled_usec", "throttled_usec -5\n", "throttled_usec 5 6\n", "max\n", "some avg10=0.00 tot"]
)
def test_an_unreadable_value_is_absent(tmp_path: Path, text: str) -> None:
    files = dict.fromkeys(("cpu__stat", "memory__events", "memory__peak", "cpu__pressure"), text)
    assert group_use([group(tmp_path / "g", **files)]) == {}
    (tmp_path / "g/cpu.stat").write_bytes(b"\xff\xfe 5\n")
    assert group_use([str(tmp_path / "g")]) == {}


@pytest.mark.real
@pytest.mark.skipif(
    not any(os.path.exists(f"{parent}/memory.failcnt") or os.path.exists(f"{parent}/cpu.pressure")
            for parent in ControlGroups.of_this_process().parents),
    reason="no control group that tells anything can be written here: nothing was tested",
)  # fmt: skip
def test_a_real_job_reports_what_its_groups_counted(tmp_path: Path) -> None:
    with LocalWorld(tmp_path) as world:
        used = dict(world.finish(sh("j", "sleep 0.2")).usage)
    assert used.get("group_memory_bytes", 0.0) > 0 or 0.0 <= used["stalled_cpu_some_seconds"] < 60.0
