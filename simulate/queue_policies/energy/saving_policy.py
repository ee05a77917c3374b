"""EASY backfilling and strict order with energy-saving parts, in Python.

Rule: on numbered resources it gives the schedule of `kernels.queue.power`, the same switches and boots. Jobs start only
where something has happened: a job or a switch of machines ended, a job was submitted, a limit changed, or a period
began if the part says so. Submissions that can never run are not seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from ...arrays import Array
from ...model.intervals import count_of
from ...model.machine import switching_times
from ..easy_policy import latest_end
from ..interface import Decision, QueueView, Reject, Switch, Switching, Wake
from ..order import Order
from ..policy_facts import PolicySpec
from ..queued_job import QueuedJob
from .machine_keepers import KeepByLoad, KeepShare, MachineKeeper, Shutdown
from .power_limits import NoLimit, Use, Window, limit_on
from .switched_machines import Machines, Places, Room, machines_at

#: Why a job waits that has free resources.
NO_ENERGY = "it waits for energy: the balance of the budget does not cover its walltime yet"
NO_POWER = "it waits for power: the cap lets no more cores compute now"
Started = tuple[float, QueuedJob, Places]  # latest end, job, nodes


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
        self._head: Use | None = None
        self._later: Room | None = None  # None: no reservation is known
        self._blocked = 0  # resources that the limit blocks at this call
        self.waits = dict[int, str]()  #: why the limit kept jobs from starting at the last pass, by number
        self._refused = set[int]()  # numbers of jobs that need not be looked at
        self._stands = self._again = False  # the reservation may stand; the next call goes on with this pass

    def decide(self, now: QueueView) -> Iterator[Decision]:
        """Start jobs if something has happened, then switch machines."""
        if self._last_call == -math.inf:
            self._set_up(now)
        keeper, last_time, switched = (
            self._keeper,
            self._last_call,
            now.states.switched if now.states is not None else [],
        )
        again, at_once, self._again = self._again, self._again and self._last_call == now.time, False
        changed = self._limit.update(now.time, now.states)
        changed |= bool(now.ended or switched) or (self._first_end <= now.time and not at_once)
        changed |= keeper is not None and keeper.passes_at(now.time)
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
        self._blocked = self._limit.blocks(now)
        machines, keeper = machines_at(now, self._kept, self._blocked), self._keeper
        started = list[Started]()
        if happened:
            yield from self._pass(now, machines, started)
        if self._again:
            self._note(now, machines, started, [])
            yield Wake(now.time)
            return
        spare = partial(self._spare, machines)
        turned = [*keeper.decide(now, machines, spare)] if keeper is not None else []
        if any(switch.on for switch in turned):
            self._later = None
        shut = [*self._shutdown.decide(now, machines, self._off_s, spare)]
        yield from turned
        yield from shut
        again = [(now.time + self._on_s, switch) for switch in turned if switch.on]
        self._note(now, machines, started, again + [(now.time + self._off_s, switch) for switch in shut])
        times = [self._limit.next_time(), self._shutdown.next_time(now, machines)]
        if (then := min([*times, keeper.next_time()] if keeper else times)) < math.inf:
            yield Wake(then)

    # --- jobs ---
    def _pass(self, now: QueueView, machines: Machines, started: list[Started]) -> Iterator[Decision]:
        """Start the first jobs while they fit, reserve for the first that does not, and backfill behind it."""
        limit, running, queue = self._limit, _uses(now), self._queue.sorted(now)
        self._begin_pass(queue)
        free_count = machines.room.total
        for job in queue:
            if limit.forbids(job.size, now.time):
                yield Reject(job)
                continue
            placement = None
            if self._later is None or (self._fills and job.size <= free_count and job.number not in self._refused):
                wide = self._later is None and machines.is_wide(job)
                placement = self._place(now, machines, job, wide=wide)
            if placement is not None:
                places, until = placement
                if not limit.allows(now.time, running, Use(job.size, now.time, until), self._head):
                    placement, self.waits[job.number] = None, NO_ENERGY
            elif free_count < job.size <= free_count + self._blocked:
                self.waits[job.number] = NO_POWER
            if placement is None:
                if self._later is None:
                    self._reserve(now, machines, job, started, running)
                self._waits.append(job)
                continue
            if self._later is not None and self._head is not None and until > self._head.begin:
                self._later.nodes.take(job, places)
            started.append((until, job, places))
            running.append(Use(job.size, now.time, until))
            self._again = self._one_by_one and len(queue) > 1
            yield machines.start(job, places)
            if self._again:
                return
            free_count = machines.room.total

    def _begin_pass(self, queue: list[QueuedJob]) -> None:
        """Forget the reservation of the last pass."""
        self._waits, self._head, self._later, self.waits = [], None, None, {}

    def _place(self, now: QueueView, machines: Machines, job: QueuedJob, *, wide: bool) -> tuple[Places, float] | None:
        """Return where a job can start now without delaying the head of the queue, and its latest end."""
        places, later, head = self._where(now, machines, job, wide=wide), self._later, self._head
        if places is None:
            return None
        until = now.time + machines.boot_s(job, places) + job.walltime
        if later is None or head is None or until <= head.begin:
            return places, until
        places = self._where(now, machines, job, later)
        return None if places is None else (places, now.time + machines.boot_s(job, places) + job.walltime)

    def _where(
        self, now: QueueView, machines: Machines, job: QueuedJob, later: Room | None = None, *, wide: bool = False
    ) -> Places | None:
        """Return nodes on which a job can start now, and fits later if that is given; None if it cannot."""
        return machines.where(job, later, wide=wide)

    def _where_alone(self, machines: Machines, room: Room, head: QueuedJob) -> Places | None:
        """Return nodes that the head of the queue can reserve; None if there are too few."""
        return room.where(head, rank=machines.rank())

    def _hold(self, room: Room, head: QueuedJob, places: Places) -> None:
        """Take what the head of the queue reserves."""
        room.nodes.take(head, places)

    def _reserve(
        self, now: QueueView, machines: Machines, head: QueuedJob, started: list[Started], running: list[Use]
    ) -> None:
        """Find when the head of the queue can start at the latest, and what is then free of its nodes and others."""
        wide = machines.is_wide(head)
        room, ends = machines.opened(wide=wide), self._ends(now, machines, started, wide=wide)
        ends.reverse()
        time = now.time if self._where_alone(machines, room, head) is not None else math.inf
        while ends and (time == math.inf or ends[-1][0] <= time):
            then, holder = ends.pop()
            self._give(machines, room, holder)
            if time == math.inf and self._where_alone(machines, room, head) is not None:
                time = then
        at = self._limit.reserved(now.time, running, head.size, head.walltime, time)
        while ends and ends[-1][0] <= at:
            self._give(machines, room, ends.pop()[1])
        if (places := self._where_alone(machines, room, head)) is not None:
            self._hold(room, head, places)
        self._head, self._later = Use(head.size, at, at + head.walltime), room

    def _ends(
        self, now: QueueView, machines: Machines, started: list[Started], *, wide: bool
    ) -> list[tuple[float, Any]]:
        """Return when resources become free, and what frees them; for a wide job also what is kept off."""
        ends: list[tuple[float, Any]] = [(latest_end(run, now.time), run) for run in now.running]
        ends += [(until, (job, places)) for until, job, places in started]
        if now.states is not None:
            ends += [
                (switch.until, switch) for switch in now.states.switching if wide or not self._is_kept(machines, switch)
            ]
        if self._blocked:
            ends.append((self._limit.end, None))
        ends.sort(key=itemgetter(0))
        return ends

    def _give(self, machines: Machines, room: Room, holder: Any) -> None:
        """Free what ends: a running job, one that is being started, a switch of machines, or the power cap."""
        if holder is None:
            room.blocked = 0
        elif isinstance(holder, Switching):
            machines.give(room, holder.resources)
        elif isinstance(holder, tuple):
            room.nodes.give(*holder)
        else:
            room.nodes.release(holder)

    def _is_kept(self, machines: Machines, switching: Switching) -> bool:
        return not switching.on and bool(self._kept[machines.numbers([switching.resources[0]])[0]])

    # --- machines ---
    def _spare(self, machines: Machines, candidates: Array, until: float) -> Array:
        """Return the first of some machines that can be off until a time without delaying the head of the queue."""
        if not self._waits:
            return candidates
        if self._later is None or self._head is None:
            return candidates[:0]
        return candidates if until <= self._head.begin else machines.spared(candidates, self._later)

    def _note(
        self, now: QueueView, machines: Machines, started: list[Started], switches: list[tuple[float, Switch]]
    ) -> None:
        """Keep the facts about this call that the next one needs; `switches`: those that free machines, and when."""
        running = _uses(now) + [Use(job.size, now.time, until) for until, job, _ in started]
        self._first_end = min((use.end for use in running), default=math.inf)
        self._limit.note(running)
        if self._keeper is None or now.states is None:
            return
        ends = [(use.end, use.size) for use in running]
        ends += [
            (switching.until, count_of(switching.resources))
            for switching in now.states.switching
            if not self._is_kept(machines, switching)
        ]
        ends += [(until, count_of(switch.resources)) for until, switch in switches]
        load = sum(job.size * job.walltime for job in self._waits)
        self._keeper.leave(now.time, machines.room.total, sorted(ends), load)


def _uses(now: QueueView) -> list[Use]:
    """Return the use of resources by the running jobs, from now on."""
    return [Use(run.job.size, now.time, latest_end(run, now.time)) for run in now.running]
