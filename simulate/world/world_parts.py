"""The parts of a simulated world: what a part may do at each step of the clock and at each change of a job.

Rule: a part overrides the hooks that it needs, and knows the world but no other part. Rates are the one part that each
world has: they decide when running jobs end.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from ..arrays import Array
from ..model.intervals import FreeResources, Interval
from ..model.programs import Part as Work
from ..model.workload import Workload
from ..queue_policies.free_nodes import NodeLoads
from ..queue_policies.interface import Forecast, Switch
from ..queue_policies.queued_job import QueuedJob, Running
from .replay_result import Replayed

#: Joules of a running job above those of its idle resources, until a time in seconds.
Load: TypeAlias = Callable[[float], float]


class Part:
    """One aspect of a world. No hook does anything here."""

    def join(self, world: Any) -> None:
        """Become a part of a world, before anything happens in it."""

    # --- the clock ---
    def next_time(self, before: float) -> float:
        """Return the time of the next event, seconds; inf: it has no event. Events after `before` need not be known."""
        return math.inf

    def silent_time(self) -> float:
        """Return the time of the next silent change, seconds; inf: it has none. A silent change is no instant."""
        return math.inf

    def pass_silently(self, now: float) -> None:
        """Process the silent changes up to now."""

    def advance(self, now: float) -> None:
        """Process the events of this instant, before the ends and the submissions of jobs."""

    def settle(self, now: float) -> None:
        """Process what follows from the ends and the submissions of this instant."""

    def has_changed(self) -> bool:
        """Return whether something happened since the last call that the policy must see."""
        return False

    # --- the calls of the policy ---
    def before_call(self) -> None:
        """Show the policy what it sees of this part."""

    def after_call(self) -> None:
        """Begin to note what happens until the next call."""

    def switch(self, decision: Switch) -> bool:
        """Switch machines, and return whether this part does that. Raises PolicyError."""
        return False

    # --- the jobs ---
    def last_choice(self) -> FreeResources | None:
        """Return the resources that a start gets only if no others are free; None: this part does not mind."""
        return None

    def ready_time(self, job: QueuedJob, given: Sequence[Interval]) -> float:
        """Note that a start took resources; return when they are ready for the job, seconds.

        Args:
            job: the job that starts.
            given: first and last of each interval of its resources.
        """
        return -math.inf

    def begin(self, running: Running) -> None:
        """Note that a job begins to run: its resources are ready."""

    def end(self, ended: Running) -> None:
        """Note that a job ends. Its resources are not free yet."""

    def withdrawn(self, resources: Sequence[Interval]) -> None:
        """Note that free resources are no longer there for jobs; see `SimulatedWorld.withdraw`."""

    def given_back(self, resources: Sequence[Interval], now: float) -> None:
        """Note that withdrawn resources are there again, and idle.

        Args:
            resources: first and last of each interval.
            now: seconds.
        """

    # --- the result ---
    def report(self, done: Replayed) -> Replayed:
        """Return the result with what this part knows."""
        return done


class Rates(Part):
    """The rates at which running jobs progress, and so their ends."""

    @abstractmethod
    def begin(self, running: Running) -> None:
        """Let a job run."""

    @abstractmethod
    def pop_ended(self, now: float) -> Iterable[tuple[int, bool]]:
        """Yield the jobs that end at this instant in their order, and whether each ended by itself."""

    @abstractmethod
    def kill(self, running: Running, now: float) -> None:
        """Forget a running job: it does not go on. Raises PolicyError if it has not begun."""

    def ends_well(self) -> Array | None:
        """Return which jobs can succeed, bool [jobs]; None: those that end within their walltime and return success."""
        return None

    def overran(self, workload: Workload) -> Array:
        """Return which jobs were killed at their walltimes if they ran, bool [jobs]; `workload`: all that came."""
        return workload.overruns

    def believe(self, number: int, expected: float) -> None:
        """Let forecasts expect this run time of a job, seconds."""

    def forecast(self, job: QueuedJob, nodes: Sequence[int]) -> Forecast | None:
        """Return what would happen if a job started now; None where jobs do not slow each other down."""
        return None

    def node_loads(self) -> NodeLoads | None:
        """Return how busy each node is; None where jobs do not slow each other down."""
        return None

    def best_nodes(self, job: QueuedJob, policy: str) -> tuple[int, ...] | None:
        """Return where a mapping policy would start a job now; None: nowhere. Raises LookupError where none can."""
        raise LookupError

    def take_work(self, number: int, work: Work) -> bool:
        """Note the work with which a job starts; return whether that is possible here."""
        return False

    def add_job(self, run_time: float, walltime: float) -> None:
        """Note a further job that the policy submits."""

    def load_of(self, running: Running) -> Load | None:
        """Return the load of a job whose demand varies while it runs; None: it does not."""
        return None
