"""A queue policy of one's own: what it is shown at each call, and what it may decide.

Rule: what is shown is what a scheduler can know, never how long a job will really run. It is kept up to date as things
change, never made anew, and is true during the call alone: numbers and jobs may be kept, the snapshot may not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .intervals import Interval
from .machine import Machine

Array = npt.NDArray[Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A job as it was submitted.

    Args:
        number: its place in the order of submission, from 0.
        id: as the workload names it.
        size: resources it asks for.
        walltime: seconds after which it is ended; inf = never.
        submit_time: seconds; of a job that waited for others, when they had ended: before, it is not shown.
        user: whose it is; None = the workload does not say.
    """

    number: int
    id: int | str
    size: int
    walltime: float
    submit_time: float
    user: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """A job that runs.

    Args:
        start_time: seconds. until: the same and its walltime, when it ends at the latest.
        resources: first and last of each of its intervals, ascending.
    """

    job: Job
    start_time: float
    until: float
    resources: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """Start a job that waits.

    Args:
        resources: first and last of each interval that it gets; None: the lowest numbers that are free.
    """

    job: Job
    resources: Iterable[Interval] | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """A job that waits is never to run."""

    job: Job


@dataclass(frozen=True, slots=True)
class Wake:
    """Call again at this time, in seconds, later than now, also if nothing happens then."""

    time: float


Decision = Start | Reject | Wake


class View(Sequence[T], Generic[T]):
    """A list to look at."""

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
    """What is known at a call.

    Args:
        time: seconds on the trace's clock.
        free: resources that no job has.
        free_resources: first and last of each interval of them, ascending.
        waiting: jobs that wait, in the order of submission; those that ask for more than the machine has are not there.
        running: jobs that run, in the order of `until`.
        submitted, ended: what is new since the last call.
        machine: resources of the machine, and first and last of each of its clusters (`groups`).
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
        """`number`, `size`, `walltime` and `submit_time` of the jobs that wait, an array each. O(jobs that wait)."""
        return self._columns()


class OwnPolicy(Protocol):
    """What a policy of one's own is: a class with this method; options are what it takes when it is made."""

    def decide(self, snapshot: Snapshot, /) -> Iterable[Decision] | None:
        """What to do now; called once at each instant, after all ends, then all submissions. None = nothing.

        All decisions are taken first and carried out then, in their order; a job of no length ends where it starts,
        and another call follows.
        """
        ...


def columns_of(waiting: dict[int, Job], size: Array, walltime: Array, submit_time: Array) -> dict[str, Array]:
    """See `Snapshot.columns`; the columns are those of all jobs."""
    number = np.fromiter(waiting, np.int64, len(waiting))
    chosen = {"size": size[number], "walltime": walltime[number], "submit_time": submit_time[number]}
    return {"number": number, **chosen}
