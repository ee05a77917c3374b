"""CPUs, sockets, memory nodes and caches from the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.machine_share import Limits
from pilotfish.profiles.calibration.node_hardware import read_hardware


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sockets of two cores of two hardware threads: CPUs 0-3 and, their siblings, 4-7."""
    for cpu in range(8):
        socket = cpu % 4 // 2
        files = {
            "topology/physical_package_id": str(socket),
            "topology/thread_siblings_list": f"{cpu % 4},{cpu % 4 + 4}",
            "cache/index0/level": "1",
            "cache/index0/size": "32K",
            "cache/index0/shared_cpu_list": f"{cpu % 4},{cpu % 4 + 4}",
            "cache/index3/level": "3",
            "cache/index3/size": "1024K",
            "cache/index3/shared_cpu_list": f"{2 * socket}-{2 * socket + 1},{2 * socket + 4}-{2 * socket + 5}",
            "cpufreq/cpuinfo_max_freq": "3400000",
        }
        for name, text in files.items():
            path = tmp_path / f"cpu/cpu{cpu}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
    for node, cpus in enumerate(("0-1,4-5", "2-3,6-7", "")):
        (tmp_path / f"node/node{node}").mkdir(parents=True)
        (tmp_path / f"node/node{node}/cpulist").write_text(cpus + "\n")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)))
    return tmp_path


def test_threads_alternate_sockets_and_use_second_hardware_threads_last(system: Path) -> None:
    seen = read_hardware(system)
    assert seen.cpus == (0, 2, 1, 3, 4, 6, 5, 7)
    assert seen.sockets == ((0, 1, 4, 5), (2, 3, 6, 7))
    assert seen.hardware_threads == 2


def test_memory_nodes_caches_and_frequency(system: Path) -> None:
    seen = read_hardware(system)
    assert seen.memory_nodes == ((0, 1, 4, 5), (2, 3, 6, 7))  # one without CPUs is no place to compute
    assert seen.cache == 2 * 1024 * 1024
    assert seen.frequency == 3.4e9


def test_only_cpus_that_we_may_use_count(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {1, 5})
    seen = read_hardware(system)
    assert (seen.cpus, seen.sockets, seen.memory_nodes) == ((1, 5), ((1, 5),), ((1, 5),))


def test_cpus_and_memory_are_within_the_limits_of_control_groups(system: Path) -> None:
    seen = read_hardware(system, Limits(cpus=2.5, memory=1e6, free=6e5))
    assert (seen.memory, seen.free, seen.cpus) == (1_000_000, 600_000, (0, 2, 1))
    assert read_hardware(system, Limits()).free > 600_000


def test_without_topology_there_is_one_socket(tmp_path: Path) -> None:
    seen = read_hardware(tmp_path)
    assert len(seen.sockets) == 1 and seen.memory_nodes == () and seen.cache is None and seen.memory > 0
