"""How well predictors predict, as a person reads it.

Rule: the best of each column is marked, and a predictor's worth is told beside that of the user's own estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...profiles.prediction.jobs import LIMIT
from ...simulate.formats.units import format_size
from .screen import Screen
from .tables import Column, grid
from .text import clean, count, decimals, fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...profiles.prediction.evaluate import Evaluation
    from ...profiles.prediction.score import Score

_MOST_KINDS = 6


def show_evaluation(screen: Screen, name: str, need: str, found: Evaluation) -> None:
    """Print predictors side by side, and from which jobs each has predicted."""
    rest = f", {found.left_out:,} others left out" if found.left_out else ""
    screen.title(f"{fit(clean(name), 40)}: {need} of {count(found.jobs, 'job')}{rest}")
    columns = [Column("PREDICTOR", most=20)]
    columns += [Column(head, right=True) for head in ("MEAN ERROR ", "MEDIAN ERROR ", "VS ESTIMATE ", "TOO LOW ")]
    rows = list(zip(found.scores, *_columns(list(found.scores.values()), need), strict=True))
    screen.put(grid(columns, rows, screen.cells, ascii_only=screen.ascii_only), "")
    for predictor, score in found.scores.items():
        if len(score.kinds) > 1:
            screen.put(grid(
                [Column(f"{predictor.upper()}: FROM ENDED JOBS OF THE SAME", most=44), Column("JOBS", right=True)],
                _kinds(score), screen.cells, ascii_only=screen.ascii_only,
            ), "")  # fmt: skip
    screen.put("* the best. too low: the job needed more than was predicted")


def _columns(scores: Sequence[Score], need: str) -> Iterable[list[str]]:
    """The cells of each column of numbers, the least marked."""
    for errors in ([score.mean_error for score in scores], [score.median_error for score in scores]):
        text = format_size if need == "memory" else _seconds(max(errors))
        yield _marked(errors, text)
    yield _marked([score.relative for score in scores], lambda value: f"{value:.3f}")
    yield _marked([score.underpredicted for score in scores], lambda value: f"{100 * value:.1f} %")


def _seconds(largest: float) -> Callable[[float], str]:
    """How to write times of a column with this largest one."""
    places = decimals(largest)
    return lambda value: f"{value:,.{places}f} s"


def _marked(values: Sequence[float | None], look: Callable[[float], str]) -> list[str]:
    best = min((value for value in values if value is not None), default=None)
    return ["unknown " if value is None else look(value) + ("*" if value == best else " ") for value in values]


def _kinds(score: Score) -> list[tuple[str, str]]:
    shown = list(score.kinds.items())
    if len(shown) > _MOST_KINDS:
        shown[_MOST_KINDS:] = [("other kinds", sum(share for _, share in shown[_MOST_KINDS:]))]
    return [("none yet: the limit" if kind == LIMIT else kind, f"{100 * share:.1f} %") for kind, share in shown]
