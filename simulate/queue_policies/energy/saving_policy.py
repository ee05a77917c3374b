"""EASY backfilling and strict order with energy-saving parts, in Python.

Rule: on numbered resources it gives the schedule of `kernels.queue.power`, the same switches and boots. Jobs start only
where something has happened: a job or a switch of machines ended, a job was submitted, a limit changed, or a period
began if the part says so. Submissions that can never run are not seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...arrays import Array
from ...model.intervals import count_of
from ...model.machine import switching_times
from ..interface import Decision, QueueView, Reject, Switch, Wake
from ..node_backfill import NodeBackfill, uses
from ..order import Order
from ..policy_facts import PolicySpec
from ..queued_job import QueuedJob
from .machine_keepers import KeepByLoad, KeepShare, MachineKeeper, Shutdown
from .power_limits import NoLimit, Use, Window, limit_on
from .switched_machines import Machines, machines_at


class SavingBackfilling:
    """EASY backfilling, or strict order, with parts that limit power or energy and that switch machines.

    Args:
        policy: the base policy and the parts.
        queue: order of the queue.
        window: begin and end of the limit, seconds; None: it does not hold.
        limit: the limit as it is when the policy is first called; None: it begins in its window.
    """

    _one_by_one = False  # a call starts one job, and asks for the next call

    def __init__(self, policy: PolicySpec, queue: Order, window: Window | None, limit: NoLimit | None = None) -> None:
        self._policy, self._queue, self._window = policy, queue, window
        self.powered = policy.sees_states
        self._fills = policy.plain.backfills
        self._shutdown, self._plan_limit, self._limit = Shutdown(policy.shutdown), limit, limit or NoLimit()
        self._keeper: MachineKeeper | None = None
        self._last_call = self._first_end = -math.inf
        self._waits: list[QueuedJob] = []
        self._backfill: NodeBackfill | None = None  # of the last pass
        self.waits = dict[int, str]()  #: why the limit kept jobs from starting at the last pass, by number
        self._withdrawn = 0  # resources at the last call
        self._stands = self._again = False  # the reservation may stand; the next call goes on with this pass

    def decide(self, now: QueueView) -> Iterator[Decision]:
        """Start jobs if something has happened, then switch machines."""
        if self._last_call == -math.inf:
            self._set_up(now)
        keeper, last_time = self._keeper, self._last_call
        switched = now.states is not None and bool(now.states.switched)
        again, at_once, self._again = self._again, self._again and self._last_call == now.time, False
        changed = self._limit.update(now.time, now.states)
        changed |= switched or bool(now.ended) or (self._first_end <= now.time and not at_once)
        changed |= keeper is not None and keeper.passes_at(now.time)
        changed |= now.withdrawn < self._withdrawn
        self._withdrawn = now.withdrawn
        self._stands = not changed and (at_once or self._queue.steady)
        happened = changed or again or bool(now.submitted)
        decides = keeper is not None and keeper.next_time() <= now.time
        if happened or decides or self._shutdown.is_due(now, last_time):
            self._last_call = now.time
            if keeper is not None:
                keeper.arrive(now.time)
            yield from self._instant(now, happened=happened)

    def _set_up(self, now: QueueView) -> None:
        policy = self._policy
        self._kept = np.zeros(Machines.count(now), bool)
        if self._plan_limit is None:
            self._limit = limit_on(now.machine, policy.limit, self._window)
        if policy.keeper is not None:
            of = KeepByLoad if policy.keeper.by_load else KeepShare
            self._keeper = of(policy.keeper, len(self._kept), now.time)  # type: ignore[arg-type]
            self._kept = self._keeper.kept
        self._off_s, self._on_s = switching_times(now.machine.powers)

    def resume(
        self, now: QueueView, elapsed_s: float, kept: Array, rounding_s: float, limit: NoLimit | None = None
    ) -> None:
        """Go on in another plan, whose clock begins at 0 again, and look at everything there.

        Args:
            now: the first snapshot of the plan.
            elapsed_s: seconds from the beginning of the plan before to that of this one.
            kept: which of the machines of this plan are kept off, bool [machines]; it is updated in place.
            rounding_s: by how much the time of a decision may be missed, seconds.
            limit: the limit as it is when the plan begins; None: it has none.
        """
        self._plan_limit = self._limit = limit or NoLimit()
        if self._last_call == -math.inf:
            self._set_up(now)
        self._last_call, self._first_end, self._kept = now.time, -math.inf, kept
        self._shutdown.rounding_s = rounding_s
        if self._keeper is not None:
            self._keeper.resume(elapsed_s, kept, rounding_s)

    def _instant(self, now: QueueView, *, happened: bool) -> Iterator[Decision]:
        machines, keeper = machines_at(now, self._kept, self._limit.blocks(now)), self._keeper
        if happened or self._backfill is None:
            queue, self._waits = self._queue.sorted(now) if happened else [], []
            self._backfill = self._backfill_at(now, machines, queue)
            self.waits = self._backfill.waits
            yield from self._pass(now, self._backfill, queue)
        backfill = self._backfill
        running = backfill.running if happened else uses(now)
        if self._again:
            self._note(now, machines, running, [])
            yield Wake(now.time)
            return

        def spare(candidates: Array, until: float) -> Array:
            return backfill.spare(machines, candidates, until) if self._waits else candidates

        turned = [*keeper.decide(now, machines, spare)] if keeper is not None else []
        if any(switch.on for switch in turned):
            backfill.forget()
        shut = [*self._shutdown.decide(now, machines, self._off_s, spare)]
        yield from turned
        yield from shut
        again = [(now.time + self._on_s, switch) for switch in turned if switch.on]
        self._note(now, machines, running, again + [(now.time + self._off_s, switch) for switch in shut])
        times = [self._limit.next_time(), self._shutdown.next_time(now, machines)]
        if (then := min([*times, keeper.next_time()] if keeper else times)) < math.inf:
            yield Wake(then)

    def _backfill_at(self, now: QueueView, machines: Machines, queue: list[QueuedJob]) -> NodeBackfill:
        """Return what can start at this call; without the reservation of the last one."""
        return NodeBackfill(now, machines, self._limit, fills=self._fills)

    def _pass(self, now: QueueView, backfill: NodeBackfill, queue: list[QueuedJob]) -> Iterator[Decision]:
        """Start the first jobs while they fit, reserve for the first that does not, and backfill behind it."""
        largest, start, jobs = self._limit.largest(now.time), backfill.start, iter(queue)
        for job in jobs:
            if job.size > largest:
                yield Reject(job)
            elif (decision := start(job)) is not None:
                self._again = self._one_by_one and len(queue) > 1
                yield decision
                if self._again:
                    return
            else:
                if backfill.head is None:
                    backfill.reserve(job)
                self._waits.append(job)
                if not backfill.fills:
                    break
        later = list(jobs)  # in strict order, these wait for the one with the reservation
        yield from (Reject(job) for job in later if job.size > largest)
        later = [job for job in later if job.size <= largest]
        backfill.note_unpowered(later)
        self._waits += later

    def _note(
        self, now: QueueView, machines: Machines, running: list[Use], switches: list[tuple[float, Switch]]
    ) -> None:
        """Keep the facts about this call that the next one needs; `switches`: those that free machines, and when."""
        self._first_end = min((use.end for use in running), default=math.inf)
        self._limit.note(running)
        if self._keeper is None or now.states is None:
            return
        ends = [(use.end, use.size) for use in running]
        ends += [(switch.until, count_of(switch.resources)) for switch in machines.back()]
        ends += [(until, count_of(switch.resources)) for until, switch in switches]
        load = sum(job.size * job.walltime for job in self._waits)
        self._keeper.leave(now.time, machines.room.total, sorted(ends), load)
