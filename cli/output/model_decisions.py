"""Output on a learned policy in a replay: which share of the decisions was its model's, and why the others were not.

Rule: where its baseline decided mostly, the numbers of the replay are mostly those of the baseline; that is a warning.
So is a replay that knows other run times than the training did: a verdict on the model says nothing about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formats.text import count, percent
from ...simulate.queue_policies.model_use import Guarded, ModelUse
from ...simulate.queue_policies.policy_facts import spec_of

if TYPE_CHECKING:
    from collections.abc import Collection

#: Below this share of the decisions, a model says little about itself.
MOSTLY = 0.5


def use_lines(use: ModelUse) -> list[str]:
    """Return the share of the model in words, and why its baseline took the others, the commonest reason first."""
    if use.share is None:
        return ["none: no job had to wait"]
    decisions = count(use.decisions, "decision")
    if not use.by_baseline:
        return [f"all {decisions} by the model"]
    lines = [f"{percent(use.share)} of {decisions} by the model, the others by its baseline, {use.baseline}"]
    for reason, number in use.by_baseline.most_common():
        jobs = f" ({count(use.jobs[reason], 'job')})" if use.jobs[reason] else ""
        lines.append(f"{percent(number / use.decisions)} for {reason}{jobs}: {use.examples[reason]}")
    return lines


def doubts_of(name: str, use: ModelUse) -> list[str]:
    """Return a warning if a model decided rarely; `name`: of the policy, for people."""
    if use.share is None or use.share >= MOSTLY:
        return []
    decided = f"{name} took {percent(use.share)} of its decisions itself"
    return [f"{decided}; the numbers are mostly those of {use.baseline}"]


def run_times_of(policy: object) -> str | None:
    """Return what the training of a policy's learned order knew of run times; None: it has none, or nothing says."""
    if isinstance(policy, Guarded):
        return policy.model_use.run_times
    run_times: str | None = getattr(getattr(spec_of(policy).plain, "order", None), "run_times", None)
    return run_times


def doubts_of_run_times(name: str, trained: str | None, runtimes: Collection[str], setting: str) -> list[str]:
    """Return a warning if no replay of a learned order knows the run times that its training did.

    Args:
        name: of the policy, for people.
        trained: of the training, see `run_times_of`.
        runtimes: of the replays, some of `known_run_times.RUNTIMES`.
        setting: what sets them, such as an option.
    """
    if trained is None or trained in runtimes:
        return []
    names = " or ".join(runtimes)
    return [f"{name} expects run times as in its training, {trained}; here they are {names}: use {setting} {trained}"]


def use_document(use: ModelUse) -> dict[str, Any]:
    """Return it as plain values, as `ModelUse` names them."""
    return {
        "baseline": use.baseline, "decisions": use.decisions, "share": use.share, "by_model": use.by_model,
        "by_baseline": dict(use.by_baseline), "jobs": dict(use.jobs), "examples": use.examples,
    }  # fmt: skip
