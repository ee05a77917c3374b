"""`pilotfish policies`: the queue policies of replays and the mapping policies of plans."""

from __future__ import annotations

from typing import Annotated

from . import options
from .options import argument
from .output.documents import print_json
from .output.policies import mapping_policies, queue_policies, show_policies, show_policy
from .usage_errors import not_among


def _names() -> list[str]:
    return [*queue_policies(), *mapping_policies()]


def policies(
    name: Annotated[str | None, argument("NAME", "Show one policy, with its options.", words=_names)] = None,
    as_json: options.Json = False,
) -> None:
    """List queue policies (`simulate`, `sweep`) and mapping policies (`plan`, `run`), with options and sources.

    \b
    Examples:
      pilotfish policies
      pilotfish policies easy
      pilotfish simulate trace.swf -p easy:order=sjf
    """
    if name is not None and name not in _names():
        raise not_among("NAME", name, "a policy", _names())
    if as_json:
        found = {key: policy for key, policy in queue_policies().items() if name in (None, key)}
        mapping = {key: {"summary": text} for key, text in mapping_policies().items() if name in (None, key)}
        print_json("policies", {"queue": found, "mapping": mapping})
    elif name is not None:
        show_policy(name)
    else:
        show_policies()
