"""`pilotfish edc`: a queue policy as the decision component of a Batsim."""

from __future__ import annotations

from typing import Annotated, cast

from ...simulate.queue_policies.interface import QueuePolicy
from ...simulate.queue_policies.policy_facts import is_built_in, spec_of
from .. import options
from ..options import argument, option
from ..streams import note, print_policy_traceback
from ..usage_errors import bad
from .batsim_command import check_endpoint
from .queue_decider import named_policy


def edc(
    endpoint: Annotated[str, argument("ENDPOINT", "Where Batsim connects.")] = "tcp://127.0.0.1:28000",
    policy: options.QueuePolicy = "easy",
    timeout: Annotated[
        float | None, option("SECONDS", "Longest wait for a message of the other side.", default="endless")
    ] = None,
    seed: options.Seed = 0,
) -> None:
    """Decide for a Batsim: answer its messages as a queue policy decides, until the simulation ends.

    --timeout counts after the first message. For the other direction, see `pilotfish batsim`.

    \b
    Examples:
      pilotfish edc
      pilotfish edc tcp://127.0.0.1:28000 -p easy:order=sjf
      pilotfish edc ipc:///tmp/edc -p ./mine.py:Class
    """
    from ...adapters.batsim.policy_component import PolicyComponent
    from ...adapters.batsim.sockets import answer_requests
    from ...simulate.queue_policies.uncompiled import uncompiled

    check_endpoint("ENDPOINT", endpoint)
    if timeout is not None and not 0.0 < timeout <= 1e6:
        raise bad("--timeout", f"{timeout:g} (allowed: seconds above 0, at most 1e6)")
    with print_policy_traceback():
        named = named_policy(policy, seed)
        chosen, needs = named.policy, False
        if is_built_in(named.policy):
            spec = spec_of(named.policy)
            if not spec.queueing:
                raise bad("--policy", f"{policy} (allowed: easy, strict, conservative, ./mine.py:Class)")
            chosen, needs = uncompiled(spec, seed), bool(spec.needing_walltimes)
        if getattr(chosen, "powered", False):
            raise bad("--policy", f"{policy} switches machines (allowed: policies that do not)")
        component = PolicyComponent(cast(QueuePolicy, chosen), named.text, needs_walltimes=needs)
        note(f"{named.text} decides at {endpoint}")
        answer_requests(endpoint, component.answer, timeout)
