"""The interface of a queue policy written in Python: the snapshot that it sees, and the decisions that it returns.

Rule: the snapshot shows only what a scheduler can know, never the true run time of a job. One snapshot object is
updated in place and valid during a call only: a policy may keep numbers and jobs, but not the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, overload

from ..arrays import Array
from .intervals import Interval
from .machine import Machine

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A job as submitted.

    Args:
        number: position in the order of submission, from 0.
        id: id in the workload.
        size: requested resources.
        walltime: seconds after which the job is killed; inf means never.
        submit_time: seconds; for a job with dependencies, when they were met. Before that it is not shown.
        user: the user; None if the workload has none.
    """

    number: int
    id: int | str
    size: int
    walltime: float
    submit_time: float
    user: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """A running job.

    Args:
        job: the job.
        start_time: seconds.
        until: start time plus walltime, seconds: its latest end.
        resources: first and last of each interval of its resources, ascending.
    """

    job: Job
    start_time: float
    until: float
    resources: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """Start a waiting job.

    Args:
        job: the job.
        resources: first and last of each interval to allocate; None: the lowest free numbers.
    """

    job: Job
    resources: Iterable[Interval] | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """Reject a waiting job: it never runs."""

    job: Job


@dataclass(frozen=True, slots=True)
class Wake:
    """Call the policy again at `time`, in seconds and later than now, even if nothing happens then."""

    time: float


Decision = Start | Reject | Wake


class View(Sequence[T], Generic[T]):
    """A read-only view of a list."""

    __slots__ = ("_items",)

    def __init__(self, items: list[T]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Any:
        return iter(self._items)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        return self._items[place]


@dataclass(slots=True, eq=False)
class Snapshot:
    """What a policy sees at a call.

    Args:
        time: seconds on the trace's clock.
        free: number of free resources.
        free_resources: first and last of each free interval, ascending.
        waiting: waiting jobs in the order of submission, without those that request more than the machine has.
        running: running jobs in the order of `until`.
        submitted, ended: jobs submitted and jobs ended since the last call.
        machine: the machine: number of resources, and first and last resource of each cluster (`groups`).
    """

    time: float
    free: int
    free_resources: View[Interval]
    waiting: Collection[Job]
    running: View[Running]
    submitted: list[Job]
    ended: list[Running]
    machine: Machine
    _columns: Callable[[], dict[str, Array]] = field(repr=False)

    def columns(self) -> dict[str, Array]:
        """Return `number`, `size`, `walltime` and `submit_time` of the waiting jobs as arrays. O(waiting jobs)."""
        return self._columns()


class QueuePolicy(Protocol):
    """A queue policy: any class with this method. Its options are the arguments of its constructor."""

    def decide(self, snapshot: Snapshot, /) -> Iterable[Decision] | None:
        """Return the decisions for now; None means none. Called once per instant, after all ends and submissions.

        Decisions are applied in their order after the call returns. A job of zero run time ends at the instant at which
        it starts, and another call follows.
        """
        ...
