"""Which nodes the properties of a job allow, as OAR itself evaluates them.

Rule: a user's text is an argument of OAR's own command, and never a part of a statement of ours. An answer holds for a
while. What jobs used last is evaluated again before that is over, so that new jobs like them need not wait for it.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Collection, Iterable, Sequence

from ...base import AdapterError

log = logging.getLogger("pilotfish.adapters")
#: Seconds for which an answer holds, and after which it is renewed.
HOLDS_S, RENEWED_S = 300.0, 200.0
#: Most questions in a snapshot, answers that are renewed, and answers that are kept.
MOST_ASKED, MOST_RENEWED, MOST_KEPT = 5, 5, 1000


class Properties:
    """The answers of OAR.

    Args:
        ask: Runs a command of OAR's, and returns what it printed.
        nodes: Names of the nodes on which jobs may be placed.
        clock: Seconds, monotonic.
    """

    def __init__(self, ask: Callable[[Sequence[str]], str], nodes: Collection[str], clock: Callable[[], float]) -> None:
        self._ask, self._nodes, self._clock = ask, frozenset(nodes), clock
        self._known: dict[str, tuple[float, frozenset[str]]] = {}
        self._left = MOST_ASKED
        self._changes = 0  # how often an answer was another one than before

    def begin(self) -> None:
        """Allow as many questions as a snapshot may ask."""
        self._left = MOST_ASKED

    def clear(self) -> None:
        """Forget all answers."""
        self._known.clear()

    def allowed(self, properties: str) -> frozenset[str] | None:
        """Return the nodes that properties allow, none if OAR cannot say; None: it is still to be asked."""
        known = self._known.get(properties)
        if known is not None and self._clock() - known[0] < HOLDS_S:
            return known[1]
        if self._left:
            self._left -= 1
            return self._evaluate(properties)
        return known[1] if known is not None else None

    def allows_none(self, properties: str) -> bool:
        """Return whether properties are known to allow no node."""
        known = self._known.get(properties)
        return known is not None and not known[1]

    @property
    def version(self) -> tuple[int, int]:
        """Another one as soon as an answer may be another one."""
        return self._changes, int(self._clock() // HOLDS_S)

    def renew(self, used: Iterable[str]) -> None:
        """Evaluate again what will soon not hold any more: the properties that were used last, one in a call.

        Args:
            used: Properties of jobs, the newest ones last.

        Raises:
            AdapterError: OAR cannot be reached.
        """
        wanted = list(dict.fromkeys([*reversed([*self._known, *used])]))[:MOST_RENEWED]
        now = self._clock()
        useful = [each for each in wanted if not self.allows_none(each)]
        ages = {each: now - self._known[each][0] if each in self._known else math.inf for each in useful}
        if ages and ages[oldest := max(ages, key=ages.__getitem__)] >= RENEWED_S:
            self._evaluate(oldest)

    def _evaluate(self, properties: str) -> frozenset[str]:
        found, before = self._answer(properties), self._known.pop(properties, None)
        self._changes += before is None or before[1] != found
        self._known[properties] = self._clock(), found
        if len(self._known) > MOST_KEPT:
            del self._known[next(iter(self._known))]
        return found

    def _answer(self, properties: str) -> frozenset[str]:
        if not properties:
            return self._nodes
        try:
            said = self._ask(["oarnodes", "-J", "--sql", properties])
            found = {str(each["network_address"]) for each in (json.loads(said) if said.strip() else {}).values()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("what oarnodes says of properties cannot be read: %s", error)
            return frozenset()
        except AdapterError as error:
            if error.transient:
                raise
            log.warning("OAR cannot evaluate the properties %.200r of a job: %s", properties, error)
            return frozenset()
        return self._nodes & found
