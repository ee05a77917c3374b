"""Power saving: nodes are powered down and up as the policy decides (see `switching_mapping`), or when long idle.

Rule: only idle nodes are powered down, and never while a job that may start now waits, unless the policy knows the job.
The resource manager wakes a node for any job, so no job depends on us. A refused request is logged and not repeated for
REFUSED_S seconds.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from ...adapters.base import NOT_SENT, Adapter, AdapterError
from ...formats.hostlist import fold
from ...simulate.errors import ConfigError
from ...simulate.model.node_power import NodePower
from ...simulate.model.plan import PowerOff, PowerOn, PowerSwitch, Start
from ...simulate.model.snapshot import JobState, NodeState, Snapshot
from ...simulate.queue_policies.policy_specs import parts_of
from ..apply import Applier
from ..config import DaemonConfig
from ..deciders import POWER_SAVING, decided_by_policy
from ..report.cycle_report import CycleReport, Observer
from ..state.applied import Applied
from ..state.audit import decide
from ..state.forecasts import NOW_S
from ..state.write_ahead import WriteAhead
from .trigger import Trigger

log = logging.getLogger("pilotfish.power")
#: Seconds until a refused request is tried again.
REFUSED_S = 600.0
#: Seconds until nodes that have to stay on, because a job waits, are looked at again.
WAITING_S = 60.0
#: Seconds within which a resource manager shows what it was asked to switch, and after which it will not happen.
SHOWN_S, LONGEST_S = 5.0, 1800.0


def check_power(config: DaemonConfig, file: Path, adapter: Adapter) -> None:
    """Check that the adapter can switch nodes if the configuration has that done, and only once. Raises ConfigError."""
    save, switches = config.power.save, parts_of(config.policy).switches
    if save and switches:
        raise ConfigError(str(file), "power.save", f"found true, and {config.policy} switches nodes, too", "false")
    if (save or switches) and not adapter.capabilities.power:
        key, value, allowed = "policy", config.policy, "a policy without opportunistic, proportional and inertial"
        if save:
            key, value, allowed = "power.save", "true", "false"
        problem = f"found {value}, but the adapter {adapter.name!r} cannot switch nodes off and on here"
        raise ConfigError(str(file), key, problem, allowed)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A switch that was requested: when, and when it should have ended; epoch seconds."""

    on: bool
    time: float
    until: float


