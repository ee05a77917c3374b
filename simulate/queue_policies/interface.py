"""The interface of a queue policy: the snapshot that it sees, and the decisions that it returns.

Rule: the snapshot shows only what a scheduler can know, never the true run time of a job. One snapshot object is
updated in place and valid during a call only: a policy may keep numbers and jobs, but not the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..arrays import Array
from ..model.intervals import Interval, count_of
from ..model.machine import Machine
from .free_nodes import FreeNodes, NodeLoads
from .frozen import View
from .queued_job import QueuedJob, Running

if TYPE_CHECKING:
    from ..model.programs import Part


@dataclass(slots=True, unsafe_hash=True)
class Start:
    """Start a waiting job.

    Args:
        job: the job.
        resources: first and last of each interval to allocate; None: the lowest free numbers. In a plan these are cores
            of the fastest nodes that have what the job needs; while too few have it, the job waits.
        nodes: instead of resources, positions in the `nodes` of the machine; in a replay only (0,), the machine.
        work: what the job does there, in place of its own work, in a replay under a policy with `places_work = True`.
            The resources may then be more or fewer than it requests.
    """

    job: QueuedJob
    resources: Iterable[Interval] | None = None
    nodes: Sequence[int] | None = None
    work: Part | None = None


@dataclass(frozen=True, slots=True)
class Reserve:
    """Promise a waiting job its start: at `time`, on these nodes, unless the next call decides otherwise.

    At that time there must be room for it, next to the other reservations of the call, if each running job ends at its
    latest end. The job does not start by itself: the policy must start it when it is called then, see `Wake`. Plans
    show reservations.

    Args:
        job: the job.
        time: seconds, later than now.
        nodes: positions in the `nodes` of the machine; None: the lowest that have room then.
    """

    job: QueuedJob
    time: float
    nodes: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """Reject a waiting job: it never runs."""

    job: QueuedJob


@dataclass(frozen=True, slots=True)
class Wake:
    """Call the policy again at `time`, in seconds, even if nothing happens then.

    Later than now; or now, after other decisions: the next call sees their effects.
    """

    time: float


@dataclass(frozen=True, slots=True)
class Switch:
    """Switch machines on or off, in a replay under a policy with `powered = True`.

    Args:
        resources: first and last of each interval: free resources, of a machine with nodes those of whole nodes.
        on: whether they are switched on.
    """

    resources: Iterable[Interval]
    on: bool


@dataclass(frozen=True, slots=True)
class Kill:
    """End a running job now: it fails, so jobs that depend on it never run. In a replay.

    Args:
        running: the job, one of `running`.
    """

    running: Running


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit a further job now, in a replay with known run times under a policy with `open_ended = True`.

    Args:
        id: of the job.
        size: requested resources, 1 or more.
        walltime: seconds after which it is killed; inf means never.
        run_time: seconds, 0 or more; nan: its start has its work.
        more: values of its columns in the results, such as `profile`.
    """

    id: str
    size: int
    walltime: float
    run_time: float
    more: Mapping[str, Any] = field(default_factory=dict)


Decision = Start | Reserve | Reject | Wake | Switch | Kill | Submit


