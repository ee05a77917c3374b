"""A daemon is assembled from its configuration in one way, for the service and for a preview of what it would do."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from pilotfish.adapters.base import Adapter
from pilotfish.daemon import assembly
from pilotfish.daemon.assembly import DECIDING, decided_by
from pilotfish.daemon.config import DaemonConfig
from pilotfish.daemon.one_off import preview_queue
from pilotfish.daemon.planning.problem import Options
from pilotfish.daemon.state.forecasts import Forecaster
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.unsaved import Unsaved

#: Keys that say where things are, what is learned or reported, and who may do what: a decision follows from `DECIDING`.
OTHERS = {
    "cluster", "adapter", "state_dir", "profiles", "longest_cycle_seconds", "keep_days", "mode", "paused", "handover", "socket", "events",
    "access", "allow_unproven", "quotas", "metrics", "relearn", "accounting", "counters", "calibration", "record", "log", "score",
}  # fmt: skip
#: Another value of each key that decides.
CHANGED: dict[str, Any] = {
    "policy": "mom", "objective": "makespan", "without_gain": "place", "budget": 7, "time_limit": 3.0, "seed": 5,
    "guard": {"max_median_error": 0.1}, "power": {"save": True}, "cycle_seconds": 9.0,
}  # fmt: skip


def config_of(**keys: Any) -> DaemonConfig:
    return DaemonConfig.model_validate({"cluster": "cluster.yaml", **keys})


def parts(config: DaemonConfig, journal: Journal) -> dict[str, Any]:
    """Return what a configuration decides, with the guard as values."""
    deciding = decided_by(config, journal)
    guard = deciding.guard
    parts = {"options": deciding.options, "power": deciding.power, "recheck_s": deciding.recheck_s}
    return parts | {"guard": (guard.bound, guard.window, guard.fallback, guard.enabled)}


def test_every_key_either_decides_or_does_not() -> None:
    assert set(DaemonConfig.model_fields) == DECIDING | OTHERS and not DECIDING & OTHERS


@pytest.mark.parametrize("key", sorted(DECIDING))
def test_each_key_that_decides_reaches_the_cycle(key: str, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    assert parts(config_of(**{key: CHANGED[key]}), journal) != parts(config_of(), journal)
    journal.close()


@pytest.mark.parametrize("module", ["service.py", "one_off.py"])
def test_service_and_preview_read_them_in_one_place(module: str) -> None:
    tree = ast.parse((Path(assembly.__file__).parent / module).read_text())
    calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert "decided_by" in calls and "guard_of" not in calls
    words = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not words & {"without_gain", "objective", "budget", "seed"}


@pytest.fixture
def queue(kit, offering) -> Adapter:
    """A manager with more jobs of unknown needs handed over than its nodes take, all held."""
    manager = offering.manager
    manager.preview = lambda action: [f"{type(action).__name__} {action.key}"]
    manager.settle = lambda timeout_s: None
    for number in range(7):
        manager.offer(kit.job(f"{number}", seconds=50.0 + number), due=manager.time + 600.0)
    return manager


@pytest.mark.parametrize("without_gain", ["release", "place"])
def test_a_preview_does_what_the_daemon_does_where_nothing_is_gained(
    queue: Any, tmp_path: Path, without_gain: str
) -> None:
    config = config_of(without_gain=without_gain, budget=20)
    journal = Journal(tmp_path / "other.sqlite")
    options = decided_by(config, journal).options
    seen = preview_queue(queue, options, tmp_path / "profiles.sqlite", (config, journal))
    kinds = {line.split()[0] for line in seen.commands}
    assert "Place" in kinds and ("Release" in kinds) is (without_gain == "release")


def test_a_preview_knows_that_the_guard_overrules_the_policy_unless_another_is_asked_for(
    queue: Any, tmp_path: Path
) -> None:
    config, path = config_of(policy="mom", guard={"window": 3, "policy": "loadavg"}), tmp_path / "other.sqlite"
    for policy, used in (("mom", "loadavg"), ("let", "let")):
        journal = Journal(path)
        journal.save([], unsaved=Unsaved(errors=[(Forecaster("max-min"), 9.0, uid) for uid in range(9)]))
        seen = preview_queue(queue, Options(policy=policy), tmp_path / "profiles.sqlite", (config, journal))
        assert seen.plan is not None and seen.plan.policy == used
