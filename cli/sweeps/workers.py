"""Worker processes on this machine that replay runs in parallel.

Rule: every task has one answer. If a worker dies, its tasks go to other workers; a task that kills TRIES workers is a
Failure. Tasks of one group go to the same worker if all workers stay busy, because it has read their files. A worker
computes with one thread, so that workers do not disturb each other and a sum has one order. The kernel ends a worker
with its parent; keys pressed at the terminal do not reach it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Generic

from ... import __version__
from ...simulate.errors import PilotfishError
from .tasks import AnyTask, Failure, PoolTask, attempt

#: Run as `python -P -c COMMAND FD PARENT MODULE_PATH...`.
COMMAND = "import sys; sys.path[:] = sys.argv[3:]; from pilotfish.cli.sweeps.workers import work; work()"
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def work() -> None:
    """Answer (version, function, argument) with the function's result, or a Failure, until the pipe is closed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    with Connection(int(sys.argv[1])) as caller:
        if os.getppid() != int(sys.argv[2]):
            return
        with suppress(EOFError, ConnectionError):
            while True:
                caller.send(attempt(*caller.recv()))


#: Tasks that a worker has at once: one running, one queued, so that it is never idle.
AHEAD = 2
TRIES = 2
#: Seconds for a process that closed its pipe to end.
GRACE_S = 1.0


class PoolLostError(PilotfishError):
    """All workers are gone, and no others can be started."""


class WorkerPool(AbstractContextManager["WorkerPool"]):
    """Carries out tasks; a context that ends the workers."""

    @abstractmethod
    def each(self, function: Callable[..., Any], tasks: Sequence[AnyTask]) -> Iterator[list[tuple[AnyTask, Any]]]:
        """Yield (task, result or Failure) for each task when it ends, in lists of the tasks that end together.

        Raises:
            PoolLostError: the workers are gone.
            ConfigError: what a task reads cannot be sent to them.
        """


class Processes(WorkerPool):
    """A WorkerPool of up to `workers` processes; they are started when there are tasks."""

    def __init__(self, workers: int) -> None:
        self._most = workers
        self._workers: list[_Worker] = []

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def each(self, function: Callable[..., Any], tasks: Sequence[AnyTask]) -> Iterator[list[tuple[AnyTask, Any]]]:
        """See WorkerPool."""
        unassigned, died = _Unassigned(tasks), Counter[int]()
        while True:
            self._distribute(function, unassigned)
            busy = {worker.connection: worker for worker in self._workers if worker.doing}
            if not busy:
                return
            results: list[tuple[AnyTask, Any]] = []
            for connection in wait(list(busy)):
                worker = busy[connection]  # type: ignore[index]
                try:
                    answer = worker.connection.recv()
                except (EOFError, OSError):
                    results += self._requeue(worker, unassigned, died)
                else:
                    results.append((tasks[worker.doing.popleft()], answer))
            self._distribute(function, unassigned)
            yield results

    def _distribute(self, function: Callable[..., Any], unassigned: _Unassigned[Any]) -> None:
        while unassigned and len(self._workers) < self._most and all(worker.doing for worker in self._workers):
            self._workers.append(_Worker())
            self._assign(self._workers[-1], function, unassigned)
        for _ in range(AHEAD):
            for worker in self._workers:
                if unassigned and len(worker.doing) < AHEAD:
                    self._assign(worker, function, unassigned)

    def _assign(self, worker: _Worker, function: Callable[..., Any], unassigned: _Unassigned[Any]) -> None:
        busy_groups = Counter(
            colleague.group for colleague in self._workers if colleague is not worker and colleague.doing
        )
        place = unassigned.pop(worker.group, busy_groups)
        worker.group = unassigned.group(place)
        worker.ask(place, function, unassigned.tasks[place])

    def _requeue(
        self, worker: _Worker, unassigned: _Unassigned[AnyTask], died: Counter[int]
    ) -> list[tuple[AnyTask, Any]]:
        """Put the tasks of a dead worker back; return the task that is not tried again, with its Failure."""
        self._workers.remove(worker)
        death = worker.end(GRACE_S)
        first, *remaining = worker.doing
        died[first] += 1
        retried = remaining if died[first] >= TRIES else [first, *remaining]
        for place in reversed(retried):
            unassigned.put_back(place)
        return (
            []
            if first in retried
            else [(unassigned.tasks[first], Failure(f"two workers died of it, the last {death}"))]
        )


class InThisProcess(WorkerPool):
    """A WorkerPool without workers: one task after another, for a single one."""

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def each(self, function: Callable[..., Any], tasks: Sequence[AnyTask]) -> Iterator[list[tuple[AnyTask, Any]]]:
        """See WorkerPool."""
        for task in tasks:
            yield [(task, attempt(__version__, function, task))]


class _Unassigned(Generic[AnyTask]):
    """Indices of unassigned tasks, by group, in order."""

    def __init__(self, tasks: Sequence[AnyTask]) -> None:
        self.tasks = tasks
        self._queues: dict[Hashable, deque[int]] = {}
        for place in range(len(tasks)):
            self._queues.setdefault(self.group(place), deque()).append(place)

    def __bool__(self) -> bool:
        return bool(self._queues)

    def group(self, place: int) -> Hashable:
        """Return the group of a task: tasks that read the same trace."""
        return self.tasks[place].trace

    def pop(self, mine: Hashable, others: Counter[Hashable]) -> int:
        """Remove the next task of the group `mine`, else of the group with the fewest workers and most tasks."""
        group = mine
        if mine not in self._queues:
            group = min(self._queues, key=lambda one: (others[one], -len(self._queues[one])))
        place = self._queues[group].popleft()
        if not self._queues[group]:
            del self._queues[group]
        return place

    def put_back(self, place: int) -> None:
        """Make a task the next of its group."""
        self._queues.setdefault(self.group(place), deque()).appendleft(place)


class _Worker:
    """A worker process, and the indices of its tasks in order."""

    def __init__(self) -> None:
        parent_end, child_end = socket.socketpair()
        with child_end:
            command = [sys.executable, "-P", "-c", COMMAND, str(child_end.fileno()), str(os.getpid()), *sys.path]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[child_end.fileno()],
                process_group=0, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )  # fmt: skip
        self.connection = Connection(parent_end.detach())
        self.doing: deque[int] = deque()
        self.group: Hashable = None

    def ask(self, place: int, function: Callable[..., Any], task: PoolTask) -> None:
        """Send a task; a dead worker is found when its answer is read."""
        self.doing.append(place)
        with suppress(ConnectionError):
            self.connection.send((__version__, function, task))

    def end(self, grace_s: float = 0.0) -> str:
        """End the process if it does not end within `grace_s`; return how it ended."""
        self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self._process.kill()
        code = self._process.wait()
        return f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