@dataclass(frozen=True, slots=True, eq=False)
class Switching:
    """Machines that are being switched on or off; their resources are not free until then.

    Args:
        resources: first and last of each interval of their resources, ascending.
        on: whether they are being switched on.
        until: when they are free again, seconds.
    """

    resources: tuple[Interval, ...]
    on: bool
    until: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast for a job that starts now, if nothing else starts later, as far as run times are known.

    Args:
        end: when it would end, seconds on the trace's clock; inf: not known.
        slowdown: its run time as a factor on that alone, 1 or more.
        others: the largest factor by which the time left of another job would grow, 1 or more.
        delay_s: the seconds by which the ends of all other jobs would move, in all.
        crowding: the largest factor by which a job, this one or another, would then progress more slowly than alone, 1
            or more.
        alone: it would share neither cores nor memory with another job; its own threads may still slow each other down.
    """

    end: float
    slowdown: float = 1.0
    others: float = 1.0
    delay_s: float = 0.0
    crowding: float = 1.0
    alone: bool = True


@dataclass(slots=True, eq=False)
class MachineStates:
    """The states of the machines; a policy with `powered = True` sees them.

    Args:
        off: first and last of each interval of free resources that are off, ascending. A job that gets one of them
            begins when its machines have booted.
        switching: machines that are being switched, the first to be ready first.
        switched: machines that were being switched and are ready since the last call.
        idle_since: seconds since when each resource has been idle [resources]; inf: it is not. After now: it belongs to
            a node that boots for a job, and is ready then.
        energy: returns the joules that the machine has consumed. O(running jobs that do not compute all the time).
        consumed: joules that it would have consumed if jobs computed all the time, as policies with a limit assume.
    """

    off: View[Interval]
    switching: View[Switching]
    switched: list[Switching]
    idle_since: Array
    energy: Callable[[], float] = field(repr=False)
    consumed: float = 0.0


class Backfill(Protocol):
    """The jobs that can start now without delaying a reservation. The policy still has to return the decisions.

    A job can be taken once.
    """

    @property
    def reserved(self) -> float:
        """Latest time at which the job with the reservation can start, seconds; inf: never, or no job has one."""
        ...

    @property
    def nodes(self) -> tuple[int, ...] | None:
        """Positions of the reserved nodes in the `nodes` of the machine; None: it has none, or nothing is reserved."""
        ...

    def start(self, job: QueuedJob) -> Start | None:
        """Take what a waiting job needs, and return the decision that starts it now.

        None, and nothing is taken, if it does not fit, or would delay the reservation: it has to end before that, by
        its walltime, or to need only what is free even then. The reservation ends as the job that has it is taken.
        """
        ...

    def reserve(self, job: QueuedJob) -> None:
        """Reserve for a waiting job what it needs, at the first time at which that is free by the latest ends.

        These are the ends of running jobs, and of those that were taken before. Another reservation replaces it.
        """
        ...

    def start_all(self) -> list[Start]:
        """Take all other waiting jobs that can start, in the order of submission, and return the decisions."""
        ...


@dataclass(slots=True, eq=False)
class QueueView:
    """The view of the queue that a policy gets at a call.

    Args:
        time: seconds on the trace's clock.
        free: number of free resources.
        free_resources: first and last of each free interval, ascending.
        waiting: waiting jobs in the order of submission, without those that request more than the machine has.
        running: running jobs in the order of `until`.
        submitted, ended: jobs submitted and jobs ended since the last call; the latter in the order of their ends.
        machine: the machine: number of resources, first and last resource of each cluster (`groups`), and in a plan of
            each node (`nodes`, with their `names`).
        states: the states of the machines; None unless the policy has `powered = True`, and in plans.
        killed: the jobs with phases that were killed since the last call, by number: how many phases were done, each
            repetition counted, plus the share of the present one.
    """

    time: float
    free: int
    free_resources: View[Interval]
    waiting: Collection[QueuedJob]
    running: View[Running]
    submitted: list[QueuedJob]
    ended: Sequence[Running]
    machine: Machine
    _columns: Callable[[], dict[str, Array]] = field(repr=False)
    _free_nodes: Callable[[], FreeNodes] = field(repr=False)
    _forecast: Callable[[QueuedJob, Sequence[int]], Forecast] = field(repr=False)
    _loads: Callable[[], NodeLoads] = field(repr=False)
    _backfill: Callable[[], Backfill] = field(repr=False)
    _best_nodes: Callable[[QueuedJob, str], tuple[int, ...] | None] = field(repr=False)
    states: MachineStates | None = None
    killed: dict[int, float] = field(default_factory=dict)

    @property
    def withdrawn(self) -> int:
        """Return how many resources are down: neither free, nor held by a job, nor being switched. O(running jobs)."""
        switching = [change.resources for change in self.states.switching] if self.states else []
        held = [running.resources for running in self.running]
        return self.machine.processors - self.free - sum(map(count_of, (*held, *switching)))

    def columns(self) -> dict[str, Array]:
        """Return `number`, `size`, `walltime` and `submit_time` of the waiting jobs as arrays. O(waiting jobs)."""
        return self._columns()

    def free_nodes(self) -> FreeNodes:
        """Return what is free on each node, as a copy to find out what fits where. O(nodes)."""
        return self._free_nodes()

    def loads(self) -> NodeLoads:
        """Return how busy each node is, where jobs on a node slow each other down. O(nodes + running jobs)."""
        return self._loads()

    def backfill(self) -> Backfill:
        """Return a `Backfill`, which says what can start now without delaying a reservation."""
        return self._backfill()

    def best_nodes(self, job: QueuedJob, policy: str) -> tuple[int, ...] | None:
        """Return where a mapping policy would start a waiting job now, in a replay on nodes that jobs share.

        It knows nothing of the decisions of this call, as `forecast`. O(nodes) scores.

        Args:
            job: a waiting job.
            policy: `mom`, `let`, `slf` or `loadavg`.

        Returns:
            Positions in the `nodes` of the machine, ascending; None: the job fits nowhere now.
        """
        return self._best_nodes(job, policy)

    def forecast(self, job: QueuedJob, nodes: Sequence[int] = (0,)) -> Forecast:
        """Return what would happen if a waiting job started now on these nodes.

        Decisions of this call are not carried out yet, so it knows nothing of them: to know them, end with `Wake(time)`
        of this instant. Where jobs do not contend, a job ends after its walltime. O(jobs on the nodes) steps of the
        solver.

        Args:
            job: a waiting job.
            nodes: positions in the `nodes` of the machine, at most as many as the job needs; with fewer, the forecast
                is for these alone.
        """
        return self._forecast(job, nodes)


class QueuePolicy(Protocol):
    """A queue policy: any class with this method. Its options are the arguments of its constructor.

    With a class attribute `powered = True` it sees the `states` of the machines in a replay, and can switch them. With
    `open_ended = True` a replay on numbered resources also calls it at time 0, shows it jobs that request more than the
    machine has, and calls it whenever it wakes, even if no job is left. With `places_work = True`, too, its starts may
    have `work` where the network or the speeds of the resources are known. With `only_starts = True` all its decisions
    are starts, so it need not be called while no waiting job fits the free resources.
    """

    def decide(self, snapshot: QueueView, /) -> Iterable[Decision] | None:
        """Return the decisions for now; None means none. Called once per instant, after all ends and submissions.

        Decisions are applied in their order after the call returns. A job of zero run time ends at the instant at which
        it starts, and another call follows.
        """
        ...
