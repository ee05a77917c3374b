"""Scores of a co-run as a person reads them.

Rule: the word "relative" stands beside every score; what cannot be told from noise says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .profiles import lines, print_grid, size

if TYPE_CHECKING:
    from ...profiles.sensitivity import Scores

_HEADINGS = ("streamer", "moves alone", "program needs", "range", "streamer needs")


def show_scores(scores: Scores) -> None:
    """Print what each pressure does, the scores, and the lines for a node type."""
    rows = [
        (
            f"{level.pressure:.0%}",
            size(level.rate, rate=True),
            f"{level.factor:.3f}x",
            f"{level.least:.3f}-{level.most:.3f}",
            f"{level.slowed:.3f}x",
        )
        for level in scores.levels
    ]
    print_grid(_HEADINGS, rows, left=())
    lines(*_told(scores), "")
    show_pairs(scores.co_run_inflation, f"{scores.date}, {scores.rounds} x each")


def show_kept(scores: Scores) -> None:
    """Print what is kept of a program's scores."""
    where = f" on {scores.cpu_model}" if scores.cpu_model else ""
    lines(*_told(scores), f"scored: {scores.rounds} x each, {scores.date[:10] or 'date not known'}{where}")


def _told(scores: Scores) -> tuple[str, str]:
    last = scores.levels[-1]
    doubt = ", within noise" if last.least <= 1.0 else ""
    pressing = "unknown: it slows a streamer more than another one does"
    if scores.pressure is not None:
        pressing = f"{scores.pressure:.2f} of a streamer"
    return (
        f"sensitivity: {scores.sensitivity:.3f}x beside a whole streamer (relative score{doubt})",
        f"pressure: {pressing} (relative score)",
    )


def show_pairs(pairs: Mapping[str, Mapping[str, float]], about: str) -> None:
    """Print the lines for a node type."""
    import yaml

    lines(f"# Relative scores, {about}. The memory model")
    lines("# counts the bandwidth in a profile, too: give one or the other.")
    if not pairs:
        print("co_run_inflation: {}")
        return
    print("co_run_inflation:")
    for job, beside in pairs.items():
        line = yaml.safe_dump({job: dict(beside)}, default_flow_style=None, width=1000, allow_unicode=True)
        print(f"  {line}", end="")
