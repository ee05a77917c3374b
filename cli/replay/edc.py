"""`pilotfish edc`: a queue policy as the decision component of a Batsim."""

from __future__ import annotations

from typing import Annotated, cast

from ...formats.entry_points import spelled_out
from ...formats.user_policy import load_policy
from ...simulate.errors import ConfigError
from ...simulate.queue_policies.interface import QueuePolicy
from ...simulate.queue_policies.policy_specs import (
    Queueing,
    is_python_policy,
    parse,
    parse_python_policy,
    text_of,
)
from .. import options
from ..options import argument, option
from ..streams import note, print_policy_traceback
from ..usage_errors import bad
from .edc_replay import check_endpoint


def edc(
    endpoint: Annotated[str, argument("ENDPOINT", "Where Batsim connects.")] = "tcp://127.0.0.1:28000",
    policy: options.QueuePolicy = "easy",
    timeout: Annotated[
        float | None, option("SECONDS", "Longest wait for a message, after the first.", default="endless")
    ] = None,
    seed: options.Seed = 0,
) -> None:
    """Decide for a Batsim: answer its messages as a queue policy decides, until the simulation ends.

    \b
    Examples:
      pilotfish edc
      pilotfish edc tcp://127.0.0.1:28000 -p easy:order=sjf
      pilotfish edc ipc:///tmp/edc -p ./mine.py:Class
    """
    from ...adapters.batsim.policy_component import PolicyComponent
    from ...adapters.batsim.sockets import answer_requests
    from ...simulate.queue_policies.uncompiled import uncompiled
    from ...simulate.replay.requirements import kind_needing_walltimes

    check_endpoint("ENDPOINT", endpoint)
    if timeout is not None and not 0.0 < timeout <= 1e6:
        raise bad("--timeout", f"{timeout:g} (allowed: seconds above 0, at most 1e6)")
    text = spelled_out(policy)
    with print_policy_traceback():
        try:
            if is_python_policy(text):
                named = load_policy(parse_python_policy(text), seed)
                chosen, name, needs = named.policy, named.text, False
            else:
                spec = parse(text)
                if not isinstance(spec, Queueing):
                    raise bad("--policy", f"{policy} (allowed: easy, strict, conservative, ./mine.py:Class)")
                chosen, name, needs = uncompiled(spec, seed), text_of(spec), bool(kind_needing_walltimes(spec))
        except ConfigError as error:
            if error.source != "policy":
                raise
            raise bad(
                "--policy", f"{error.key}: {error.problem} (allowed: {error.allowed})".removeprefix(": ")
            ) from None
        if getattr(chosen, "powered", False):
            raise bad("--policy", f"{policy} switches machines (allowed: policies that do not)")
        component = PolicyComponent(cast(QueuePolicy, chosen), name, needs_walltimes=needs)
        note(f"{name} decides at {endpoint}")
        answer_requests(endpoint, component.answer, timeout)
