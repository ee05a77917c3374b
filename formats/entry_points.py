"""Plug-ins of other packages, found by entry points: policies and formats. Queue policies as mapping policies.

Rule: built-in names win and need no metadata; a plug-in is imported when its name is used, and an error names its
package.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ..simulate.errors import ConfigError

MAPPING_POLICIES, QUEUE_POLICIES, FORMATS = "pilotfish.mapping_policies", "pilotfish.policies", "pilotfish.formats"


@cache
def plug_ins(group: str) -> dict[str, EntryPoint]:
    """Return name -> entry point of a group, in order of name. Nothing is imported."""
    return {entry.name: entry for entry in sorted(entry_points(group=group), key=lambda entry: entry.name)}


def load_plug_in(group: str, name: str) -> Any:
    """Import a plug-in and return its object.

    Args:
        group: one of MAPPING_POLICIES, FORMATS.
        name: a key of `plug_ins(group)`.

    Raises:
        ConfigError: it cannot be imported.
    """
    point = plug_ins(group)[name]
    try:
        return point.load()
    except Exception as error:  # an import runs any code
        package = f"package {point.dist.name}" if point.dist else "entry point"
        problem = f"cannot load {point.value!r}: {type(error).__name__}: {error}"
        raise ConfigError(package, f"{group}.{name}", problem) from error


def spelled_out(text: str) -> str:
    """Return the SPEC of a policy, with the module and class of a queue policy that a package offers by name."""
    name, colon, options = text.partition(":")
    if name not in plug_ins(QUEUE_POLICIES):
        return text
    from ..simulate.planning.mapping_policies import POLICIES as MAPPING
    from ..simulate.queue_policies.policy_specs import ON_NODES, POLICIES

    if name in {*POLICIES, *ON_NODES, *MAPPING}:
        return text
    return plug_ins(QUEUE_POLICIES)[name].value.replace(" ", "") + colon + options


def register_mapping_policy(name: str, *, service: bool = False, renew: bool = False) -> None:
    """Make a policy known to the planner: a plug-in's, or a queue policy; other names are left to the planner.

    Args:
        name: name of a mapping policy, or SPEC of a queue policy.
        service: code is executed as the account of a service, see `user_policy`.
        renew: read the file of a queue policy again.

    Raises:
        ConfigError, PolicyError, OSError: it cannot be loaded; see `user_policy.queue_mapping`.
    """
    from ..simulate.planning.mapping_policies import POLICIES, register

    if name in plug_ins(MAPPING_POLICIES) and name not in POLICIES:
        register(name, load_plug_in(MAPPING_POLICIES, name))
    elif name not in POLICIES or renew:
        from ..simulate.queue_policies.policy_specs import is_queue_policy

        if is_queue_policy(spelled_out(name)):
            from .user_policy import queue_mapping

            POLICIES[name] = queue_mapping(spelled_out(name), service=service)
