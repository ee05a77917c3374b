"""Processes of this machine that carry out tasks side by side.

Rule: every task has one answer. A process that dies takes nothing with it: what it was asked last is asked once more
of another, and is a Failure if that one dies of it, too. Tasks of one group go to the same process where that keeps
all busy, for it has read what they need.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, Self

from .task import Failure, Task
from .worker import COMMAND

#: Tasks that a process has at once: one that it does, one that waits, so that it need not wait for us.
AHEAD = 2
TRIES = 2
#: Seconds for a process that has gone silent to be gone.
GRACE_S = 1.0


class Crew(Protocol):
    """Who carries out tasks; a context, left when they are no longer needed."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def each(self, function: Callable[..., Any], tasks: Sequence[Task]) -> Iterator[list[tuple[Task, Any]]]:
        """Every task with what `function` says of it, or a Failure, as they end, in lists of those that end at once.
        """
        ...


class Processes:
    """As many processes as wanted; started when there is something to do, ended as the context is left."""

    def __init__(self, workers: int) -> None:
        self._wanted = workers
        self._hands: list[_Hand] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for hand in self._hands:
            hand.end()
        self._hands.clear()

    def each(self, function: Callable[..., Any], tasks: Sequence[Task]) -> Iterator[list[tuple[Task, Any]]]:
        """See Crew."""
        left, died = _Left(tasks), Counter[int]()
        while True:
            self._hand_out(function, left)
            busy = {hand.connection: hand for hand in self._hands if hand.doing}
            if not busy:
                return
            found: list[tuple[Task, Any]] = []
            for connection in wait(list(busy)):
                hand = busy[connection]  # type: ignore[index]
                try:
                    answer = hand.connection.recv()
                except (EOFError, OSError):
                    found += self._buried(hand, left, died)
                else:
                    found.append((tasks[hand.doing.popleft()], answer))
            self._hand_out(function, left)
            yield found

    def _hand_out(self, function: Callable[..., Any], left: _Left) -> None:
        while left and len(self._hands) < self._wanted and all(hand.doing for hand in self._hands):
            self._hands.append(_Hand())
            self._give(self._hands[-1], function, left)
        for _ in range(AHEAD):
            for hand in self._hands:
                if left and len(hand.doing) < AHEAD:
                    self._give(hand, function, left)

    def _give(self, hand: _Hand, function: Callable[..., Any], left: _Left) -> None:
        others = Counter(other.group for other in self._hands if other is not hand and other.doing)
        place = left.take(hand.group, others)
        hand.group = left.group(place)
        hand.ask(place, function, left.tasks[place])

    def _buried(self, hand: _Hand, left: _Left, died: Counter[int]) -> list[tuple[Task, Any]]:
        """Take back what a dead process had; returns what is not tried again."""
        self._hands.remove(hand)
        how = hand.end(GRACE_S)
        first, *others = hand.doing
        died[first] += 1
        again = others if died[first] >= TRIES else [first, *others]
        for place in reversed(again):
            left.put_back(place)
        return [] if first in again else [(left.tasks[first], Failure(f"two processes died of it, the last {how}"))]


class _Left:
    """Places of tasks that nobody has yet, by group, in order."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks
        self._queues: dict[Hashable, deque[int]] = {}
        for place in range(len(tasks)):
            self._queues.setdefault(self.group(place), deque()).append(place)

    def __bool__(self) -> bool:
        return bool(self._queues)

    def group(self, place: int) -> Hashable:
        """Tasks that need the same to be read."""
        return self.tasks[place].trace

    def take(self, mine: Hashable, others: Counter[Hashable]) -> int:
        """The next of one's own group; else of the one that fewest are at, then that has most left."""
        group = mine if mine in self._queues else min(
            self._queues, key=lambda one: (others[one], -len(self._queues[one]))
        )  # fmt: skip
        queue = self._queues[group]
        place = queue.popleft()
        if not queue:
            del self._queues[group]
        return place

    def put_back(self, place: int) -> None:
        """To be taken next."""
        self._queues.setdefault(self.group(place), deque()).appendleft(place)


class _Hand:
    """A process, and the places of the tasks it was given, first asked first."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-c", COMMAND, str(theirs.fileno()), str(os.getpid()), *sys.path]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                process_group=0,
            )  # fmt: skip
        self.connection = Connection(ours.detach())
        self.doing: deque[int] = deque()
        self.group: Hashable = None

    def ask(self, place: int, function: Callable[..., Any], task: Task) -> None:
        """Give it a task; one that has died will be found dead."""
        self.doing.append(place)
        try:
            self.connection.send((function, task))
        except ConnectionError:
            return

    def end(self, grace_s: float = 0.0) -> str:
        """End it, where it does not by itself; returns how it ended."""
        self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self._process.kill()
        code = self._process.wait()
        return f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
