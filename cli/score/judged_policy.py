"""The policy whose order of the queue a card judges, and what the card does not judge of a configured policy.

Rule: only a fixed order of the queue is judged, because accounting has no profiles and Slurm's passes know only an
order. Of a policy without one, the card judges USUAL in its place and says so: it is never shown as the policy itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...simulate.errors import ConfigError
from ..options import mapping_policy_names
from ..usage_errors import bad_value

#: The policy that is judged if none is named, or in the place of one that has no fixed order.
USUAL = "easy:order=sjf"


@dataclass(frozen=True, slots=True)
class JudgedPolicy:
    """A policy as the card sees it.

    Args:
        text: its name and options.
        order: the order that is judged, one of `order_ranks.ORDERS` that does not change with time.
        judged: the policy whose order it is: `text`, or the one in its place.
        reason: what of the policy is not judged, as the end of a sentence; "": all of it is.
    """

    text: str
    order: str
    judged: str
    reason: str = ""

    @property
    def is_itself(self) -> bool:
        """Return whether the policy itself is judged."""
        return not self.reason


def judged_policy(text: str) -> JudgedPolicy:
    """Return what a card judges of a policy. Raises typer.BadParameter: there is no such policy.

    Args:
        text: a policy as in the configuration of the service.
    """
    from ...simulate.queue_policies.order_ranks import CHANGING
    from ...simulate.queue_policies.policy_specs import parse

    if text in mapping_policy_names():
        return _in_its_place(text, "it chooses nodes by the profiles of jobs, which accounting does not have")
    if ":" in text and ".py" in text:
        return _in_its_place(text, "it is written in Python, and Slurm's passes know only an order")
    try:
        policy = parse(text)
    except ConfigError as error:
        raise bad_value("--policy", error) from None
    if policy.saves:
        return _in_its_place(text, "it limits power or switches nodes, and Slurm's passes know only an order")
    if not policy.queueing or text.startswith("strict"):
        return _in_its_place(text, "it does not backfill as Slurm's passes do")
    order = getattr(policy, "order", "")
    if not isinstance(order, str) or order in CHANGING:
        return _in_its_place(text, "its order changes while jobs wait, and only fixed orders are judged")
    return JudgedPolicy(text, order, text)


def _in_its_place(text: str, reason: str) -> JudgedPolicy:
    return JudgedPolicy(text, USUAL.rpartition("=")[2], USUAL, reason)
