"""Control groups: found in either version, filled in as the kernel requires, and always optional."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from pilotfish.adapters.local import cgroups
from pilotfish.adapters.local.cgroups import ControlGroups, controllers_below, group_use, members, remove

OURS = f"pilotfish-{os.getuid()}"


def grow(directory: Path, files: dict[str, str]) -> None:
    """Create a directory as the kernel would fill it."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text)


def version_1(root: Path) -> tuple[str, str]:
    cpuset = {"cgroup.procs": "", "cpuset.cpus": "0-3", "cpuset.mems": "0"}
    grow(root / "cpuset" / OURS, cpuset | {"cpuset.cpus": "", "cpuset.mems": ""})
    grow(root / "cpuset", cpuset)
    grow(root / "cpuset" / OURS / "j", cpuset | {"cpuset.cpus": "", "cpuset.mems": ""})
    grow(root / "memory" / "site" / OURS, {"cgroup.procs": ""})
    grow(root / "memory" / "site" / OURS / "j", {"cgroup.procs": "", "memory.limit_in_bytes": ""})
    mounts = (f"cgroup {root}/{name} cgroup rw,{name} 0 0\n" for name in ("cpuset", "memory"))
    return "".join(mounts) + "x / ext4 rw 0 0\n", "5:freezer:/\n4:memory:/site\n3:cpuset:/\n"


def version_2(root: Path) -> tuple[str, str]:
    service = root / "service"
    for group in (service, service / OURS, service / OURS / "j"):
        grow(
            group,
            {"cgroup.procs": "", "cgroup.controllers": "", "cgroup.subtree_control": "cpuset cpu memory"},
        )
    grow(service / OURS / "j", {"cpuset.cpus": "", "memory.max": ""})
    return f"cgroup2 {root} cgroup2 rw 0 0\n", "0::/service\n"


def test_version_1(tmp_path: Path) -> None:
    groups = ControlGroups(*version_1(tmp_path))
    assert groups.make("j", (0, 2), 5e6) == (
        f"{tmp_path}/cpuset/{OURS}/j",
        f"{tmp_path}/memory/site/{OURS}/j",
    )
    assert (tmp_path / "cpuset" / OURS / "cpuset.mems").read_text() == "0"
    assert (tmp_path / "cpuset" / OURS / "j" / "cpuset.cpus").read_text() == "0,2"
    assert (tmp_path / "cpuset" / OURS / "j" / "cpuset.mems").read_text() == "0"
    assert (tmp_path / "memory" / "site" / OURS / "j" / "memory.limit_in_bytes").read_text() == "5000000"
    assert groups.notes == (
        "no writable cpu control group: CPUs are shared as the kernel shares them between sessions",
    )


def test_version_2(tmp_path: Path) -> None:
    groups = ControlGroups(*version_2(tmp_path))
    (directory,) = groups.make("j", (1,), 7.0)
    assert (Path(directory) / "cpuset.cpus").read_text() == "1"
    assert (Path(directory) / "memory.max").read_text() == "7"
    assert groups.notes == ()


def test_a_group_that_holds_a_process_has_threaded_groups_below(tmp_path: Path) -> None:
    """As Linux 6.1 shows them: a group below admits no process before it is threaded."""
    mounts, membership = version_2(tmp_path)
    parent = tmp_path / "service" / OURS
    grow(tmp_path / "service", {"cgroup.type": "domain threaded", "cgroup.subtree_control": "cpuset cpu"})
    for group in (parent, parent / "j"):
        grow(group, {"cgroup.type": "domain invalid\n", "cgroup.subtree_control": "cpuset cpu"})
    (job,) = ControlGroups(mounts, membership).make("j", (1,), 7.0)
    assert [(group / "cgroup.type").read_text()[:8] for group in (parent, Path(job))] == ["threaded"] * 2
    grow(parent / "k", {"cgroup.type": "domain"})
    ControlGroups(mounts, membership).make("k", (), 0.0)
    assert (parent / "k" / "cgroup.type").read_text() == "domain"


@pytest.mark.parametrize(
    ("files", "controllers"),
    [
        ({}, {"cpuset", "cpu", "memory"}),
        ({"cgroup.type": "domain"}, {"cpuset", "cpu"}),
        ({"cgroup.type": "threaded", "cgroup.controllers": "cpu pids"}, {"cpu"}),
    ],
)
def test_only_the_root_group_gives_memory_to_groups_below_while_it_holds_a_process(
    tmp_path: Path, files: dict[str, str], controllers: set[str]
) -> None:
    grow(tmp_path, {"cgroup.controllers": "cpuset cpu io memory hugetlb pids"} | files)
    assert controllers_below(str(tmp_path)) == controllers


def test_a_threaded_group_is_asked_for_its_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(tmp_path, {"cgroup.procs": "12\n13\n", "cgroup.threads": "12\n14\n"})
    assert members(str(tmp_path)) == {12, 13}
    read = cgroups._read

    def as_the_kernel(group: str, name: str) -> str:
        if name == "cgroup.procs":
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return read(group, name)

    monkeypatch.setattr(cgroups, "_read", as_the_kernel)
    assert members(str(tmp_path)) == {12, 14}


def test_a_limit_of_zero_is_no_limit(tmp_path: Path) -> None:
    (directory,) = ControlGroups(*version_2(tmp_path)).make("j", (1,), 0.0)
    assert (Path(directory) / "memory.max").read_text() == ""


@pytest.mark.parametrize("mounts, membership", [("", ""), ("cgroup2 /nonexistent cgroup2 rw 0 0\n", "0::/a\n")])
def test_without_groups_there_is_one_note_and_no_error(mounts: str, membership: str) -> None:
    groups = ControlGroups(mounts, membership)
    (note,) = groups.notes
    assert note == "without control groups pinning and memory limits are not enforced"
    assert groups.make("j", (0,), 1.0) == ()


def test_groups_that_were_left_behind_are_swept_and_new_ones_are_not(tmp_path: Path) -> None:
    groups = ControlGroups(*version_2(tmp_path))
    parent = tmp_path / "service" / OURS
    for name, age in (("old", 3600), ("new", 0), ("busy", 3600)):
        grow(parent / name, {"cgroup.procs": "1"} if name == "busy" else {})
        os.utime(parent / name, (time.time() - age,) * 2)
    groups.sweep()
    assert sorted(path.name for path in parent.iterdir() if path.is_dir()) == ["busy", "j", "new"]


def test_removing_what_is_not_there_is_harmless(tmp_path: Path) -> None:
    (tmp_path / "group").mkdir()
    remove((str(tmp_path / "nowhere"), str(tmp_path / "group")))
    assert not (tmp_path / "group").exists()


@pytest.mark.parametrize(
    "name, text, killed",
    [
        ("memory.events", "low 0\noom 1\noom_kill 1\n", True),
        ("memory.events", "low 0\noom 1\noom_kill 0\n", False),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", True),
        ("other", "oom_kill 2\n", False),
    ],
)
def test_a_kill_for_memory_is_seen(tmp_path: Path, name: str, text: str, killed: bool) -> None:
    (tmp_path / name).write_text(text)
    assert (group_use([str(tmp_path)]).get("oom_kill_events", 0) > 0) is killed
