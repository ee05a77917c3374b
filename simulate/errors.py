"""Errors, sorted by who must act on them. "The job does not fit, because ..." is a value, never an exception."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest
from itertools import islice

#: Names that a hint compares, letters of each that count, and the nearest by letters that are compared by their order.
HINT_NAMES, HINT_LETTERS, HINT_NEAREST = 1000, 64, 16


def did_you_mean(word: object, known: Iterable[str], shown: Callable[[str], str] = repr, cutoff: float = 0.6) -> str:
    """Return a question that ends a message: which known word was meant; "" if none is near.

    The cost is bounded, whatever the words: users choose them, and the service makes hints between two cycles. Only the
    first HINT_NAMES words are considered.

    Args:
        word: what was found; only text has near words.
        known: the words that are allowed.
        shown: how a word is written.
        cutoff: least similarity, 0 to 1.
    """
    from difflib import SequenceMatcher

    if not isinstance(word, str):
        return ""
    matcher = SequenceMatcher(b=word[:HINT_LETTERS])
    candidates = list[tuple[float, str]]()
    for name in islice(known, HINT_NAMES):
        matcher.set_seq1(name[:HINT_LETTERS])
        if matcher.real_quick_ratio() >= cutoff and (likeness := matcher.quick_ratio()) >= cutoff:
            candidates.append((likeness, name))
    near = list[tuple[float, str]]()
    for _, name in nlargest(HINT_NEAREST, candidates):
        matcher.set_seq1(name[:HINT_LETTERS])
        near.append((matcher.ratio(), name))
    likeness, nearest = max(near, default=(0.0, word))
    return f"; did you mean {shown(nearest)}?" if likeness >= cutoff and nearest != word else ""


class PilotfishError(Exception):
    """Base of all errors that pilotfish raises on purpose; its text is one sentence for a person."""


class ConfigError(PilotfishError):
    """An error in a file or option that an operator or user wrote.

    Args:
        source: the file or option.
        key: the place in it: a dotted key, a line number, or "" for the whole file.
        problem: what was found.
        allowed: what is allowed; may be empty.
        more: further keys of the file that have the same problem.
    """

    def __init__(self, source: str, key: str, problem: str, allowed: str = "", more: int = 0) -> None:
        super().__init__(source, key, problem, allowed, more)
        self.source, self.key, self.problem, self.allowed, self.more = source, key, problem, allowed, more

    def __str__(self) -> str:
        where = f"{self.source}: {self.key}" if self.key else self.source
        others = f" (and {self.more} more)" if self.more else ""
        return f"{where}{others}: {self.problem}" + (f" (allowed: {self.allowed})" if self.allowed else "")


class ConfigErrors(ConfigError):
    """Several errors of one file, two or more; as a ConfigError it is the first of them."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        first = errors[0]
        super().__init__(first.source, first.key, first.problem, first.allowed, first.more)
        self.args, self.errors = (errors,), tuple(errors)

    def __str__(self) -> str:
        others = len(self.errors) - 1
        return f"{self.errors[0]} (and {others} more error{'s' * (others > 1)})"


class InvalidJobError(PilotfishError):
    """A job or workflow that can never run as requested; the user must act."""


class InvalidJobErrors(InvalidJobError):
    """Several jobs that can never run as requested; the text is that of the first, with the number of the others.

    Args:
        errors: one for each job that is named, and perhaps one for all others.
        jobs: number of the jobs, two or more.
    """

    def __init__(self, errors: Sequence[InvalidJobError], jobs: int) -> None:
        super().__init__(errors, jobs)
        self.errors, self.jobs = tuple(errors), jobs

    def __str__(self) -> str:
        return f"{self.errors[0]} (and {self.jobs - 1} more job{'s' * (self.jobs > 2)})"


class InvariantError(PilotfishError):
    """A broken rule of the product itself: a bug in pilotfish that should be reported."""


class PolicyError(PilotfishError):
    """A user's own policy raised an exception (the cause), or decided something that cannot be done.

    Args:
        policy: its name.
        where: the call, and the job concerned.
        problem: what was found.
        allowed: what is allowed; may be empty.
    """

    def __init__(self, policy: str, where: str, problem: str, allowed: str = "") -> None:
        self.policy, self.where, self.problem, self.allowed = policy, where, problem, allowed
        message = ": ".join(filter(None, (f"policy {policy}", where, problem)))
        super().__init__(message + (f" (allowed: {allowed})" if allowed else ""))
