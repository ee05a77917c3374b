"""Text for a person: names made harmless, fitted to a number of terminal cells, and numbers with their units.

Rule: no byte of a name that a user chose reaches a terminal or a file before `clean` has seen it.
"""

from __future__ import annotations

import math
import re
import unicodedata

# Control, format (bidirectional overrides), surrogate, private, and line or paragraph separators.
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean(text: str, *, ascii_only: bool = False) -> str:
    r"""Return `text` with every character that could steer a terminal written as an escape (`\x1b`).

    Args:
        text: anything, also with lone surrogates.
        ascii_only: escape what is not ASCII as well, for an encoding that cannot carry it.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(c) if _harmful(c) or (ascii_only and not c.isascii()) else c for c in text)


def _harmful(character: str) -> bool:
    return unicodedata.category(character) in _HARMFUL


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width(text: str) -> int:
    """Cells that `text` takes in a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, cells: int, *, ascii_only: bool = False) -> str:
    """Shorten `text` to at most `cells` cells, keeping its beginning and its end: `individuals_..._0023`.

    The end is kept because names in a workflow mostly differ there.
    """
    if width(text) <= cells:
        return text
    gap = "~" if ascii_only else "…"
    if cells <= 1:
        return gap[:cells]
    tail = _head(text[::-1], (cells - 1) // 2)[::-1]
    return _head(text, cells - 1 - width(tail)) + gap + tail


def _head(text: str, cells: int) -> str:
    taken, end = 0, 0
    while end < len(text) and taken + (step := width(text[end])) <= cells:
        taken, end = taken + step, end + 1
    return text[:end]


def broken(text: str, cells: int, *, ascii_only: bool = False) -> list[str]:
    """Lines of `cells` cells at most: `text` is broken behind + and , where it can be; a longer piece is fitted."""
    lines = [""]
    for piece in re.split(r"(?<=[+,])(?! )|(?<=, )", text):
        if lines[-1] and width(lines[-1] + piece.rstrip()) > cells:
            lines.append("")
        lines[-1] += piece
    return [fit(line.rstrip(), cells, ascii_only=ascii_only) for line in lines]


def pad(text: str, cells: int, *, ascii_only: bool = False) -> str:
    """Fit `text` and fill it up with blanks to exactly `cells` cells."""
    text = fit(text, cells, ascii_only=ascii_only)
    return text + " " * (cells - width(text))


def decimals(largest: float) -> int:
    """Decimals with which times up to `largest` seconds are worth printing."""
    return 3 if largest < 10 else 2 if largest < 100 else 1 if largest < 10_000 else 0


def seconds(value: float, places: int | None = None) -> str:
    """`12.5 s`; from an hour on without a fixed number of places also as `2:05:00`."""
    text = f"{value:,.{decimals(value) if places is None else places}f} s"
    if places is None and 3600 <= value < math.inf:
        hours, rest = divmod(round(value), 3600)
        text += f" ({hours:,}:{rest // 60:02d}:{rest % 60:02d})"
    return text


def duration(value: float) -> str:
    """A short duration in its own unit: `85 us`, `2.1 ms`, `3.40 s`."""
    if value < 1e-3:
        return f"{value * 1e6:.0f} us"
    return f"{value * 1e3:.{0 if value >= 0.01 else 1}f} ms" if value < 1 else f"{value:.2f} s"


def joules(value: float) -> str:
    """An energy with three digits and its prefix: `56.8 kJ`."""
    units = ((1.0, "J"), (1e3, "kJ"), (1e6, "MJ"), (1e9, "GJ"))
    factor, unit = next((pair for pair in reversed(units) if value >= pair[0] * 0.9995), units[0])
    scaled = value / factor
    return f"{scaled:.{0 if scaled >= 99.95 else 1 if scaled >= 9.995 else 2}f} {unit}"


def percent(ratio: float) -> str:
    """`0.074` as `7 %`, with a decimal below 10 %."""
    share = ratio * 100
    return f"{share:.0f} %" if abs(share) >= 9.95 or share == 0 else f"{share:.1f} %"


def times(ratio: float) -> str:
    """A ratio with two digits: `3.1x`, `25x`."""
    return f"{ratio:,.{1 if ratio < 9.95 else 0}f}x"


def count(number: int, noun: str) -> str:
    """`1 job`, `1,000 jobs`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
