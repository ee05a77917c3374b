"""The adapter of the played resource manager: it reads the queue, places what was handed over, and submits our own.

Rule: it knows nothing that a restart would lose; all is in the manager. A job is read again before it is changed, and
the manager refuses the change if the job is not as it was read. Each request may fail as `answer` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import TypeVar

from pilotfish.adapters.base import Adapter, AdapterError, Capabilities
from pilotfish.simulate.model.plan import Cancel, Place, Release, Submit, SubmitAhead
from pilotfish.simulate.model.snapshot import JobState, JobView, Snapshot
from tests.support.played_manager import QueuedJob, SimulatedManager

T = TypeVar("T")
#: Seconds after which a request that was given up is carried out.
LATE_S = 30.0


class Answer(StrEnum):
    """What becomes of a request and its answer; only GIVEN is heard."""

    GIVEN = "given"
    LOST = "lost"  #: carried out
    DROPPED = "dropped"  #: not carried out
    LATE = "late"  #: carried out LATE_S seconds after it was given up


class HandOverAdapter(Adapter):
    """A connection to a `SimulatedManager`.

    Args:
        manager: the resource manager.
        answer: says what becomes of the next request; its argument is whether the request changes something.
        ahead_s: how long before its start a job of our own may be submitted, seconds.
    """

    name = "played"

    def __init__(
        self,
        manager: SimulatedManager,
        answer: Callable[[bool], Answer] = lambda change: Answer.GIVEN,
        *,
        ahead_s: float = 30.0,
    ) -> None:
        self.manager, self._answer, self._version, self.ahead_s = manager, answer, 0, ahead_s

    @property
    def capabilities(self) -> Capabilities:
        """What the manager can do."""
        what = Capabilities(virtual_time=True, events=False, offers=True, ahead_s=self.ahead_s)
        return replace(what, begins_within_s=self.manager.pass_s)

    def snapshot(self) -> Snapshot:
        """Read the queue and the nodes."""
        records = self._ask(self.manager.queue)
        self._version += 1
        states = tuple(self.manager.node_states.values())
        views = tuple(self._view(record) for record in records)
        return Snapshot(self.manager.time, self._version, self.manager.cluster, states, views)

    def recall(self, since: Mapping[str, float]) -> dict[str, JobView]:
        """Look up jobs in accounting, which is late: a job whose end it does not know yet is UNKNOWN."""
        found = {}
        for record in self._ask(lambda: [*self.manager.jobs.values()]):  # the last of each key
            if (key := self._key(record)) in since:
                view, ended = self._view(record), record.finish_time
                known = ended is not None and ended <= self.manager.time - self.manager.late_s
                found[key] = view if known else replace(view, state=JobState.UNKNOWN)
        return found

    def submit(self, action: Submit) -> None:
        """Queue a job of our own, once."""
        if unknown := [name for name in action.nodes if name not in self.manager.cluster.index]:
            raise AdapterError(f"{action.key}: there is no node {unknown[0]!r}", kind="refused")
        if self._number(action.key) is not None:
            raise AdapterError(f"{action.key}: only jobs of users have such a key", kind="refused")
        self._ask(partial(self.manager.submit_once, action.key, action.job, action.nodes), change=True)

    def submit_ahead(self, action: SubmitAhead) -> None:
        """Queue a job of our own that waits for its nodes, once."""
        keys = tuple(key for key, _ in action.after)
        self._ask(partial(self.manager.submit_ahead, action.key, action.job, keys, 2 * self.ahead_s), change=True)

    def cancel(self, action: Cancel) -> None:
        """End a job of our own."""
        if self._number(action.key) is not None:
            raise AdapterError(f"{action.key}: only its user may cancel it", kind="refused")
        record = self._ask(partial(self.manager.find, action.key))
        if record is not None:
            self._ask(partial(self.manager.cancel, record.number), change=True)

    def place(self, action: Place) -> None:
        """Pin a job and end its hold, in one request."""
        record = self._read(action.key)
        if record.state is not JobState.PENDING or record.pin == action.nodes:
            return
        if why := self._waits(record) if record.handed_over else "it is not handed over":
            raise AdapterError(f"{action.key}: {why}", kind="refused")
        now = self.manager.time
        self._write(record, pin=action.nodes, pinned_at=now, begin=min(record.begin, now))

    def release(self, action: Release) -> None:
        """Undo a pin, or end a hold for good."""
        record = self._read(action.key)
        if record.state is not JobState.PENDING:
            return
        if record.pin:
            self._write(record, pin=())
        elif record.held_for_us(self.manager.time):
            self._write(record, begin=self.manager.time, let_go=True)

    def wait(self, timeout_s: float) -> bool:
        """Let the manager's time pass; it reports nothing."""
        self.manager.advance(timeout_s)
        return False

    def _ask(self, do: Callable[[], T], *, change: bool = False) -> T:
        """Carry out a request, or not, and return its answer, if there is one."""
        if self.manager.away:
            raise AdapterError("the resource manager is away", transient=True, kind="unreachable")
        answer = self._answer(change)
        if answer is Answer.LATE and change:
            self.manager.later(LATE_S, do)
        elif answer is not Answer.DROPPED:
            result = do()
            if answer is Answer.GIVEN:
                return result
        raise AdapterError("no answer in time", transient=True, kind="timeout")

    def _write(self, record: QueuedJob, **fields: object) -> None:
        self._ask(partial(self.manager.update, record.number, record.version, **fields), change=True)

    def _read(self, key: str) -> QueuedJob:
        number = self._number(key)
        record = None if number is None else self._ask(lambda: self.manager.jobs.get(number))
        if record is None:
            raise AdapterError(f"{key}: there is no such job of a user", kind="refused")
        return replace(record)

    def _number(self, key: str) -> int | None:
        name, _, number = key.partition("/")
        return int(number) if name == self.name and number.isascii() and number.isdecimal() else None

    def _key(self, record: QueuedJob) -> str:
        return record.key or f"{self.name}/{record.number}"

    def _waits(self, record: QueuedJob) -> str:
        if record.user_held:
            return "its user holds it"
        now = self.manager.time
        return "" if record.begin <= now or record.held_for_us(now) else "it is to begin later"

    def _view(self, record: QueuedJob) -> JobView:
        job = record.job if record.key else replace(record.job, id=str(record.number))
        view = JobView(
            self._key(record), job, record.state, record.nodes, record.submit_time, record.start_time,
            record.finish_time, exit_code=record.exit_code,
        )  # fmt: skip
        if record.skipped:
            return replace(view, state=JobState.PENDING, finish_time=None, exit_code=None, restartable=True)
        if record.key and record.state is JobState.PENDING and not record.pin and record.begin > self.manager.time:
            return replace(view, restartable=True, ahead=True)
        if record.state is not JobState.PENDING or record.key:
            return view
        if record.pin:
            return replace(view, nodes=record.pin, pinned_since=record.pinned_at, offered=True)
        waits = self._waits(record)
        if not record.handed_over:
            return replace(view, waits=waits, due_why="it was let go" if record.let_go else "")
        held = record.held_for_us(self.manager.time)
        due = record.submit_time + self.manager.most_s if held else None
        return replace(view, offered=True, restartable=True, waits=waits, due=due)
