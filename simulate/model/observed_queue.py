"""The whole queue of a resource manager that decides by itself, as an adapter saw it at one moment.

Rule: it holds what is known, and no assumption. If the start of a job depends on more than nodes, walltimes and the
ends of other jobs, `unknown` says on what, and the start is not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .snapshot import JobState


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """A job of the queue; times are epoch seconds of the resource manager's clock.

    Args:
        key: under which snapshots show it.
        state: it waits, runs or has ended.
        name: as its user named it.
        owner: uid of its user.
        account: that it is charged to.
        queue: of the resource manager, or partition.
        nodes: number of nodes.
        cores: on each node.
        memory: on each node, bytes.
        alone: it has its nodes for itself.
        walltime: seconds after which it is ended; None: never.
        submit_time: when it was submitted; None: not known.
        begin: before which it does not start; None: at any time.
        tasks: number of jobs like it that it stands for, which wait as one entry of the queue.
        array: which jobs are of one array; "": it is of none.
        tasks_at_once: most jobs of its array that run at once; None: any number.
        after: keys of the jobs whose ends it waits for.
        where: names of the nodes that it has, or may get.
        start_time: when it began; None: it waits.
        finish_time: when it ended; None: it has not.
        manager_start: when the resource manager itself expects a waiting job to start; None: it does not say.
        unknown: why its start cannot be known, one clause; "": it can.
    """

    key: str
    state: JobState
    name: str = ""
    owner: int | None = None
    account: str = ""
    queue: str = ""
    nodes: int = 1
    cores: int = 1
    memory: float = 0.0
    alone: bool = False
    walltime: float | None = None
    submit_time: float | None = None
    begin: float | None = None
    tasks: int = 1
    array: str = ""
    tasks_at_once: int | None = None
    after: tuple[str, ...] = ()
    where: frozenset[str] = frozenset()
    start_time: float | None = None
    finish_time: float | None = None
    manager_start: float | None = None
    unknown: str = ""

    @property
    def waiting(self) -> bool:
        """True if it has not begun."""
        return self.state is JobState.PENDING


@dataclass(frozen=True, slots=True)
class ObservedQueue:
    """The queue at `time`.

    Args:
        time: epoch seconds of the resource manager's clock.
        jobs: those that wait in the order in which they are considered; the others in any order.
        nodes: cores and bytes of memory of each node that takes jobs, by name.
    """

    time: float
    jobs: Sequence[ObservedJob]
    nodes: Mapping[str, tuple[int, float]]
