"""A container's share of the machine: the command in control groups with a CPU quota, a memory limit, and a cpuset."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from real_world import COMMAND, CPUS, PATIENCE_S

MEMORY = 3 * 2**30
#: Files of a group with a quota of half a CPU, one CPU, and a memory limit; version 1, then version 2.
FILES = {
    "cpu": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"},
    "memory": {"memory.limit_in_bytes": str(MEMORY)},
    "cpuset": {"cpuset.cpus": str(CPUS[-1]), "cpuset.mems": "0"},
    "": {"cpu.max": "50000 100000", "memory.max": str(MEMORY), "cpuset.cpus": str(CPUS[-1])},
}


def mounted() -> dict[str, Path]:
    """Return the mount point of each controller; version 2's under ""."""
    mounts = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, folder, kind, options, *_ = line.split()
        if kind == "cgroup2":
            mounts[""] = Path(folder)
        elif kind == "cgroup":
            mounts |= dict.fromkeys({"cpu", "memory", "cpuset"}.intersection(options.split(",")), Path(folder))
    return mounts


@pytest.fixture
def groups(request: pytest.FixtureRequest) -> Iterator[dict[str, Path]]:
    """New groups with the limits of the controllers that the test names, by controller."""
    folders: dict[str, Path] = {}
    try:
        for name in ("cpu", "memory", "cpuset"):
            kind = name if name in mounted() else ""
            own = "-cpuset" if name == "cpuset" else ""  # version 2: a process has one group for all controllers
            folder = mounted()[kind] / f"pilotfish-test-{os.getpid()}{own}"
            folder.mkdir(exist_ok=True)
            folders[name] = folder
            for file, text in FILES[kind].items():
                if kind or file.startswith(f"{name}."):
                    (folder / file).write_text(text)
        yield folders
    except (OSError, KeyError) as error:
        pytest.skip(f"control groups cannot be made here ({error}): the limits of a container were NOT tested")
    finally:
        for folder in folders.values():
            for made in sorted((*folder.rglob("*/"), folder), reverse=True):  # jobs had groups of their own below
                with suppress(OSError):
                    made.rmdir()


def within(groups: list[Path], *argv: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command in these groups."""
    join = "".join(f"echo $$ > {folder}/cgroup.procs && " for folder in groups)
    line = ["sh", "-c", f'{join}exec "$@"', "sh", *COMMAND, *map(str, argv)]
    return subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_the_nodes_of_a_container_are_its_share_of_the_machine(groups: dict[str, Path], tmp_path: Path) -> None:
    folders = [groups["cpu"], groups["memory"]]
    printed = within(folders, "cluster", "--json")
    document = json.loads(printed.stdout)
    (node,) = document["nodes"]
    assert node["cpus"] == str(CPUS[0])
    (kind,) = document["node_types"].values()
    assert kind["memory"] == "3GiB"
    if len(CPUS) > 1:
        assert f"CPU time is limited to that of 0.5 ({groups['cpu']}/cpu." in printed.stderr
        assert f"pilotfish uses 1 of {len(CPUS)} CPUs" in printed.stderr
    assert "memory is limited to 3GiB of" in printed.stderr
    findings = json.loads(within(folders, "doctor", "--adapter", "local", "--json").stdout)["findings"]
    texts = [each["says"] for each in findings if each["topic"] == "limits"]
    assert len(texts) == 1 + (len(CPUS) > 1) and "memory is limited" in texts[-1]


def test_a_run_in_a_container_says_what_its_nodes_have_too_much(groups: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "dag.yaml").write_text(
        "schema: pilotfish/workflow/v1\nname: w\njobs: {a: {command: 'true', profile: {service_demand: 0.1}}}\n"
    )
    (tmp_path / "all.yaml").write_text(
        "schema: pilotfish/cluster/v1\nname: all\nnode_types: {t: {cores: 1, memory: 64GiB, memory_bandwidth: 8GB/s}}\n"
        f"nodes: [{{names: a, type: t, cpus: '{CPUS[0]}'}}]\n"
    )
    ran = within(
        [groups["cpu"], groups["memory"]], "run", tmp_path / "dag.yaml", "--cluster", tmp_path / "all.yaml",
        "--state-dir", tmp_path / "state", "--store", tmp_path / "profiles.sqlite",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "the nodes have 1 CPU, and CPU time is limited to that of 0.5" in ran.stderr
    assert "all jobs together are limited to 3GiB" in ran.stderr


def test_a_cpuset_is_a_share_of_the_cpus(groups: dict[str, Path]) -> None:
    document = json.loads(within([groups["cpuset"]], "cluster", "--json").stdout)
    assert [node["cpus"] for node in document["nodes"]] == [str(CPUS[-1])]


def test_doctor_names_the_controllers_that_the_jobs_of_a_run_have(groups: dict[str, Path], tmp_path: Path) -> None:
    """In version 2 the group holds our own process, so it gives its children no memory controller."""
    (tmp_path / "dag.yaml").write_text(
        "schema: pilotfish/workflow/v1\nname: w\n"
        "jobs: {a: {command: [cat, /proc/self/cgroup], profile: {service_demand: 0.1}}}\n"
    )
    folders = [*{groups[name]: None for name in ("cpu", "memory")}]
    findings = json.loads(within(folders, "doctor", "--adapter", "local", "--json").stdout)["findings"]
    (finding,) = (each["says"] for each in findings if each["topic"] == "cgroups")
    ran = within(folders, "run", tmp_path / "dag.yaml", "--state-dir", tmp_path / "state", "--json")
    assert ran.returncode == 0, ran.stderr
    for name in ("cpuset", "cpu", "memory"):
        absent = re.search(rf"no writable [a-z, ]*\b{name}\b", ran.stderr) is not None
        assert absent == (re.search(rf"no writable control groups for [a-z, ]*\b{name}\b", finding) is not None)
    (job,) = json.loads(ran.stdout)["jobs"]
    own = {line.partition("/")[0]: line for line in Path(job["stdout"]).read_text().splitlines()}
    kinds = {name if name in mounted() else "" for name in ("cpuset", "cpu")}
    lines = [line for start, line in own.items() if set(start.split(":")[1].split(",")) & kinds]
    assert lines and all(f"/pilotfish-{os.getuid()}/job-" in line for line in lines)
