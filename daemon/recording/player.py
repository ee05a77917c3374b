"""The player: an adapter and a clock that answer as a record says.

Rule: while a loop asks what the recorded one asked, in that order, it gets the same answers. One that decides otherwise
asks otherwise: its readings of the cluster are the last recorded one, its looks into the accounting are answered from
what the record has, and its actions succeed without an effect.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, TypeVar

from ...adapters.base import Adapter, AdapterError, Capabilities
from ...formats.record.changes import ChangeReader
from ...simulate.model.accounting_record import AccountingRecord
from ...simulate.model.cluster import Cluster
from ...simulate.model.observed_queue import ObservedJob, ObservedQueue
from ...simulate.model.plan import Action
from ...simulate.model.snapshot import JobView, JobViews, NodeState, Snapshot

#: Carries out what a client asked for: its kind, and its facts.
TakeInput = Callable[[str, list[Any]], None]
Value = TypeVar("Value")


@cache
def _reader_of(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


class Player(Adapter):
    """Plays one cycle after another.

    Args:
        name: of the recorded adapter.
        capabilities: of the recorded adapter.
        cluster: its nodes.
        take_input: carries out what clients asked for during a cycle, at its place.

    Attributes:
        strays: number of calls that the record has no answer to at their place.
    """

    name = ""

    def __init__(
        self, name: str, capabilities: Capabilities, cluster: Cluster, take_input: TakeInput = lambda kind, facts: None
    ) -> None:
        self.name, self._capabilities, self._cluster, self._take_input = name, capabilities, cluster, take_input
        self._readings, self._now = deque[int](), 0
        self._answers = dict[str, deque[Callable[[], Any]]]()
        self._version, self.strays = 0, 0
        self._looks, self._news, self._questions, self._cut = 0, None, 0, 0
        self._calls = self._breaths = 0
        self._meanwhile = deque[tuple[int, int, str, list[Any]]]()
        self._snapshot: Snapshot | None = None
        self._queue: ObservedQueue | None = None
        self._recalled, self._used = dict[str, JobView](), dict[str, AccountingRecord]()
        self.begin_segment()

    @property
    def capabilities(self) -> Capabilities:
        """Those of the recorded adapter."""
        return self._capabilities

    @property
    def time(self) -> float:
        """Time of the last snapshot, epoch seconds; 0 before the first."""
        return 0.0 if self._snapshot is None else self._snapshot.time

    def begin_segment(self) -> None:
        """Read the next cycle as the first of its segment, which rests on none before."""
        self._jobs, self._queued = ChangeReader(JobView), ChangeReader(ObservedJob)
        self._states: tuple[NodeState, ...] = (NodeState.UP,) * len(self._cluster.nodes)
        self._nodes: Mapping[str, tuple[int, float]] = {}

    def clock(self) -> float:
        """Return the next reading of the recorded clock, seconds; at the end of a cycle again the last one."""
        if self._readings:
            self._now += self._readings.popleft()
        return self._now / 1e6

    def load_cycle(self, line: Mapping[str, Any]) -> None:
        """Take the answers of a recorded cycle; those of the one before are dropped.

        Args:
            line: as the recorder wrote it.

        Raises:
            KeyError, IndexError, TypeError, ValueError: it is damaged.
        """
        first, *others = line["clock"]
        self._readings, self._now = deque([0, *others]), first
        self._looks, self._news, self._questions, self._cut = 0, line.get("news"), 0, int(line.get("cut", 0))
        self._calls = self._breaths = 0
        meanwhile = line.get("meanwhile", ())
        self._meanwhile = deque((int(calls), int(breaths), kind, facts) for calls, breaths, (kind, *facts) in meanwhile)
        self._answers.clear()
        for name, answer, *error in line["calls"]:
            self._answers.setdefault(name, deque()).append(self._answer(name, answer, error))

    def breathe(self) -> None:
        """Carry out what clients asked for in this breath of the recorded cycle."""
        self._breaths += 1
        self._take_inputs((self._calls, self._breaths))

    def end_cycle(self) -> None:
        """Carry out what clients asked for after the last call of the cycle, or what it did not come to."""
        self._take_inputs((math.inf, math.inf))

    def _take_inputs(self, place: tuple[float, float]) -> None:
        """Carry out what clients asked for up to that number of calls, and of breaths since the last of them."""
        while self._meanwhile and self._meanwhile[0][:2] <= place:
            *_, kind, facts = self._meanwhile.popleft()
            readings, self._readings = self._readings, deque[int]()  # those are for the cycle
            self._take_input(kind, facts)
            self._readings = readings

    def _answer(self, name: str, answer: Any, error: list[Any]) -> Callable[[], Any]:
        """Return what gives the answer to a call, or raises its error."""
        if error:
            text, transient, kind, again_s = error[0]

            def fail() -> None:
                failure = AdapterError(text, transient=transient, kind=kind)
                failure.again_s = again_s
                raise failure

            return fail
        value: Any = None
        match name:
            case "snapshot" | "refresh":
                value = self._read_snapshot(answer)
            case "queue" if answer is not None:
                value = self._read_queue(answer)
            case "recall" if answer is not None:
                value = {key: _reader_of(JobView).validate_python(view) for key, view in answer.items()}
                self._recalled |= value
            case "usage" if answer is not None:
                value = {key: _reader_of(AccountingRecord).validate_python(one) for key, one in answer.items()}
                self._used |= value
        return lambda: value

    def _read_snapshot(self, answer: Mapping[str, Any]) -> Snapshot:
        views = self._jobs.values(answer.get("jobs", {}))
        if changed := answer.get("states"):
            states = list(self._states)
            for place, state in changed.items():
                states[int(place)] = NodeState(state)
            self._states = tuple(states)
        self._version += 1
        same = self._snapshot.jobs if answer.get("kept") and self._snapshot is not None else None
        jobs = JobViews(views) if same is None else same
        self._snapshot = Snapshot(answer["time"], self._version, self._cluster, self._states, jobs)
        return self._snapshot

    def _read_queue(self, answer: Mapping[str, Any]) -> ObservedQueue:
        if "nodes" in answer:
            self._nodes = {name: (cores, memory) for name, (cores, memory) in answer["nodes"].items()}
        self._queue = ObservedQueue(answer["time"], self._queued.values(answer["jobs"]), self._nodes)
        return self._queue

    def _next(self, name: str, otherwise: Value) -> Value:
        self._calls, self._breaths = self._calls + 1, 0
        self._take_inputs((self._calls - 1, math.inf))
        answers = self._answers.get(name)
        if answers:
            value: Value = answers.popleft()()
            return value
        self.strays += 1
        return otherwise

    def snapshot(self) -> Snapshot:
        """Return the recorded snapshot."""
        if self._snapshot is None:
            raise AdapterError("the record has no snapshot", kind="read")
        return self._next("snapshot", self._snapshot)

    def refresh(self, keys: Collection[str]) -> Snapshot:
        """Return the recorded snapshot, whatever the jobs."""
        assert self._snapshot is not None, "a snapshot came before"
        return self._next("refresh", self._snapshot)

    def queue(self) -> ObservedQueue | None:
        """Return the recorded queue."""
        return self._next("queue", self._queue)

    def recall(self, since: Mapping[str, float]) -> Mapping[str, JobView] | None:
        """Return what was recorded of ended jobs."""
        return self._next("recall", {key: view for key in since if (view := self._recalled.get(key))})

    def usage(self, since: Mapping[str, float]) -> Mapping[str, AccountingRecord] | None:
        """Return what was recorded of the usage of ended jobs."""
        return self._next("usage", {key: one for key in since if (one := self._used.get(key))})

    def apply(self, action: Action) -> None:
        """Do nothing, or fail as recorded."""
        self._next("apply", None)

    def wait(self, timeout_s: float) -> bool:
        """Return at once, whether the recorded loop heard news at this place of its search for a plan."""
        self._looks += 1
        return self._looks == self._news

    def stopping(self) -> bool:
        """Return whether a search for a plan is to end, because the recorded one did so at this question or before."""
        self._questions += 1
        return 0 < self._cut <= self._questions

    def fileno(self) -> int | None:
        """Return a number that is no descriptor, so that a search asks for news where the recorded one could."""
        return -1 if self._capabilities.events else None
