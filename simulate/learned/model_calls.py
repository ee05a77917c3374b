"""Calls of a model that cannot harm a plan: an exception, or too long a time, is a reason not to trust it.

Rule: a policy is made for one plan. After the first such reason it does not ask the model again, so the baseline
decides for the rest of the plan, and a broken or slow model costs one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..queue_policies.model_use import Doubt

#: Why a baseline decides in place of a model: its calls are the reason.
FAILED, SLOW, NO_NUMBER = "failed", "slow", "no number"
#: The same: what is unlike the training, of a waiting job or of the machine.
LIMIT, SIZE, MACHINE, NODES, WAIT = "requested time", "requested cores", "machine size", "nodes", "wait"
REASONS = (FAILED, SLOW, NO_NUMBER, LIMIT, SIZE, MACHINE, NODES, WAIT)
#: The doubt of a model whose scores are no numbers.
NO_SCORE = Doubt(NO_NUMBER, "a score is no number")
#: Longest time of a decision, seconds.
SLOWEST_S = 0.05
_LONGEST_TEXT = 200
Answer = TypeVar("Answer")


class ModelCalls:
    """The calls of one policy.

    Args:
        clock: returns seconds, such as the CPU time of a thread; None: calls may take any time.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock
        #: Why the model is not asked any more, FAILED or SLOW; none: it is.
        self.doubt = Doubt()

    def ask(
        self, question: Callable[[], Answer], decisions: Callable[[Answer], int] = lambda _: 1
    ) -> Answer | None:  # fmt: skip
        """Return an answer of the model; None: it is not trusted, see `doubt`.

        Args:
            question: calls the model.
            decisions: returns how many decisions an answer has; each may take SLOWEST_S.
        """
        if self.doubt:
            return None
        began = 0.0 if self._clock is None else self._clock()
        try:
            answer = question()
        except Exception as error:  # whatever a model raises must not change a plan
            failure = f"{type(error).__name__}: {error}"[:_LONGEST_TEXT]
            self.doubt = Doubt(FAILED, f"the model failed: {failure}")
            return None
        seconds = 0.0 if self._clock is None else self._clock() - began
        if seconds > SLOWEST_S * max(1, decisions(answer)):
            text = f"the model took {seconds:.3g} s for {decisions(answer):,} decisions, at most {SLOWEST_S:g} s each"
            self.doubt = Doubt(SLOW, text)
            return None
        return answer
