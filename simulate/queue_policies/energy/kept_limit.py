"""A limit of power or energy in a service: its time is the service's clock, and what was consumed outlives each plan.

Rule: the limit is that of replays, for all nodes of the cluster, also those that take no jobs now. The consumption that
is subtracted from a budget is estimated: each node draws its idle power all the time, even while it is off, and each
core that a job has, ours or not, draws its share of the power of computing for as long as the job has it. For times
that were not seen, because the service did not run, or because the budget began before the service did, all nodes count
as computing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from ...errors import ConfigError
from ...model.cluster import Cluster
from ...model.machine import Machine, core_powers, equal_powers
from ...model.snapshot import JobView, Snapshot
from ..interface import QueuePolicy
from ..kept import Kept, LimitNow
from ..policy_facts import PolicySpec
from ..policy_specs import parts_of
from ..uncompiled import uncompiled
from .power_limits import NoLimit, limit_on
from .power_policies import Limit


class KeptLimit(Kept):
    """Keeps the limit of a policy, if it has one."""

    def __init__(self, policy: PolicySpec) -> None:
        self._policy, self._options = policy, policy.limit
        self._limit: Any = None  # a `NoLimit`; None: not known
        self._now = -math.inf  # of the last snapshot
        self._before: Mapping[str, Any] = {}  # the state to go on from
        self._held: Mapping[str, JobView] | None = None  # the jobs with nodes of the last snapshot; None: not known

    def policy(self, seed: int, now: float, cluster: Cluster) -> QueuePolicy:
        """Return the policy of a plan. Raises ConfigError: the power of the nodes is not known, or not the same."""
        return uncompiled(self._policy, seed, arranged=True, given=self.at(now, cluster))

    def at(self, now: float, cluster: Cluster) -> NoLimit:
        """Return the limit for a plan of this cluster that begins now.

        Raises ConfigError: see `policy`; or it is a budget of at most what idle nodes draw.
        """
        limit: NoLimit = self._limit or self._begun(now, cluster)
        return limit.seen_from(now)

    def observe(self, snapshot: Snapshot) -> None:
        """Take from a budget what has been consumed since the last snapshot. O(jobs).

        A limit that is impossible on this cluster is none here; it is an error of the plan.
        """
        self._now = snapshot.time
        if self._limit is None:
            with suppress(ConfigError):
                self._limit = self._begun(snapshot.time, snapshot.cluster)
        limit = self._limit
        if limit is not None and limit.consumed is not None:
            until = min(snapshot.time, limit.end)
            limit.account(until, self._computed(snapshot, limit.credited, until))
            self._held = snapshot.jobs.holding

    def state(self) -> dict[str, Any]:
        """Return begin, end and consumption of a budget, and until when it is known, seconds and joules."""
        limit = self._limit
        if limit is None or limit.consumed is None:
            return dict(self._before)
        return {"begin": limit.begin, "end": limit.end, "until": limit.credited, "joules": limit.consumed}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with what was consumed, if it was counted for the same time as the options give."""
        self._before = state

    def limit(self) -> LimitNow | None:
        """Return the limit at the last snapshot."""
        limit = self._limit
        if limit is None or limit.watts == math.inf:
            return None
        holds = limit.begin <= self._now < limit.end
        return LimitNow(limit.begin, limit.end, holds, limit.watts, limit.balance, limit.consumed)

    def _begun(self, now: float, cluster: Cluster) -> NoLimit:
        """Return the limit; a budget without a `begin` begins now, unless it has begun before."""
        if self._options is None:
            return NoLimit()
        machine = Machine(_cores(cluster), (), equal_powers(core_powers(cluster)))
        begin, end = self._options.begin, self._options.end
        if not self._options.is_budget:
            return limit_on(machine, self._options, (begin, end))
        before = self._before if _goes_on(self._before, self._options) else None
        if math.isinf(begin):
            begin = now if before is None else before["begin"]
        if begin >= end:
            return NoLimit()
        if now < end and (error := self._options.refusal(machine.powers, machine.processors, end - begin)) is not None:
            raise error
        budget = limit_on(machine, self._options, (begin, end))
        if before is not None:
            budget.resume(before["joules"], before["until"])
        return budget

    def _computed(self, snapshot: Snapshot, since: float, until: float) -> float:
        """Return for how many seconds cores can have computed between two times, over all cores."""
        if until <= since:
            return 0.0
        if self._held is None:
            return _cores(snapshot.cluster) * (until - since)
        total = 0.0
        for view, begin, end in self._ran(snapshot, since, until):
            node_count = sum(name in snapshot.cluster.index for name in view.nodes)
            total += view.job.profile.threads * node_count * max(0.0, min(end, until) - max(begin, since))
        return total

    def _ran(self, snapshot: Snapshot, since: float, until: float) -> Iterator[tuple[JobView, float, float]]:
        """Yield the jobs that may have run between two times, and between which times they did at most."""
        held, now = self._held or {}, snapshot.jobs.by_key
        for key, view in held.items():
            ended = now[key].finish_time if key in now and now[key].state.ended else None
            yield view, since, until if ended is None else ended
        for key, view in now.items():
            if key in held or not view.nodes:
                continue
            if not view.state.ended:
                yield view, since if view.start_time is None else view.start_time, until
            elif view.start_time is not None and view.finish_time is not None:
                yield view, view.start_time, view.finish_time


def refuse_limit(text: str, cluster: Cluster, now: float) -> None:
    """Refuse a policy whose limit of power or energy is impossible in a service on this cluster.

    Args:
        text: SPEC of the policy.
        cluster: the nodes.
        now: seconds of the service's clock; a budget without a begin begins then.

    Raises:
        ConfigError: the power of the nodes is not known, or not the same; a budget is at most what idle nodes draw; or
            a cap without times lets no core compute.
    """
    policy = parts_of(text)
    if policy.limit is None:
        return
    limit, powers = policy.limit, equal_powers(core_powers(cluster))
    if not limit.is_budget and (error := limit.refusal(powers, _cores(cluster))) is not None:
        raise error
    if not limit.is_budget or math.isfinite(limit.end):  # without an end: an error itself
        KeptLimit(policy).at(now, cluster)


def _cores(cluster: Cluster) -> int:
    return sum(node.type.cores for node in cluster.nodes)


def _goes_on(before: Mapping[str, Any], options: Limit) -> bool:
    return before.get("end") == options.end and (math.isinf(options.begin) or before.get("begin") == options.begin)
