"""Class and power of commands before their first run, compared with what their first runs showed.

Rule: each is guessed from the runs of other commands that were stored before. Commands for which nothing can be
guessed, or whose class no counter showed, are counted separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from ...simulate.model.job import Profile
from ..classes import Classification
from ..estimate import estimate
from ..identity import program
from ..measurement import Measurement
from .similar_commands import grown_profile, predicted, relatives


@dataclass(frozen=True, slots=True)
class FirstRuns:
    """Accuracy of the guesses of class and power.

    Args:
        commands: number of commands that ran.
        classes: of these, those whose class is known; guessed: of these, those whose class was guessed.
        f1: mean over the classes of the harmonic mean of precision and recall, [0, 1], over `classes` (a class that was
            not guessed is missed); None without any.
        powers: number of commands whose power was measured and guessed.
        power_error: median of |guessed - measured| / measured over these; None without any.
    """

    commands: int
    classes: int
    guessed: int
    f1: float | None
    powers: int
    power_error: float | None


def first_runs(runs: Iterable[tuple[str, Measurement]], classify: Callable[[Profile], Classification]) -> FirstRuns:
    """Guess each command before its first run. O(commands x runs of its program).

    Args:
        runs: with the names of their commands, oldest first.
        classify: returns the class of a profile.
    """
    runs_by_program: dict[str | None, dict[str, list[Measurement]]] = {}
    commands, classes, errors = 0, list[tuple[str, str | None]](), list[float]()
    for name, run in runs:
        others = runs_by_program.setdefault(program(name), {})
        if name not in others and (actual := estimate(name, [run])) is not None:
            commands += 1
            guess = _guess(name, run, others)
            if kind := classify(actual).kind:
                classes.append((kind, classify(guess).kind if guess else None))
            if guess and guess.power_watts and actual.power_watts:
                errors.append(abs(guess.power_watts - actual.power_watts) / actual.power_watts)
        others[name] = [*others.pop(name, []), run]  # the one that ran last is the last
    guessed = sum(guessed_kind is not None for _, guessed_kind in classes)
    error = median(errors) if errors else None
    return FirstRuns(commands, len(classes), guessed, macro_f1(classes), len(errors), error)


def _guess(name: str, run: Measurement, others: dict[str, list[Measurement]]) -> Profile | None:
    """Return the profile that a command has before its run, as `ProfileStore.expected` has it."""
    alike, rest = relatives(name, list(others)[::-1])
    if grown := grown_profile(name, run.inputs, [(other, one) for other in alike for one in others[other]]):
        return grown
    return predicted(name, [profile for other in rest if (profile := estimate(other, others[other]))])


def macro_f1(pairs: Sequence[tuple[str, str | None]]) -> float | None:
    """Return the mean F1 over the classes that occur; None without any.

    Args:
        pairs: the actual class and the guessed one, None = none was guessed.
    """
    kinds = {actual for actual, _ in pairs}
    return sum(_f1(pairs, kind) for kind in kinds) / len(kinds) if kinds else None


def _f1(pairs: Sequence[tuple[str, str | None]], kind: str) -> float:
    hits = sum(actual == guess == kind for actual, guess in pairs)
    return 2 * hits / sum((actual == kind) + (guess == kind) for actual, guess in pairs)
