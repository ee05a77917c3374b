"""A queue policy that switches nodes, in the service: one object decides in each plan what happens now.

Rule: the object is that of a replay. It outlives plans: each plan begins in the state that the plan before has reached.
Which nodes it keeps off outlives a restart, too (see `kept_nodes`); how the load has grown does not. The service
observes which nodes are off, being switched or idle, so after a failed switch, or if a node woke for a job of others,
the node counts as on. Everything later in a plan is a forecast by the policy without the parts that switch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..model.node_power import NodePower
from ..model.plan import PowerOff, PowerOn, PowerSwitch
from ..queue_policies.energy.kept_nodes import KeptNodes
from ..queue_policies.energy.power_limits import NoLimit
from ..queue_policies.energy.saving_policy import SavingBackfilling
from ..queue_policies.frozen import View
from ..queue_policies.interface import Decision, MachineStates, QueuePolicy, QueueView, Switch, Switching, Wake
from ..queue_policies.policy_specs import Saving, text_of
from ..queue_policies.uncompiled import uncompiled
from .mapping_policies import Mapped, Request
from .now_and_later import NowAndLater
from .queue_mapping import PlanRun, QueueMapping
from .simulation import Simulation

#: A time that is due to within so many seconds is due: clocks are rounded.
ROUNDING_S = 1e-6


class SwitchingMapping(QueueMapping):
    """A mapping policy that asks a policy with energy-saving parts what to start and to switch now.

    Without power states (`Request.power`) it plans as the policy without the parts that switch.

    Args:
        name: SPEC of the policy.
        policy: the policy.
    """

    def __init__(self, name: str, policy: Saving) -> None:
        super().__init__(name, self._now_and_later, every_node=True, keep=partial(KeptNodes, policy))
        self._saving = policy
        self._plain = policy.base if policy.limit is None else replace(policy, shutdown=None, keeper=None)
        self._power: NodePower | None = None  # of this plan
        self._limit: NoLimit | None = None  # at the beginning of this plan; None: the policy has none
        self._saver: SavingBackfilling | None = None
        self._kept = KeptNodes(policy)
        self._decided_at, self._wake_s = math.inf, math.inf

    def __call__(self, simulation: Simulation, request: Request) -> Mapped:
        """Return a run that starts now what the policy starts, and what it switches now. Raises PolicyError."""
        self._power, self._wake_s = request.power, math.inf
        mapped = super().__call__(simulation, request)
        if self._power is None:
            return mapped
        return replace(mapped, recheck_s=self._wake_s, forecast_by=text_of(self._plain))

    def _policy(self, simulation: Simulation, request: Request) -> QueuePolicy:
        if isinstance(request.kept, KeptNodes):
            self._kept = request.kept
        if self._saving.limit is not None:
            self._limit = self._kept.at(request.now, simulation.cluster)
        return (self._forecasting if self._power is None else self._now_and_later)(request.seed)

    def _forecasting(self, seed: int) -> QueuePolicy:
        return uncompiled(self._plain, seed, arranged=True, given=self._limit)

    def _now_and_later(self, seed: int) -> QueuePolicy:
        return NowAndLater(lambda now: self._decide(now, seed), self._forecasting(seed))

    def run(self, simulation: Simulation, request: Request, policy: QueuePolicy) -> Mapped:
        """Run a workflow under the policy of one plan. Raises PolicyError."""
        kind = PlanRun if self._power is None else _PoweredRun
        return kind(simulation, request, policy, self.name).run()

    def _decide(self, now: QueueView, seed: int) -> Iterator[Decision]:
        """Let the object decide about this moment."""
        power, names = self._power, now.machine.names
        if power is None or not names:
            return
        off, policy = {*power.off}, self._saver
        if policy is None or power.time < self._decided_at:  # the clock was set back
            saver = uncompiled(self._saving, seed)
            assert isinstance(saver, SavingBackfilling), "only it switches nodes"
            policy = self._saver = saver
            self._decided_at = power.time
        was = self._kept.off(off)
        down = off | {name for name, (on, _) in power.switching.items() if not on}
        kept_off = np.array([name in was and name in down for name in names], bool)
        limit = None if self._limit is None else self._limit.seen_from(0.0)
        policy.resume(now, power.time - self._decided_at, kept_off, ROUNDING_S, limit)
        self._decided_at = power.time
        for decision in policy.decide(now):
            if isinstance(decision, Wake):
                self._wake_s = decision.time - now.time
            else:
                yield decision
        self._kept.keep_off([names[place] for place in np.flatnonzero(kept_off).tolist()], among=names)


class _PoweredRun(PlanRun):
    """A run whose policy sees power states at its beginning; nodes that are being switched are free afterwards."""

    def __init__(self, simulation: Simulation, request: Request, policy: QueuePolicy, name: str) -> None:
        super().__init__(simulation, request, policy, name)
        power, names = request.power, self.snapshot.machine.names
        assert power is not None
        place_of = {name: place for place, name in enumerate(names)}
        since = np.full(self.processors, math.inf)
        for name, begin in power.idle_since.items():
            if (place := place_of.get(name)) is not None and name not in power.switching:
                first, last = self.places.nodes[place]
                since[first : last + 1] = begin - power.time
        off = [self.places.nodes[place_of[name]] for name in power.off if name in place_of]
        self.held_back = dict[int, int]()  # free cores of nodes that take no job yet
        switching = list[Switching]()
        for name, (on, until) in sorted(power.switching.items(), key=lambda it: it[1][1]):
            place = place_of.get(name, -1)
            if place >= 0 and self.places.room.cores[place] == self.places.empty[place]:
                self._hold_back(place)
                switching.append(Switching((self.places.nodes[place],), on, max(0.0, until - power.time)))
        for name in power.waking:
            if (place := place_of.get(name, -1)) >= 0:
                self._hold_back(place)
        self.snapshot.states = MachineStates(View(sorted(off)), View(switching), [], since, lambda: math.nan)
        self.woken = True  # it decides about nodes, too
        self.switched = list[PowerSwitch]()

    def _hold_back(self, place: int) -> None:
        self.held_back[place] = max(0, int(self.places.room.cores[place]))
        self.places.room.cores[place] -= self.held_back[place]

    def call_policy(self) -> list[Any]:
        """Call the policy and return its decisions. Raises PolicyError."""
        if self.now > 0.0 and self.snapshot.states is not None:
            self.snapshot.states = None
            for place, cores in self.held_back.items():
                self.places.room.cores[place] += cores
        return super().call_policy()

    def switch(self, decision: Switch) -> None:
        """Note what is switched now."""
        names = self.snapshot.machine.names
        nodes = tuple(names[place] for place in self.places.nodes_with(decision.resources))
        self.switched.append(PowerOn(nodes) if decision.on else PowerOff(nodes))

    def run(self) -> Mapped:
        """Run to the end. Raises PolicyError."""
        return replace(super().run(), switches=tuple(self.switched))
