"""The nodes that the properties of a job allow, as OAR itself evaluates them.

Rule: a user's text is an argument of OAR's own command, and never a part of a statement of ours. One question at a time
is open, and no cycle waits for its answer. Users take turns, and the questions of one user take at most SHARE of the
time. Only properties of waiting jobs are evaluated, and evaluated again before their answer is old. That OAR cannot
evaluate them is an answer, too; that it cannot do so in time, if it happens twice. An old answer serves until the new
one comes, so that a new job need not wait.
"""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...base import AdapterError

log = logging.getLogger("pilotfish.adapters")
#: Seconds after which an answer is renewed while a job with these properties waits, and up to which it serves.
RENEWED_S, SERVES_S = 200.0, 3600.0
#: Seconds after which OAR is asked again for properties that it could not evaluate, and how often it may be late before
#: that counts as an answer: a busy machine is late once.
AGAIN_S, LATE_TIMES = 300.0, 2
#: Seconds between two questions for jobs that are not handed over.
OTHERS_S = 5.0
#: Largest share of the time that the questions of one user take.
SHARE = 0.25
#: Most properties of one user that are evaluated at a time, and most answers that are kept.
MOST_OF_A_USER, MOST_KEPT = 200, 1000
LATE = "OAR cannot evaluate its properties in time"
WRONG = "OAR cannot evaluate its properties"
NOWHERE = "its properties allow no node of pilotfish's cluster file"


class Question(Protocol):
    """A question to OAR that is open."""

    def poll(self) -> str | None:
        """Return the answer; None: not yet. Raises AdapterError."""
        ...

    def abandon(self) -> None:
        """Ask no longer."""
        ...


class AllowedNodes(NamedTuple):
    """The nodes that properties allow.

    `nodes`: all of OAR's; `ours`: those on which jobs may be placed. `obstacle`: why OAR must place such a job, or "".
    """

    nodes: frozenset[str]
    ours: frozenset[str]
    obstacle: str = ""


class Waiting(NamedTuple):
    """The properties of a waiting job. `offered`: whether it is handed over."""

    job: int
    user: str
    properties: str
    offered: bool


@dataclass(slots=True)
class _Record:
    answer: AllowedNodes | None
    at: float  #: of the clock
    user: str  #: for whom OAR was asked
    outdated: bool = False  #: OAR's nodes have changed since
    late: int = 0  #: how often OAR was late since the last answer

    def due_at(self) -> float:
        """Return when to ask again."""
        if self.answer is not None and self.answer.obstacle in (LATE, WRONG):
            return self.at + AGAIN_S
        return -math.inf if self.outdated or self.answer is None or self.late else self.at + RENEWED_S


