"""Policies that a card judges, and the reasons why it does not judge the others."""

from __future__ import annotations

from dataclasses import dataclass

from ...simulate.errors import ConfigError
from ..options import mapping_policy_names
from ..usage_errors import bad_value

#: The policy that is judged if none is named.
USUAL = "easy:order=sjf"


@dataclass(frozen=True, slots=True)
class JudgedPolicy:
    """A policy as the card sees it.

    Args:
        text: its name and options.
        order: one of `order_ranks.ORDERS`; "": the policy is not judged.
        reason: why it is not judged; "" if it is.
    """

    text: str
    order: str
    reason: str = ""


def judged_policy(text: str) -> JudgedPolicy:
    """Return what a card says of a policy. Raises typer.BadParameter: there is no such policy.

    Args:
        text: a policy as in the configuration of the service.
    """
    from ...simulate.queue_policies.order_ranks import CHANGING
    from ...simulate.queue_policies.policy_specs import parse

    if text in mapping_policy_names():
        return JudgedPolicy(text, "", "it chooses nodes by the profiles of jobs, which accounting does not have")
    if ":" in text and ".py" in text:
        return JudgedPolicy(text, "", "it is written in Python, and Slurm's passes know only an order")
    try:
        policy = parse(text)
    except ConfigError as error:
        raise bad_value("--policy", error) from None
    if policy.saves:
        return JudgedPolicy(text, "", "it limits power or switches nodes, and Slurm's passes know only an order")
    if not policy.queueing or text.startswith("strict"):
        return JudgedPolicy(text, "", "it does not backfill as Slurm's passes do")
    order = getattr(policy, "order", "")
    if not isinstance(order, str) or order in CHANGING:
        return JudgedPolicy(text, "", "its order changes while jobs wait, and only fixed orders are judged")
    return JudgedPolicy(text, order)
