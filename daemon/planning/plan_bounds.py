"""Bounds of the work of a plan under a queue policy that is called in Python, however many jobs wait and run.

Rule: the work is counted, not timed, so the same snapshot gives the same plan on any machine. What starts now is
decided for a window of the queue. Conservative backfilling compares each waiting job with each node at each end of a
job, and with shared nodes it does so again after each start. So its window becomes shorter the more jobs run on the
more nodes. The window always has the first job of the queue, and no job comes before a job that was submitted earlier.
So each job becomes the first one, and none waits for ever. What starts later is forecast with FORESIGHT.
"""

from __future__ import annotations

from ...formats.entry_points import spelled_out
from ...simulate.queue_policies.loaded_policies import is_python_policy
from ...simulate.queue_policies.policy_facts import PolicySpec
from ...simulate.queue_policies.policy_specs import COMPONENT, is_queue_policy, parse
from .node_shortlist import FEW_NODES
from .problem import WINDOW
from .residents import FEW

#: Comparisons of a job with a node, at one time, for what starts now and for what starts later; each some 0.3 s.
FOR_NOW, FORESIGHT = 48_000_000, 30_000_000
#: Least time of the comparisons of one job, in comparisons.
LEAST = 8_000


def window(policy: str, running: int, nodes: int) -> int:
    """Return how many of the first waiting jobs a plan considers, from 1 to WINDOW.

    Args:
        policy: SPEC or name of the policy.
        running: jobs that run.
        nodes: of the cluster.
    """
    spec = parsed(policy)
    if spec is None or spec.plain.family != "conservative":
        return WINDOW
    ends, columns, jobs = min(running, FEW), nodes if spec.compares_nodes else min(nodes, FEW_NODES), WINDOW
    while jobs > 1:
        planned = 2 * jobs  # as many again of those that may start now
        passes = jobs if spec.needs_nodes else 1  # half of them wait in a pass on average
        if passes * planned * (LEAST + (ends + 2 * planned) * columns) <= FOR_NOW:
            break
        jobs -= 1
    return jobs


def parsed(policy: str) -> PolicySpec | None:
    """Return the rules of a built-in queue policy; None for any other policy."""
    text = spelled_out(policy)
    is_own = is_python_policy(text) or text.startswith(COMPONENT)
    return parse(text) if is_queue_policy(text) and not is_own else None
