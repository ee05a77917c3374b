"""Decide whether placing jobs gains more than it costs; if not, the resource manager starts them itself.

Rule: the gain of a plan is what it saves against the resource manager's own order, in seconds of turnaround, summed
over all submissions, each by its weight. If a need is not known (a default profile), a saving would be a guess and
counts as 0; a loss counts. The cost is the time that it takes to see an end, to decide and to send the command to the
resource manager: a waiting job is delayed by that much, and once more for each job that waits ahead of it on its nodes.
Without enough gain, a job that is held for us is released, and one that may start by itself is left alone. The plan of
a queue policy is not judged: its order is what the site asked for, so nothing is released.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...formats.text import count, seconds
from ...simulate.model.objective import Submitted
from ...simulate.model.plan import Plan, PlannedJob
from ..state.forecasts import NOW_S
from ..state.profile_labels import has_default_profile
from .problem import Problem


@dataclass(frozen=True, slots=True)
class PlacementGain:
    """The gain of a plan, and the cost of its placements.

    Args:
        gain_s: turnaround saved, seconds.
        cost_s: cost of placing what waits, seconds.
        released: why jobs are not placed, by key.
        of_holding_s: the mean gain of the jobs that were handed over, less the cost of placing all of them, also those
            that start now; None: not known.
    """

    gain_s: float
    cost_s: float
    released: Mapping[str, str]
    of_holding_s: float | None = None


def placement_gain(plan: Plan, problem: Problem, latency_s: float) -> PlacementGain:
    """Return what a plan gains; nothing is released if it was not compared with the queue's own order.

    O(jobs), and O(waiting jobs) for each waiting job on the same node.

    Args:
        plan: made for `problem`.
        problem: what was planned.
        latency_s: seconds that one placement costs.
    """
    plain = plan.plain_finish_times
    if not plain:
        return PlacementGain(0.0, 0.0, {})
    ends = {planned.id: planned.finish_time for planned in plan.jobs}
    unknown = {job.id for job in problem.workflow.jobs if has_default_profile(job)}
    grouped = {name for submitted in problem.submitted for name in submitted.jobs}
    gain = 0.0
    alone = (Submitted((name,)) for name in ends.keys() - grouped)
    for submitted in (*problem.submitted, *alone):
        if ended := [name for name in submitted.jobs if name in ends and name in plain]:
            saved = submitted.weight * (max(plain[name] for name in ended) - max(ends[name] for name in ended))
            gain += saved if unknown.isdisjoint(ended) else min(saved, 0.0)
    offered = {planned.id: planned for planned in plan.jobs if _is_offered(planned.id, problem)}
    waiting = [name for name, planned in offered.items() if planned.start_time > NOW_S]
    cost = latency_s * sum(_ranks([offered[name] for name in waiting]))
    of_holding = (gain - latency_s * sum(_ranks(offered.values()))) / len(offered) if offered else None
    if gain > cost:
        return PlacementGain(gain, cost, {}, of_holding)
    gains, costs = seconds(max(gain, 0.0), 1), seconds(cost, 1)
    jobs = count(len(waiting), "waiting job")
    why = f"placing {jobs} would save {gains} of turnaround and cost {costs}, both summed over all of them"
    ready = {name for name in offered if not problem.startable[name].held}
    return PlacementGain(gain, cost, dict.fromkeys((*waiting, *ready), why), of_holding)


def _ranks(jobs: Iterable[PlannedJob]) -> Iterator[int]:
    """Yield for each job the length of the longest chain of jobs that end before the next starts, up to this one."""
    ranks: dict[str, list[tuple[float, int]]] = {}  # node -> end and rank of each job so far
    for job in sorted(jobs, key=lambda job: job.start_time):
        before = [rank for name in job.nodes for end, rank in ranks.get(name, ()) if end <= job.start_time + NOW_S]
        rank = 1 + max(before, default=0)
        for name in job.nodes:
            ranks.setdefault(name, []).append((job.finish_time, rank))
        yield rank


def _is_offered(key: str, problem: Problem) -> bool:
    entry = problem.startable.get(key)
    return entry is not None and entry.offered
