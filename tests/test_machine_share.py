"""What this process may use of its machine: limits of both versions of control groups, its own and those above."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pilotfish
from pilotfish.machine_share import Limits, control_group_limits, free_memory, usable_cpus, usable_memory

GIB = 2**30
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1 = (
    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
)

#: What Linux 6.1 shows, and lines of memory.stat after a group has read many files.
REAL = "37 31 0:30 / /sys/fs/cgroup rw,relatime - cgroup2 cg rw"
STAT = "anon 638976\nfile 406958080\nkernel 4468736\ninactive_file 194199552\nactive_file 212758528\nslab 4326328"


def machine(root: Path, membership: str, mounts: str, files: dict[str, str]) -> Path:
    for name, text in {"proc/self/cgroup": membership, "proc/self/mountinfo": mounts, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("membership", "mounts", "files", "limits"),
    [
        pytest.param("0::/", V2, {"sys/fs/cgroup/cgroup.procs": ""}, Limits(), id="no limit"),
        pytest.param(
            "0::/user.slice/run.scope",
            V2,
            {
                "sys/fs/cgroup/user.slice/run.scope/cpu.max": "150000 100000",
                "sys/fs/cgroup/user.slice/run.scope/memory.max": str(2 * GIB),
                "sys/fs/cgroup/user.slice/run.scope/memory.current": str(GIB),
                "sys/fs/cgroup/user.slice/cpu.max": "max 100000",
                "sys/fs/cgroup/user.slice/memory.max": "max",
            },
            Limits(
                1.5, 2 * GIB, GIB, "/sys/fs/cgroup/user.slice/run.scope/cpu.max",
                "/sys/fs/cgroup/user.slice/run.scope/memory.max",
            ),
            id="version 2, own group",
        ),
        pytest.param(
            "0::/a/b/c",
            V2,
            {
                "sys/fs/cgroup/a/b/c/cpu.max": "800000 100000",
                "sys/fs/cgroup/a/b/c/memory.max": str(8 * GIB),
                "sys/fs/cgroup/a/b/c/memory.current": "0",
                "sys/fs/cgroup/a/b/memory.max": str(5 * GIB),
                "sys/fs/cgroup/a/b/memory.current": str(4 * GIB),
                "sys/fs/cgroup/a/cpu.max": "50000 100000",
            },
            Limits(0.5, 5 * GIB, GIB, "/sys/fs/cgroup/a/cpu.max", "/sys/fs/cgroup/a/b/memory.max"),
            id="version 2, groups above",
        ),
        pytest.param(
            "0::/",
            V2,
            {"sys/fs/cgroup/cpu.max": "200000 100000", "sys/fs/cgroup/memory.max": str(GIB)},
            Limits(2.0, GIB, GIB, "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max"),
            id="version 2, a namespace of its own",
        ),
        pytest.param(
            "0::/p/q",
            REAL,
            {
                "sys/fs/cgroup/cgroup.procs": "",
                "sys/fs/cgroup/p/q/cpu.max": "max 100000",
                "sys/fs/cgroup/p/q/memory.max": "max",
                "sys/fs/cgroup/p/q/memory.high": "524288000",
                "sys/fs/cgroup/p/q/memory.current": "412471296",
                "sys/fs/cgroup/p/q/memory.stat": STAT,
                "sys/fs/cgroup/p/cpu.max": "50000 100000",
                "sys/fs/cgroup/p/memory.max": "943718400",
            },
            Limits(
                0.5, 524288000.0, 524288000.0 - (412471296 - 194199552 - 212758528), "/sys/fs/cgroup/p/cpu.max",
                "/sys/fs/cgroup/p/q/memory.high",
            ),
            id="Linux 6.1: a limit that slows, and memory full of cached files",
        ),
        pytest.param(
            "0::/p/q",
            "53 46 0:30 /p/q /sys/fs/cgroup rw,relatime - cgroup2 cg rw",
            {"sys/fs/cgroup/cpu.max": "70000 100000"},
            Limits(0.7, cpus_file="/sys/fs/cgroup/cpu.max"),
            id="Linux 6.1: the own group is mounted, in the namespace of the host",
        ),
        pytest.param(
            "0::/../../b2",
            "37 31 0:30 /../.. /sys/fs/cgroup rw,relatime - cgroup2 cg rw",
            {"sys/fs/cgroup/b2/cpu.max": "70000 100000"},
            Limits(0.7, cpus_file="/sys/fs/cgroup/b2/cpu.max"),
            id="Linux 6.1: moved out of its namespace, mounted before it",
        ),
        pytest.param(
            "4:memory:/j",
            V1,
            {
                "sys/fs/cgroup/memory/j/memory.limit_in_bytes": str(GIB),
                "sys/fs/cgroup/memory/j/memory.usage_in_bytes": str(GIB // 2),
                "sys/fs/cgroup/memory/j/memory.stat": (
                    f"inactive_file 0\nactive_file 0\ntotal_inactive_file {GIB // 4}\ntotal_active_file {GIB // 8}"
                ),
            },
            Limits(
                memory=GIB, free=GIB * 7 / 8, memory_file="/sys/fs/cgroup/memory/j/memory.limit_in_bytes"
            ),
            id="version 1, memory full of the cached files of groups below",
        ),
        pytest.param(
            "4:memory:/site/job\n3:cpuset:/\n1:cpu,cpuacct:/site",
            V1,
            {
                "sys/fs/cgroup/cpu,cpuacct/site/cpu.cfs_quota_us": "250000",
                "sys/fs/cgroup/cpu,cpuacct/site/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/memory/site/job/memory.limit_in_bytes": "9223372036854771712",
                "sys/fs/cgroup/memory/site/memory.limit_in_bytes": str(3 * GIB),
                "sys/fs/cgroup/memory/site/memory.usage_in_bytes": str(2 * GIB),
            },
            Limits(
                2.5, 3 * GIB, GIB, "/sys/fs/cgroup/cpu,cpuacct/site/cpu.cfs_quota_us",
                "/sys/fs/cgroup/memory/site/memory.limit_in_bytes",
            ),
            id="version 1",
        ),
        pytest.param(
            "4:memory:/docker/abc\n0::/docker/abc",
            "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
            {
                "sys/fs/cgroup/memory/memory.limit_in_bytes": str(GIB),
                "sys/fs/cgroup/unified/docker/abc/cpu.max": "100000 100000",
            },
            Limits(
                1.0, GIB, GIB, "/sys/fs/cgroup/unified/docker/abc/cpu.max",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            ),
            id="hybrid, in a container whose mounts begin at its group",
        ),
        pytest.param(
            "4:memory:/docker/abc\n0::/../../docker/abc",
            "35 31 0:32 /other /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" + V2,
            {"sys/fs/cgroup/memory/memory.limit_in_bytes": str(GIB), "sys/fs/cgroup/cpu.max": "100000 50000"},
            Limits(
                2.0, GIB, GIB, "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"
            ),
            id="the group is not below the mount",
        ),
    ],
)  # fmt: skip
def test_the_least_of_the_own_group_and_all_above_counts(
    tmp_path: Path, membership: str, mounts: str, files: dict[str, str], limits: Limits
) -> None:
    assert control_group_limits(machine(tmp_path, membership, mounts, files)) == limits


WORDS = st.sampled_from(["max", "-1", "0", "100000", "1e5", "", "x", "²", "9" * 30, "0 0", "max max", "50000 100000"])


@given(membership=st.text("0:/.acpu,memory\n"), mounts=st.text("0 /-rw,cgroup2\n"), files=st.lists(WORDS, min_size=4))
def test_what_cannot_be_read_limits_nothing(
    tmp_path_factory: pytest.TempPathFactory, membership: str, mounts: str, files: list[str]
) -> None:
    root = tmp_path_factory.mktemp("machine")
    names = ("cpu.max", "memory.max", "memory.current", "memory.limit_in_bytes")
    texts = {f"sys/fs/cgroup/{name}": text for name, text in zip(names, files, strict=False)}
    for lines in ((membership, mounts), ("0::/", V2)):
        limits = control_group_limits(machine(root, *lines, texts))
        assert limits.cpus >= 0 and limits.memory >= 0 and limits.free >= 0
        assert math.isinf(limits.cpus) == (not limits.cpus_file) and len(usable_cpus(limits)) >= 1
    assert control_group_limits(root / "nothing") == Limits()


@pytest.mark.parametrize(("quota", "count"), [(math.inf, 6), (6.0, 6), (5.1, 6), (1.5, 2), (1.0, 1), (0.2, 1)])
def test_the_quota_is_rounded_up(monkeypatch: pytest.MonkeyPatch, quota: float, count: int) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {9, 3, 4, 5, 6, 7})
    assert usable_cpus(Limits(cpus=quota)) == [3, 4, 5, 6, 7, 9][:count]


def test_memory_is_at_most_the_limit(tmp_path: Path) -> None:
    assert usable_memory(Limits(memory=1e6)) == 1_000_000 < usable_memory(Limits())
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    3000 kB\nodd\n")
    assert free_memory(Limits(), tmp_path) == 3_072_000
    assert free_memory(Limits(free=5e5), tmp_path) == 500_000


#: What would count CPUs or memory that this process may not use.
ELSEWHERE = re.compile(r"cpu_count\(|SC_PHYS_PAGES|virtual_memory|SC_NPROCESSORS|MemTotal|len\(os\.sched_getaffinity")


def test_nothing_else_counts_the_cpus_or_the_memory_of_the_machine() -> None:
    root = Path(pilotfish.__file__).parent
    rooms = ("cli", "daemon", "profiles", "adapters", "formats", "simulate", "learning", "web")
    files = [path for room in rooms for path in (root / room).rglob("*.py")]
    assert len(files) > 500
    assert [str(path) for path in files if ELSEWHERE.search(path.read_text())] == []
