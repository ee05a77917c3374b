"""`pilotfish policies`: the queue policies and the mapping policies, and what takes each."""

from __future__ import annotations

from typing import Annotated

from .. import options
from ..options import argument
from ..output.documents import print_json
from ..output.policies import mapping_commands, mapping_policies, queue_policies, show_policies, show_policy
from ..usage_errors import not_among


def _names() -> list[str]:
    return [*queue_policies(), *mapping_policies()]


def policies(
    name: Annotated[str | None, argument("NAME", "Show one policy, with its options.", words=_names)] = None,
    as_json: options.Json = False,
) -> None:
    """List queue policies and mapping policies, with options, sources, and the commands that take them.

    \b
    Examples:
      pilotfish policies
      pilotfish policies easy
      pilotfish simulate trace.swf -p easy:order=sjf
      pilotfish plan dag.yaml -c lab.yaml -p easy:order=sjf
    """
    if name is not None and name not in _names():
        raise not_among("NAME", name, "a policy", _names())
    if as_json:
        described = {key: policy for key, policy in queue_policies().items() if name in (None, key)}
        mapping = {
            key: {"summary": text, "for": mapping_commands(key)}
            for key, text in mapping_policies().items()
            if name in (None, key)
        }
        print_json("policies", {"queue": described, "mapping": mapping})
    elif name is not None:
        show_policy(name)
    else:
        show_policies()