class NodeSwitcher(Observer):
    """Switches nodes after cycles.

    Args:
        applier: carries the actions out.
        write_ahead: writes them to the journal before.
        trigger: receives when to look again.
        idle_s: seconds after which an idle node may be powered down, whatever the policy; inf: never.
        spare: number of idle nodes that stay on then, for jobs to come.
    """

    def __init__(
        self,
        applier: Applier,
        write_ahead: WriteAhead,
        trigger: Trigger,
        idle_s: float = math.inf,
        spare: int = 0,
    ) -> None:
        self._applier, self._write_ahead, self._trigger = applier, write_ahead, trigger
        #: Whether the policy switches nodes, too.
        self.by_policy = False
        self._idle_s, self._spare = idle_s, spare
        self._since: dict[str, float] = {}
        self._sent: dict[str, _Sent] = {}
        self._waking: set[str] = set()
        self._not_before = -math.inf

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Note which nodes are idle, and which switches have ended. O(nodes + jobs)."""
        if not self.active:
            self._since = {}
            return
        holding = snapshot.jobs.holding.values()
        busy = {name for view in holding for name in view.nodes}
        self._waking = {name for view in holding if view.state is JobState.CONFIGURING for name in view.nodes}
        states = dict(zip(snapshot.cluster.index, snapshot.node_states, strict=True))
        idle = [name for name, state in states.items() if state is NodeState.UP and name not in busy]
        self._since = {name: self._since.get(name, snapshot.time) for name in idle}
        for name, sent in [*self._sent.items()]:
            if name not in states or name in busy or not _goes_on(sent, states[name], snapshot.time):
                del self._sent[name]
                self._trigger.renew()

    @property
    def active(self) -> bool:
        """True if nodes are switched."""
        return self._idle_s < math.inf or self.by_policy

    @property
    def returning(self) -> Collection[str]:
        """Nodes that may take no job now, but will after their switch or boot."""
        return self._sent.keys() | self._waking

    def power(self, snapshot: Snapshot) -> NodePower:
        """Return the power states of the nodes, for a plan."""
        states = zip(snapshot.cluster.index, snapshot.node_states, strict=True)
        off = [name for name, state in states if state is NodeState.ASLEEP and name not in self._sent]
        switching = {name: (sent.on, sent.until) for name, sent in self._sent.items()}
        return NodePower(snapshot.time, off, switching, self._waking - self._sent.keys(), self._since)

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Carry out what the plan switches, and power down what has been idle for long."""
        if report.mode == "paused":
            return
        plan = report.plan
        used_nodes = {name for job in plan.jobs for name in job.nodes} if plan else set()
        actions = list[tuple[PowerSwitch, str]]()
        if plan and plan.switches:
            job_ids = {job.id for job in plan.jobs}
            now = {name for job in plan.jobs if job.start_time <= NOW_S for name in job.nodes}
            by_policy = decided_by_policy(plan.policy, is_fallback=False)
            actions += ((one, by_policy) for one in self._allowed(plan.switches, snapshot, job_ids, now))
        if (idle := self.choose(snapshot, used_nodes)) is not None:
            actions.append((idle, POWER_SAVING))
        for action, by in actions if snapshot.time >= self._not_before else ():
            if self._applier.new([action]):
                self._apply(action, by, report.number, snapshot)
        started = (it.action.nodes for it in report.applied if isinstance(it.action, Start) and not report.dry)
        for name in itertools.chain.from_iterable(started):  # it may end before the next snapshot
            self._since.pop(name, None)
        for sent in self._sent.values():
            if sent.until > snapshot.time:
                self._trigger.wake(snapshot.time, sent.until - snapshot.time)

    def _allowed(
        self, switches: Collection[PowerSwitch], snapshot: Snapshot, keys: Collection[str], used_nodes: Collection[str]
    ) -> Iterator[PowerSwitch]:
        """Yield those switches of the policy that are allowed now; `keys`: of the jobs that the policy knows."""
        states = dict(zip(snapshot.cluster.index, snapshot.node_states, strict=True))
        waits = _waits(snapshot, keys)
        for action in switches:
            if isinstance(action, PowerOn):
                nodes = tuple(name for name in action.nodes if states.get(name) is NodeState.ASLEEP)
            elif waits:
                nodes = ()
                self._trigger.wake(snapshot.time, WAITING_S)
            else:
                nodes = tuple(name for name in action.nodes if name in self._since and name not in used_nodes)
            if nodes:
                yield type(action)(nodes)

    def choose(self, snapshot: Snapshot, planned: Collection[str] = ()) -> PowerOff | None:
        """Return the action that powers down what has been idle for long, if any may be.

        Args:
            snapshot: the nodes and their jobs at this moment.
            planned: names of nodes that are about to get a job.
        """
        if self._idle_s == math.inf:
            return None
        idle = [name for name in self._since if name not in planned and name not in self._sent]
        due = {name: self._since[name] + self._idle_s - snapshot.time for name in idle}
        if (later := min((wait_s for wait_s in due.values() if wait_s > 0.0), default=math.inf)) < math.inf:
            self._trigger.wake(snapshot.time, later)
        if _waits(snapshot, ()) or snapshot.time < self._not_before:
            return None
        surplus = [name for name in idle if due[name] <= 0.0][: max(0, len(idle) - self._spare)]
        return PowerOff(tuple(surplus)) if surplus else None

    def _apply(self, action: PowerSwitch, by: str, cycle: int, snapshot: Snapshot) -> None:
        now = snapshot.time
        decision = decide(action, by, None, None, now)
        if not self._write_ahead.intend([decision], cycle=cycle, now=now):
            return
        try:
            self._applier.apply(action)
            self._write_ahead.conclude(Applied(action), None, now=now)
        except AdapterError as error:
            refused = Applied(action, str(error) or error.kind, error.transient, error.kind not in NOT_SENT)
            self._write_ahead.conclude(refused, None, now=now)
            self._not_before = now + REFUSED_S
            self._trigger.wake(now, REFUSED_S)
            log.warning("nodes stay as they are: %s", error)
            return
        if not self._applier.mode.acts:
            return
        on = isinstance(action, PowerOn)
        log.info("powered %s: %s", "on" if on else "off", fold(action.nodes))
        for name in action.nodes:
            power = snapshot.cluster.nodes[snapshot.cluster.index[name]].type.power
            takes = power and (power.switch_on if on else power.switch_off)
            self._sent[name] = sent = _Sent(on, now, now + (takes.seconds if takes else 0.0))
            self._trigger.changed |= sent.until <= now  # the next cycle may use it


def _waits(snapshot: Snapshot, keys: Collection[str]) -> bool:
    """Return whether a job that may start now waits, other than those of these keys."""
    waiting = (view for view in snapshot.jobs if view.state is JobState.PENDING and not view.waits)
    return any(view.key not in keys for view in waiting)


def _goes_on(sent: _Sent, state: NodeState, now: float) -> bool:
    """Return whether a switch has not ended, as far as the state of an idle node shows."""
    before, after = (NodeState.ASLEEP, NodeState.UP) if sent.on else (NodeState.UP, NodeState.ASLEEP)
    if state is before:  # it has not begun, or has ended by itself
        return now < sent.time + SHOWN_S
    if state is after:
        return sent.on and now < sent.until
    return now < sent.time + LONGEST_S
