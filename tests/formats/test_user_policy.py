"""What a service executes: one file that only its account or root can change, or an installed module."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotfish.formats.entry_points import register_mapping_policy
from pilotfish.formats.user_policy import queue_mapping
from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.planning.mapping_policies import POLICIES
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.planning.queue_mapping import QueueMapping
from pilotfish.trust import UntrustedError

MINE = "class Fair:\n    def __init__(self, depth: int = 1):\n        self.depth = depth\n    def decide(self, now):\n        pass\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A trusted file with a policy, in the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    modules = set(sys.modules)
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    path.chmod(0o644)
    yield path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def name_of(policy: object) -> str:
    assert isinstance(policy, QueueMapping)
    return policy.name


def test_a_service_loads_a_trusted_file(file: Path) -> None:
    assert name_of(queue_mapping(f"{file}:Fair:depth=3", service=True)) == f"{file}:Fair:depth=3"


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_service_refuses_a_file_that_others_can_write(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(UntrustedError, match="others can write to it"):
        queue_mapping(f"{file}:Fair", service=True)
    assert name_of(queue_mapping(f"{file}:Fair"))  # what a user names on the command line is the user's own affair


def test_a_service_refuses_a_link_and_a_folder_that_others_can_write(file: Path) -> None:
    (file.parent / "link.py").symlink_to(file)
    with pytest.raises(UntrustedError, match="symbolic link"):
        queue_mapping(f"{file.parent}/link.py:Fair", service=True)
    file.parent.chmod(0o777)
    with pytest.raises(UntrustedError, match="others can write to it"):
        queue_mapping(f"{file}:Fair", service=True)


def test_a_service_imports_nothing_from_the_folder_of_the_file_or_the_current_one(file: Path) -> None:
    (file.parent / "beside_it.py").write_text(MINE)
    file.write_text("import beside_it\n" + MINE)
    with pytest.raises(PolicyError, match="No module named 'beside_it'"):
        queue_mapping(f"{file}:Fair", service=True)
    (file.parent / "pack_here").mkdir()
    (file.parent / "pack_here" / "mine.py").write_text(MINE)
    with pytest.raises(ConfigError, match="there is no module 'pack_here'"):
        queue_mapping("pack_here.mine:Fair", service=True)
    assert name_of(queue_mapping("pack_here.mine:Fair")) == "pack_here.mine:Fair"
    assert name_of(queue_mapping(f"{file}:Fair")) == f"{file}:Fair"


def test_a_file_is_read_again_only_when_that_is_wanted(file: Path) -> None:
    spec = f"{file}:Fair"
    register_mapping_policy(spec, service=True)
    first = POLICIES[spec]
    file.write_text("x = 1\n")
    register_mapping_policy(spec, service=True)
    assert POLICIES[spec] is first
    with pytest.raises(ConfigError, match=r"mine\.py: Fair: there is no such class"):
        register_mapping_policy(spec, service=True, renew=True)
    assert POLICIES[spec] is first  # what cannot be read replaces nothing


@pytest.mark.parametrize("spec", ["strict+energybud:budget=50%", "easy+reducepc:begin=2026-12-01T08:00Z"])
def test_a_budget_needs_an_end(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"needs an end, because the last submission is not known in advance"):
        queue_mapping(spec)
    policy = queue_mapping(f"{spec}{',' if ':' in spec else ':'}end=2026-12-31T00:00+01:00")
    assert isinstance(policy, QueueMapping) and policy.keep is not None


@pytest.mark.parametrize("base", ["pairs", "nodes", "mom", "let", "slf", "loadavg"])
def test_a_cap_with_times_needs_a_policy_that_can_wake(base: str) -> None:
    with pytest.raises(ConfigError, match=r"the policy decides only when jobs are submitted or end"):
        queue_mapping(f"{base}+powercap:cap=50%,begin=2026-12-01T08:00Z")


@pytest.mark.parametrize("base", ["easy", "conservative", "pairs", "nodes", "mom", "let", "slf", "loadavg"])
def test_a_plan_keeps_below_a_power_cap(base: str) -> None:
    """Six of eight cores may compute: 2 x 40 W + 6 x 5 W. Each of two jobs takes four, and a third all eight."""
    kind = NodeType("t", 4, 8e9, 20e9, power=Power(40.0, 5.0))
    cluster = Cluster("c", (Node("n0", kind), Node("n1", kind)))
    four = Profile((ThreadGroup(4, 10.0),))
    jobs = Job("a", four, walltime=20.0), Job("b", four, walltime=20.0), Job("c", four, nodes=2, walltime=20.0)
    spec = f"{base}+powercap:cap=110"
    register_mapping_policy(spec)
    result = plan(Workflow("w", jobs), cluster, policy=spec, may_reject=True)
    assert sorted(job.start_time for job in result.jobs) == [0.0, 10.0]
    assert [*result.rejected] == ["c"]
    with pytest.raises(PolicyError, match=r"job 'c'.*: it is never started"):
        plan(Workflow("w", jobs), cluster, policy=spec)


def test_a_search_has_no_parts() -> None:
    with pytest.raises(ConfigError, match=r"does not go with 'powercap': it searches for the best plan"):
        queue_mapping("lookahead+powercap")
