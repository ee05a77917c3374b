"""The stable Python interface of pilotfish: the names that a researcher's script may rely on.

Rule: only the names in `__all__` are stable. Every other module of pilotfish is internal and may change without notice.

Each name is imported when it is first used, so that `import pilotfish.api` itself costs almost nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .daemon.paths import profile_store_path
    from .formats.cluster import read_cluster
    from .formats.replays.workloads import read_workload
    from .formats.site.site_policy_folder import read_slurm_policy
    from .formats.user_policy import read_learned_policy
    from .formats.workflows.workflow import read_workflow
    from .learning.environments.orders import OrderEnvironment, OrderOptions
    from .learning.environments.pairs import PairEnvironment, PairNode, PairOptions
    from .learning.environments.rule_choice import RuleChoiceEnvironment
    from .profiles.store import ProfileStore
    from .simulate.errors import ConfigError, InvalidJobError, PilotfishError, PolicyError
    from .simulate.generate.models import lublin
    from .simulate.model.cluster import Cluster, Node, NodeType, Power
    from .simulate.model.job import Job, Profile, ThreadGroup, Workflow
    from .simulate.model.machine import Machine, machine_of
    from .simulate.model.objective import Objective
    from .simulate.model.plan import Plan, PlannedJob
    from .simulate.model.workload import Workload
    from .simulate.planning.mapping_policies import choosing
    from .simulate.planning.planner import plan
    from .simulate.planning.simulation import Outcome, Simulation
    from .simulate.queue_policies.free_nodes import NodeLoads
    from .simulate.queue_policies.interface import (
        Backfill,
        Decision,
        Forecast,
        Kill,
        MachineStates,
        QueuePolicy,
        QueueView,
        Reject,
        Reserve,
        Start,
        Submit,
        Switch,
        Switching,
        Wake,
    )
    from .simulate.queue_policies.policy_specs import parse as parse_policy
    from .simulate.queue_policies.queued_job import QueuedJob, Running
    from .simulate.replay.metrics import Summary, summarise
    from .simulate.replay.replay import Replayed, replay
    from .simulate.replay.replay_case import ReplayOptions
    from .simulate.world.rule_options import RuleOptions
    from .simulate.world.world_parts import Part

__all__ = [
    "Backfill",
    "Cluster",
    "ConfigError",
    "Decision",
    "Forecast",
    "InvalidJobError",
    "Job",
    "Kill",
    "Machine",
    "MachineStates",
    "Node",
    "NodeLoads",
    "NodeType",
    "Objective",
    "OrderEnvironment",
    "OrderOptions",
    "Outcome",
    "PairEnvironment",
    "PairNode",
    "PairOptions",
    "Part",
    "PilotfishError",
    "Plan",
    "PlannedJob",
    "PolicyError",
    "Power",
    "Profile",
    "ProfileStore",
    "QueuePolicy",
    "QueueView",
    "QueuedJob",
    "Reject",
    "ReplayOptions",
    "Replayed",
    "Reserve",
    "RuleChoiceEnvironment",
    "RuleOptions",
    "Running",
    "Simulation",
    "Start",
    "Submit",
    "Summary",
    "Switch",
    "Switching",
    "ThreadGroup",
    "Wake",
    "Workflow",
    "Workload",
    "choosing",
    "lublin",
    "machine_of",
    "parse_policy",
    "plan",
    "profile_store_path",
    "read_cluster",
    "read_learned_policy",
    "read_slurm_policy",
    "read_workflow",
    "read_workload",
    "replay",
    "summarise",
]

#: Module -> the names taken from it; a pair is (its name there, its name here).
_SOURCES: dict[str, tuple[str | tuple[str, str], ...]] = {
    ".daemon.paths": ("profile_store_path",),
    ".learning.environments.orders": ("OrderEnvironment", "OrderOptions"),
    ".learning.environments.pairs": ("PairEnvironment", "PairNode", "PairOptions"),
    ".learning.environments.rule_choice": ("RuleChoiceEnvironment",),
    ".profiles.store": ("ProfileStore",),
    ".simulate.queue_policies.interface": (
        "Backfill", "Decision", "Forecast", "Kill", "MachineStates", "Reject", "Reserve", "Start", "Submit", "Switch",
        "Switching", "Wake", "QueuePolicy", "QueueView",
    ),
    ".simulate.queue_policies.queued_job": ("QueuedJob", "Running"),
    ".simulate.queue_policies.free_nodes": ("NodeLoads",),
    ".simulate.model.machine": ("Machine", "machine_of"),
    ".simulate.replay.metrics": ("Summary", "summarise"),
    ".simulate.replay.replay": ("Replayed", "replay"),
    ".simulate.replay.replay_case": ("ReplayOptions",),
    ".simulate.queue_policies.policy_specs": (("parse", "parse_policy"),),
    ".simulate.planning.simulation": ("Outcome", "Simulation"),
    ".simulate.errors": ("ConfigError", "InvalidJobError", "PilotfishError", "PolicyError"),
    ".formats.cluster": ("read_cluster",),
    ".formats.workflows.workflow": ("read_workflow",),
    ".formats.replays.workloads": ("read_workload",),
    ".formats.site.site_policy_folder": ("read_slurm_policy",),
    ".formats.user_policy": ("read_learned_policy",),
    ".simulate.generate.models": ("lublin",),
    ".simulate.model.job": ("Job", "Profile", "ThreadGroup", "Workflow"),
    ".simulate.model.objective": ("Objective",),
    ".simulate.model.plan": ("Plan", "PlannedJob"),
    ".simulate.planning.mapping_policies": ("choosing",),
    ".simulate.planning.planner": ("plan",),
    ".simulate.model.cluster": ("Cluster", "Node", "NodeType", "Power"),
    ".simulate.model.workload": ("Workload",),
    ".simulate.world.rule_options": ("RuleOptions",),
    ".simulate.world.world_parts": ("Part",),
}  # fmt: skip
_WHERE: dict[str, tuple[str, str]] = {
    (here if isinstance(here, str) else here[1]): (module, here if isinstance(here, str) else here[0])
    for module, names in _SOURCES.items()
    for here in names
}


def __getattr__(name: str) -> Any:
    """Import the public name `name` from where it is defined (PEP 562). Raises AttributeError for any other name."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _WHERE[name]
    value = getattr(importlib.import_module(module, __package__), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
