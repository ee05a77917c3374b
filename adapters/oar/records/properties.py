"""The nodes that the properties of a job allow, as OAR itself evaluates them.

Rule: a user's text is an argument of OAR's own command, and never a part of a statement of ours. An answer holds for a
while. Properties that jobs used recently are evaluated again before their answer expires, so that new jobs with the
same properties need not wait.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from ...base import AdapterError

log = logging.getLogger("pilotfish.adapters")
#: Seconds for which an answer holds, and after which it is renewed.
HOLDS_S, RENEWED_S = 300.0, 200.0
#: Most questions in a snapshot, answers that are renewed, and answers that are kept.
MOST_ASKED, MOST_RENEWED, MOST_KEPT = 5, 5, 1000


class _Answer(NamedTuple):
    at: float  #: of the clock
    nodes: frozenset[str]  #: all of OAR's
    ours: frozenset[str]  #: on which jobs may be placed


class Properties:
    """The answers of OAR.

    Args:
        ask: Runs a command of OAR's, and returns what it printed.
        nodes: Names of the nodes on which jobs may be placed.
        clock: Seconds, monotonic.
    """

    def __init__(self, ask: Callable[[Sequence[str]], str], nodes: Collection[str], clock: Callable[[], float]) -> None:
        self._ask, self._nodes, self._clock = ask, frozenset(nodes), clock
        self._known: dict[str, _Answer] = {}
        self._left = MOST_ASKED
        self._changes = 0  # how often an answer was another one than before

    def begin(self, most: int = MOST_ASKED) -> None:
        """Allow so many questions until the next call."""
        self._left = most

    def clear(self) -> None:
        """Forget all answers."""
        self._known.clear()

    def allowed(self, properties: str) -> frozenset[str] | None:
        """Return those of our nodes that properties allow, none if OAR cannot say; None: it is still to be asked."""
        known = self._answer_for(properties)
        return None if known is None else known.ours

    def nodes(self, properties: str) -> frozenset[str] | None:
        """Return all of OAR's nodes that properties (not "") allow, as `allowed` does."""
        known = self._answer_for(properties)
        return None if known is None else known.nodes

    def _answer_for(self, properties: str) -> _Answer | None:
        known = self._known.get(properties)
        if (known is None or self._clock() - known.at >= HOLDS_S) and self._left:
            self._left -= 1
            return self._evaluate(properties)
        return known

    def allows_none(self, properties: str) -> bool:
        """Return whether properties are known to allow no node."""
        known = self._known.get(properties)
        return known is not None and not known.ours

    @property
    def version(self) -> tuple[int, int]:
        """Another one as soon as an answer may be another one."""
        return self._changes, int(self._clock() // HOLDS_S)

    def renew(self, used: Iterable[str]) -> None:
        """Evaluate answers again that will soon expire: the properties that were used last, one in each call.

        Args:
            used: Properties of jobs, the newest ones last.

        Raises:
            AdapterError: OAR cannot be reached.
        """
        wanted = list(dict.fromkeys([*reversed([*self._known, *used])]))[:MOST_RENEWED]
        now = self._clock()
        useful = [each for each in wanted if not self.allows_none(each)]
        ages = {each: now - self._known[each].at if each in self._known else math.inf for each in useful}
        if ages and ages[oldest := max(ages, key=ages.__getitem__)] >= RENEWED_S:
            self._evaluate(oldest)

    def _evaluate(self, properties: str) -> _Answer:
        found, before = self._ask_oar(properties), self._known.pop(properties, None)
        new = _Answer(self._clock(), found, self._nodes & found if properties else self._nodes)
        self._changes += before is None or before.ours != new.ours
        self._known[properties] = new
        if len(self._known) > MOST_KEPT:
            del self._known[next(iter(self._known))]
        return new

    def _ask_oar(self, properties: str) -> frozenset[str]:
        if not properties:
            return frozenset()
        try:
            said = self._ask(["oarnodes", "-J", "--sql", properties])
            every = (json.loads(said) if said.strip() else {}).values()
            return frozenset(str(each["network_address"]) for each in every)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("the output of oarnodes about properties cannot be read: %s", error)
            return frozenset()
        except AdapterError as error:
            if error.transient:
                raise
            log.warning("OAR cannot evaluate the properties %.200r of a job: %s", properties, error)
            return frozenset()
