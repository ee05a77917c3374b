"""The recorder: every answer that a cycle rests on, in the order in which it came, and what the cycle did.

Rule: recording changes no answer and no decision, and an error of the record is none of the cycle. A cycle is one line:

- `clock`: the readings of the daemon's clock, whole microseconds: the first, then differences;
- `calls`: [name, answer] of each call of the adapter, or [name, null, error];
- `did`: what was decided and became of it, each as one line; `plan`: the policy; `forecasts`: a check sum of its plan;
- `cut`: how often the search for a plan had asked whether to end when a limit in seconds, or the end of the daemon,
  ended it;
- `news`: which look for news during the search for a plan was the first that had some;
- `inputs`: what clients submitted, cancelled or paused before the cycle;
- `meanwhile`: the same during the cycle, each as [number of calls before it, number of breaths since the last of these
  calls, input]: clients are answered in breaths, and what they ask for counts from that moment on;
- `stands`: the last input of each kind that holds until the next one, in the first cycle of a segment: where the
  record has a gap before it, the input itself may be lost;
- `failed`: the cycle ended with an error;
- `decides`: false for a look after which nothing was to be decided.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from ...adapters.base import Adapter, AdapterError
from ...formats.documents.plain_values import plain
from ...formats.record.changes import ChangeWriter
from ...formats.record.segments import RecordWriter
from ...simulate.model.observed_queue import ObservedQueue
from ...simulate.model.plan import Plan
from ...simulate.model.snapshot import JobView, NodeState, Snapshot
from ..report.cycle_report import CycleReport
from ..state.applied import describe
from ..state.codec import encode

#: Inputs that hold until the next one of their kind.
STANDING = ("pauses", "config")
#: The calls whose answers are recorded.
RECORDED = ("snapshot", "refresh", "queue", "recall", "usage", "apply", "wait")


class Recorder:
    """Records the cycles of one daemon.

    Args:
        writer: keeps the lines.
        clock: seconds, monotonic; the cycle reads `clock` of this object in its place.
    """

    def __init__(self, writer: RecordWriter, clock: Callable[[], float]) -> None:
        self._writer, self._read_clock = writer, clock
        self._line: dict[str, Any] | None = None
        self._reading = self._looks = self._breaths = 0
        self._muted = False
        self._inputs = list[list[Any]]()
        self._standing = dict[str, list[Any]]()
        self._forget()

    def clock(self) -> float:
        """Return the time of the clock, in whole microseconds."""
        reading = round(self._read_clock() * 1e6)
        if not self._muted:
            if self._line is not None:
                self._line["clock"].append(reading - self._reading)
            self._reading = reading
        return reading / 1e6

    @contextmanager
    def muted(self) -> Iterator[None]:
        """Leave out what happens meanwhile: clients are answered."""
        before, self._muted = self._muted, True
        try:
            yield
        finally:
            self._muted = before

    def breathing(self, breathe: Callable[[], None]) -> Callable[[], None]:
        """Return a function to call in place of `breathe`, by which the record knows when clients were answered."""

        def counted() -> None:
            self._breaths += 1
            breathe()

        return counted

    def adapter(self, inner: Adapter) -> Adapter:
        """Return an adapter that asks `inner`, and records its answers during a cycle."""
        return cast(Adapter, _RecordedAdapter(inner, self))

    def note_input(self, kind: str, *facts: Any) -> None:
        """Note what a client submitted, cancelled, paused or configured, at its place in a cycle or before the next."""
        if kind == "submit":
            (submission,) = facts
            facts = (submission.id, encode(submission.workflow), submission.submit_time, submission.owner)
        if kind in STANDING:
            self._standing[kind] = [kind, *facts]
        if self._line is None:
            self._inputs.append([kind, *facts])
        else:
            place = [len(self._line["calls"]), self._breaths]
            self._line.setdefault("meanwhile", []).append([*place, [kind, *facts]])

    def end(self, report: CycleReport | None) -> None:
        """Write the line of the cycle that has just ended; None: it failed."""
        if self._line is None:
            return
        line, self._line = self._line, None
        if report is None:
            line["failed"] = True
        else:
            line |= decisions_of(report)
        self._writer.write(line)

    def end_look(self) -> None:
        """Write the line of a look after which nothing was to be decided."""
        if self._line is not None:
            line, self._line = self._line, None
            self._writer.write(line | {"decides": False})

    def forget_look(self) -> None:
        """Leave out a look that was interrupted; the record ends before it."""
        self._line = None

    def close(self) -> None:
        """End the record."""
        self.end(None)
        self._writer.close()

    def ask(self, name: str, member: Callable[..., Any], *arguments: Any) -> Any:
        """Call a member of the adapter, and record its answer.

        Args:
            name: of the call, one of RECORDED.
            member: what is called.
            arguments: its arguments.
        """
        if name == "snapshot":
            self._begin()
        if self._line is None or self._muted:
            return member(*arguments)
        if name == "wait":
            return self._ask_for_news(member, *arguments)
        calls, self._breaths = self._line["calls"], 0
        try:
            answer = member(*arguments)
        except AdapterError as error:
            calls.append([name, None, [str(error), error.transient, error.kind, error.again_s]])
            raise
        calls.append([name, self._plain(answer)])
        return answer

    def _ask_for_news(self, member: Callable[..., Any], *arguments: Any) -> bool:
        """Ask whether something has happened, and note the first time that it had: a search for a plan ends then."""
        assert self._line is not None, "a cycle has begun"
        self._looks += 1
        has_news = bool(member(*arguments))
        if has_news:
            self._line.setdefault("news", self._looks)
        return has_news

    def _begin(self) -> None:
        """Begin the line of a cycle, whose clock was read already."""
        self.end(None)  # a cycle that ended with an error
        if not self._writer.begin_line():
            return
        is_first = self._writer.fresh
        if is_first:
            self._forget()
        self._line, self._looks = {"clock": [self._reading], "calls": []}, 0
        if is_first and self._standing:
            self._line["stands"] = [*self._standing.values()]
        if self._inputs:
            self._line["inputs"], self._inputs = self._inputs, []

    def _forget(self) -> None:
        self._jobs, self._queued = ChangeWriter(), ChangeWriter()
        self._states: Sequence[NodeState] = ()
        self._views: Sequence[JobView] = ()
        self._nodes: Mapping[str, tuple[int, float]] = {}

    def _plain(self, answer: Any) -> Any:
        if isinstance(answer, Snapshot):
            states, before = answer.node_states, self._states
            if len(before) != len(states):
                before = (NodeState.UP,) * len(states)
            changed = {
                place: str(new) for place, (old, new) in enumerate(zip(before, states, strict=True)) if old != new
            }
            is_same, self._states, self._views = answer.jobs is self._views, states, answer.jobs
            news = {"states": changed, "jobs": self._jobs.change(answer.jobs), "kept": is_same}
            return {"time": answer.time} | {name: part for name, part in news.items() if part}
        if isinstance(answer, ObservedQueue):
            parts = {"time": answer.time, "jobs": self._queued.change(answer.jobs)}
            if answer.nodes != self._nodes:
                self._nodes = parts["nodes"] = dict(answer.nodes)
            return parts
        if isinstance(answer, Mapping):
            return {key: plain(value, {}) for key, value in answer.items()}
        return None


def decisions_of(report: CycleReport) -> dict[str, Any]:
    """Return what a cycle decided and did, as plain values: the facts by which two runs of it are compared."""
    lines = [describe(applied.action) + (f": {applied.error}" if applied.error else "") for applied in report.applied]
    lines += [f"{describe(rejection.action)}: dropped, {rejection.reason}" for rejection in report.rejected]
    facts = {
        "did": lines,
        "plan": report.policy,
        "forecasts": report.plan and forecasts_sum(report.plan),
        "cut": report.cut_at,
        "mode": report.mode,
    }
    return {name: fact for name, fact in facts.items() if fact}


def forecasts_sum(plan: Plan) -> int:
    """Return a check sum of the nodes and times of all jobs of a plan, in its order. O(jobs)."""
    facts = [(job.nodes, job.start_time, job.finish_time) for job in plan.jobs]
    return zlib.crc32(repr(facts).encode("utf-8", "surrogateescape"))


class _RecordedAdapter:
    def __init__(self, inner: Adapter, recorder: Recorder) -> None:
        self._inner, self._recorder = inner, recorder

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._inner, name)
        return partial(self._recorder.ask, name, member) if name in RECORDED else member