class Properties:
    """The answers of OAR.

    Args:
        ask: Begins to ask OAR; None: not now.
        nodes: Names of the nodes on which jobs may be placed.
        clock: Seconds, monotonic.
    """

    def __init__(
        self, ask: Callable[[str], Question | None], nodes: Collection[str], clock: Callable[[], float]
    ) -> None:
        self._ask, self._nodes, self._clock = ask, frozenset(nodes), clock
        self._records: dict[str, _Record] = {}
        self._any = AllowedNodes(frozenset(), self._nodes)
        self._open: tuple[Question, Waiting, float] | None = None  # and since when
        self._ready_at: dict[str, float] = {}  # when a user may be asked for again
        self._others_at = -math.inf
        self._reported: set[tuple[str, str]] = set()

    @property
    def is_asking(self) -> bool:
        """True while a question is open."""
        return self._open is not None

    def answer(self, properties: str) -> AllowedNodes | None:
        """Return the answer for properties; None: not yet."""
        if not properties:
            return self._any
        record = self._records.get(properties)
        return record.answer if record is not None and self._clock() - record.at < SERVES_S else None

    def nodes(self, properties: str) -> frozenset[str] | None:
        """Return all of OAR's nodes that properties (not "") allow; None: not yet."""
        answer = self.answer(properties)
        return None if answer is None else answer.nodes

    def outdate(self) -> None:
        """Note that OAR's nodes have changed: ask again for everything that a waiting job needs."""
        for record in self._records.values():
            record.outdated = True

    def void(self) -> None:
        """Drop the open question: OAR did not answer otherwise either, so its answer would say nothing about a job."""
        if self._open is not None:
            self._open[0].abandon()
            self._open = None

    def take_answer(self) -> bool:
        """Take the answer to the open question if it has come; return whether a handed-over job can go on with it."""
        if self._open is None:
            return False
        question, waiting, since = self._open
        before = self.answer(waiting.properties)
        try:
            text = question.poll()
            if text is None:
                return False
            answer: AllowedNodes | None = self._read(text)
        except AdapterError as error:
            answer = None if error.transient else self._failure(waiting, error)
        self._pass_turn(waiting, since)
        if answer is None:
            return False
        self._keep(waiting, before if before == answer else answer)
        return waiting.offered and before != answer

    def _failure(self, waiting: Waiting, error: AdapterError) -> AllowedNodes | None:
        """Return the answer that properties cannot be evaluated; None: ask once more."""
        if error.kind != "timeout":
            self._report(waiting, WRONG, f": {error}")
            return AllowedNodes(frozenset(), frozenset(), WRONG)
        record = self._records.get(waiting.properties)
        if record is None:
            record = self._keep(waiting, None)
        record.late += 1
        if record.late < LATE_TIMES:
            return None
        self._report(waiting, LATE, "")
        return AllowedNodes(frozenset(), frozenset(), LATE)

    def ask_next(self, waiting: Iterable[Waiting]) -> None:
        """Begin the next question that is due, if none is open.

        Args:
            waiting: The waiting jobs with properties, in OAR's order.
        """
        if self._open is not None:
            return
        now = self._clock()
        self._ready_at = {user: at for user, at in self._ready_at.items() if at > now - SERVES_S}
        if (chosen := self._next(waiting, now)) is None:
            return
        try:
            question = self._ask(chosen.properties)
        except AdapterError as error:  # there is no such command, or no memory
            self._report(chosen, WRONG, f": {error}")
            self._keep(chosen, AllowedNodes(frozenset(), frozenset(), WRONG))
            return
        if question is not None:
            self._open = question, chosen, now
            self._others_at = self._others_at if chosen.offered else now + OTHERS_S

    def _next(self, waiting: Iterable[Waiting], now: float) -> Waiting | None:
        """Return the question of the user who has been ready for longest, a new one before one that is asked again."""
        used: dict[str, set[str]] = {}
        best: tuple[tuple[bool, float, float], Waiting] | None = None
        for job in waiting:
            texts = used.setdefault(job.user, set())
            if job.properties in texts or len(texts) >= MOST_OF_A_USER:
                continue
            texts.add(job.properties)
            ready_at, record = self._ready_at.get(job.user, -math.inf), self._records.get(job.properties)
            due_at = -math.inf if record is None else record.due_at()
            if record is not None and record.answer is not None and not job.offered:
                due_at = record.at + SERVES_S / 2  # a forecast need not be as fresh as a placement
            if max(ready_at, due_at, -math.inf if job.offered else self._others_at) > now:
                continue
            rank = not job.offered, ready_at, -math.inf if record is None else record.at
            if best is None or rank < best[0]:
                best = rank, job
        return None if best is None else best[1]

    def _pass_turn(self, waiting: Waiting, since: float) -> None:
        now = self._clock()
        self._open = None
        self._ready_at[waiting.user] = now + (now - since) * (1.0 / SHARE - 1.0)

    def _keep(self, waiting: Waiting, answer: AllowedNodes | None) -> _Record:
        """Keep an answer; drop the oldest one of the user with the most if there are too many."""
        self._records.pop(waiting.properties, None)
        new_record = self._records[waiting.properties] = _Record(answer, self._clock(), waiting.user)
        if len(self._records) > MOST_KEPT:
            ((user, _),) = Counter(record.user for record in self._records.values()).most_common(1)
            del self._records[next(text for text, record in self._records.items() if record.user == user)]
        return new_record

    def _read(self, text: str) -> AllowedNodes:
        """Return the answer in what `oarnodes` printed. Raises AdapterError."""
        try:
            resources = (json.loads(text) if text.strip() else {}).values()
            nodes = frozenset(str(resource["network_address"]) for resource in resources)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise AdapterError(f"the output of oarnodes cannot be read: {error}", kind="parse") from None
        known_nodes = self._nodes & nodes
        return AllowedNodes(nodes, known_nodes, "" if known_nodes else NOWHERE)

    def _report(self, waiting: Waiting, obstacle: str, detail: str) -> None:
        """Log once for each user that OAR cannot evaluate properties."""
        if (waiting.user, obstacle) not in self._reported:
            self._reported.add((waiting.user, obstacle))
            text = (
                "job %d of user %s is left to OAR: %s%s; properties: %.200r; further ones of this user are not logged"
            )
            log.warning(text, waiting.job, waiting.user, obstacle, detail, waiting.properties)
