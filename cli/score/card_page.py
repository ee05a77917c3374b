"""The card of a dry run as one page: its text, and figures of the three sides.

Rule: the page loads nothing from the network. The figures show the numbers of the text; what is not known is not drawn.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from html import escape
from typing import TYPE_CHECKING

from ...formats.text import clean, fit
from ...simulate.slurm.site_score import Sides
from ..charts.colours import INK, QUIET, series_style
from ..charts.effect_figure import ShownEffect, ShownSide, forest, over_time, users_panel, waits_panel
from ..charts.figure import Bars, Figure, Panel, bars_panel
from ..output.text import Screen
from .card_text import Words, show_card, slowdown_words, time_words, verdict_words

if TYPE_CHECKING:
    from .card import Card

_PAGE = "<body><pre style=\"font:13px/1.45 'DejaVu Sans Mono',monospace;max-width:90ch;margin:1em\">{}</pre>"
#: Groupings of the picture.
_GROUPS = ("partition", "nodes", "CPUs", "limit, minutes")


def card_page(card: Card) -> str:
    """Return the card as an HTML page."""
    return page_of(lambda screen: show_card(screen, card, everything=False), score_figure(card))


def page_of(show: Callable[[Screen], None], figure: Figure) -> str:
    """Return an HTML page with what `show` prints and a figure below."""
    from ..charts import bokeh_backend

    text = io.StringIO()
    with redirect_stdout(text):
        show(Screen())
    head, _, figures = bokeh_backend.page(figure).rpartition("<body>")  # Bokeh's scripts have others
    return head + _PAGE.format(escape(text.getvalue())) + figures


def score_figure(card: Card) -> Figure:
    """Return the figures of a card."""
    from ...simulate.slurm.site_changes import first_submission

    colour, _ = series_style(0)
    twin = ShownSide("twin", QUIET, 2, card.twin)
    sides = [ShownSide("recorded", INK, 0, [card.recorded]), twin, ShownSide("pilotfish", colour, 1, card.pilotfish)]
    shown = [ShownEffect("pilotfish", card.score.effect, card.twin, card.pilotfish)]
    rows: list[Sequence[Panel]] = [[panel] for title in _GROUPS if (panel := forest(shown, title))]
    rows.append([users_panel(shown, [twin, sides[-1]])])
    course = over_time(sides, first_submission(card.site), 0.0)
    rows = [_bars(card, sides), *rows, [waits_panel(sides)], *([[course]] if course else [])]
    height = sum(2.0 * max(panel.height for panel in row) + 0.45 for row in rows) + 1.0
    about = f"{fit(clean(card.name), 40)}: {verdict_words(card.score.headline)}"
    notes = ["a bar is the 95 % interval of pilotfish minus twin, and its stroke the difference"]
    return Figure("The card", rows, about, notes, shared=False, height=height)


def _bars(card: Card, sides: Sequence[ShownSide]) -> list[Panel]:
    """Return bars of the means on the sides that are known."""
    panels = []
    for measure in card.score.measures:
        words = slowdown_words if measure.name == "slowdown" else time_words
        panels.append(_bar(f"mean {measure.name}", measure.mean, sides, words))
    if card.score.makespan is not None:
        panels.append(_bar("mean makespan, busy", card.score.makespan, sides, time_words))
    return [panel for panel in panels if panel is not None]


def _bar(title: str, numbers: Sides, sides: Sequence[ShownSide], words: Words) -> Panel | None:
    if numbers.recorded is None:
        return None
    lengths = [numbers.recorded, numbers.twin, numbers.pilotfish]
    bars = Bars([one.name for one in sides], [one.colour for one in sides], lengths, [words(one) for one in lengths])
    return bars_panel(bars, title, 0.12)
