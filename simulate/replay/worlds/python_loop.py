"""Replay a workload under a queue policy written in Python, which is called at each instant.

Rule: the instants are those of `replay`: all ends, then all submissions, then one call. A job of zero run time ends at
the instant at which it starts, and another call follows.
With predicted run times, a running job that outlasts its expected end is an instant, too.
If deciding takes time, the decisions of a call at t that took d seconds are applied at t + d, after the ends and
submissions of that instant. Ends and submissions in between are shown at the next call, which then follows at once: a
policy is never called while it decides. If d is zero, or too small to change the clock, decisions are applied at t.
Source: thesis of Poquet (2017), 4.2, decisions applied at the end of the procedure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ...errors import ConfigError
from ...model.machine import Machine, equal_powers
from ...model.network import Network
from ...model.workload import LONGEST, Workload
from ...queue_policies.interface import QueuePolicy
from .. import slices
from ..known_run_times import Predictions
from ..replay_result import Replayed, in_order_of_submission
from .networked_jobs import NetworkedJobs
from .powered_jobs import (
    PoweredJobs,
    PoweredNetworkedJobs,
    PoweredPredictedJobs,
    PoweredPredictedNetworkedJobs,
    SwitchedMachines,
    is_powered,
)
from .predicted_jobs import PredictedJobs, PredictedNetworkedJobs
from .rigid_jobs import RigidJobs
from .stepwise_jobs import StepwiseJobs, is_stepwise

#: Worlds without and with machines that are switched, by whether run times are predicted, and depend on a network.
_WORLDS: dict[tuple[bool, bool], tuple[Callable[..., RigidJobs], Callable[..., RigidJobs]]] = {
    (False, False): (RigidJobs, PoweredJobs),
    (False, True): (NetworkedJobs, PoweredNetworkedJobs),
    (True, False): (PredictedJobs, PoweredPredictedJobs),
    (True, True): (PredictedNetworkedJobs, PoweredPredictedNetworkedJobs),
}


class Loop(Protocol):
    """A world that calls a queue policy; `drive` runs it."""

    def next_time(self, before: float) -> float:
        """Return the time of the next event, inf if none is left; events after `before` need not be known.

        Wake-ups without remaining jobs are ignored.
        """
        ...

    def advance_to(self, now: float) -> None:
        """Process all ends of this instant, then all submissions."""
        ...

    def has_changed(self) -> bool:
        """Return whether something happened since the last call that the policy must see."""
        ...

    #: Whether the last decisions ask for another call at this instant.
    again: bool

    def call_policy(self) -> list[Any]:
        """Call the policy and return its decisions. Raises PolicyError."""
        ...

    def apply(self, decisions: Iterable[Any], now: float) -> None:
        """Apply the decisions of the last call at this time. Raises PolicyError."""
        ...

    def result(self, instants: int, seconds: float) -> Replayed:
        """Return the result. Raises PolicyError if jobs still wait."""
        ...


def replay_with_python_policy(
    workload: Workload, machine: Machine, policy: QueuePolicy, *, decision_time: float | None,
    predictions: Predictions | None, network: Callable[[], Network] | None, log_power: bool = False,
    clock: Callable[[], float], progress: Callable[[float], None],
) -> Replayed:  # fmt: skip
    """Replay a workload under a Python policy. O(jobs x log running), plus the time of the policy.

    Args:
        workload: the jobs.
        machine: the machine.
        policy: the policy to call.
        decision_time: simulated seconds that each call takes, 0 or more; None: its duration by `clock`.
        predictions: of the run times; None: the policy sees walltimes.
        network: makes the network between the resources; None if run times do not depend on it.
        log_power: see `replay`.
        clock: returns seconds.
        progress: called now and then with the simulated time.

    Raises:
        ConfigError: `decision_time` is out of range, or the power of resources is unknown or differs, under a policy
            that needs it.
        PolicyError: the policy raised an exception, made an invalid decision, or left jobs waiting forever.
    """
    began = clock()
    given: dict[str, Any] = {} if predictions is None else {"predictions": predictions}
    if network is not None:
        given |= {"network": network, "log_power": log_power}
    kind: Callable[..., RigidJobs | StepwiseJobs] = StepwiseJobs
    if given or not is_stepwise(policy):
        kind = _WORLDS[predictions is not None, network is not None][is_powered(policy)]
    loop = kind(workload, machine, policy, **given)
    if isinstance(loop, StepwiseJobs) and decision_time == 0.0 and getattr(policy, "only_starts", False):
        loop.call_rarely()
    if isinstance(loop, SwitchedMachines):
        loop.power_with(equal_powers(machine.powers), float(workload.submit_time[0]) if len(workload) else 0.0)
    done = drive(loop, began, decision_time=decision_time, clock=clock, progress=progress)
    return in_order_of_submission(done) if loop.added else done


def drive(
    loop: Loop, replay_began: float, *, decision_time: float | None, clock: Callable[[], float],
    progress: Callable[[float], None],
) -> Replayed:  # fmt: skip
    """Run a world to its end; see `replay_with_python_policy`. `replay_began`: by the clock."""
    if decision_time is not None and not 0.0 <= decision_time <= LONGEST:
        raise ConfigError("decision_time", "", f"{decision_time:g}", f"seconds from 0 to {LONGEST:g}")
    instants, apply_at, decisions = 0, math.inf, list[Any]()
    size = slice_end = slices.FIRST
    slice_began = clock()
    while True:
        now = loop.next_time(apply_at)
        if now > apply_at:
            now = apply_at
        if now == math.inf:
            break
        if instants == slice_end:
            size, slice_began = slices.next_slice(size, clock() - slice_began), clock()
            slice_end += size
            progress(now)
        loop.advance_to(now)
        instants += 1
        if apply_at < math.inf:
            if now < apply_at:
                continue
            loop.apply(decisions, now)
            apply_at = math.inf
            if not loop.has_changed():
                continue
        began = clock() if decision_time is None else 0.0
        decisions = loop.call_policy()
        spent = clock() - began if decision_time is None else decision_time
        if now + spent > now:
            apply_at = now + spent
            continue
        if decisions:
            loop.apply(decisions, now)
        while loop.again:
            loop.apply(loop.call_policy(), now)
    return loop.result(instants, clock() - replay_began)
