"""Text for terminals: escape names, fit text to terminal cells, and format numbers with units.

Rule: text from others reaches a terminal, a log, or a file that people read only through `clean`.
"""

from __future__ import annotations

import math
import re
import shlex
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import chain, groupby

from ..simulate.wording import count as count

# Control, format (bidirectional overrides), surrogate, private, and line or paragraph separators.
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def natural_key(name: str) -> list[str | int]:
    """Return a sort key in which numbers inside names compare as numbers."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", name)]


def clean(text: str, *, ascii_only: bool = False) -> str:
    r"""Return `text` with each character that could control a terminal written as an escape (`\x1b`).

    Args:
        text: any text, also with lone surrogates.
        ascii_only: also escape characters outside ASCII, for encodings without them.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _escape(c) if unicodedata.category(c) in _HARMFUL or (ascii_only and not c.isascii()) else c for c in text
    )


def clean_lines(text: str) -> str:
    """Return `text` with its newlines and tabs, all else as `clean` does."""
    return "\n".join("\t".join(map(clean, line.split("\t"))) for line in text.split("\n"))


def shell_words(words: Iterable[str], *, one_line: bool = False) -> str:
    r"""Return words as a line for a POSIX shell, in which no character but a newline can control a terminal.

    As shlex.join, but a harmful character is written as `"$(printf '\033')"`, so that the line is safe to read and
    the shell still sees the character.

    Args:
        words: any texts without NUL.
        one_line: write newlines in the same way, too; those that end a word stay, as a shell would drop them.
    """
    return " ".join(_shell_word(word, len(word.rstrip("\n")) if one_line else 0) for word in words)


def _shell_word(word: str, end: int) -> str:
    """Return a quoted word, in which newlines before `end`, each with the next character, are made by printf."""

    def is_made(i: int) -> bool:
        if "\n" in word[max(0, i - 1) : i + 1] and i < end:
            return True
        return word[i] != "\n" and clean(word[i]) != word[i]

    runs = ((is_escaped, "".join(word[i] for i in run)) for is_escaped, run in groupby(range(len(word)), is_made))
    return "".join(_printf(text) if is_escaped else shlex.quote(text) for is_escaped, text in runs) or "''"


def _printf(text: str) -> str:
    """Return shell text that makes these characters."""
    parts = (c.encode(errors="surrogateescape" if "\udc80" <= c <= "\udcff" else "replace") for c in text)
    octal = "".join(f"\\{byte:03o}" for byte in b"".join(parts))
    return f"\"$(printf '{octal}')\""


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width(text: str) -> int:
    """Return the number of terminal cells that `text` takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, cells: int, *, ascii_only: bool = False) -> str:
    """Shorten `text` to at most `cells` cells and keep its beginning and end: `individuals_..._0023`.

    The end is kept because names in a workflow mostly differ there.

    Args:
        text: any text.
        cells: width in terminal cells, 0 or more.
        ascii_only: mark the gap with ~ instead of an ellipsis.
    """
    if width(text) <= cells:
        return text
    gap = "~" if ascii_only else "…"
    if cells <= 1:
        return gap[:cells]
    tail = _head(text[::-1], (cells - 1) // 2)[::-1]
    return _head(text, cells - 1 - width(tail)) + gap + tail


def _head(text: str, cells: int) -> str:
    cells_used, end = 0, 0
    while end < len(text) and cells_used + (step := width(text[end])) <= cells:
        cells_used, end = cells_used + step, end + 1
    return text[:end]


def broken(text: str, cells: int, *, ascii_only: bool = False) -> list[str]:
    """Break `text` into lines of at most `cells` cells.

    Args:
        text: broken at the blanks after `,` and `:`; a part that has no room in a line is also broken after `+`, `,`
            and `:`, and what is still too wide is shortened by `fit`.
        cells: width in terminal cells.
        ascii_only: see `fit`.
    """
    lines = [""]
    parts = re.split(r"(?<=[,:] )", text)
    pieces = [[part] if width(part.rstrip()) <= cells else re.split(r"(?<=[+,:])(?! )", part) for part in parts]
    for piece in chain.from_iterable(pieces):
        if lines[-1] and width(lines[-1] + piece.rstrip()) > cells:
            lines.append("")
        lines[-1] += piece
    return [fit(line.rstrip(), cells, ascii_only=ascii_only) for line in lines]


def pad(text: str, cells: int, *, ascii_only: bool = False) -> str:
    """Fit `text` and fill it with blanks to exactly `cells` cells."""
    text = fit(text, cells, ascii_only=ascii_only)
    return text + " " * (cells - width(text))


def decimals(largest: float) -> int:
    """Return the number of decimals for times up to `largest` seconds."""
    return 3 if largest < 10 else 2 if largest < 100 else 1 if largest < 10_000 else 0


def seconds(value: float, places: int | None = None) -> str:
    """Format seconds as `12.5 s`; from an hour on, without fixed `places`, also as `(2:05:00)`."""
    text = f"{value:,.{decimals(value) if places is None else places}f} s"
    return f"{text} ({short_time(value)})" if places is None and 3600 <= value < math.inf else text


def short_time(value: float) -> str:
    """Format a time for a table: `12.5 s`, from an hour on `2:05:00`."""
    if not 3600 <= value < math.inf:
        return seconds(value)
    hours, remainder = divmod(round(value), 3600)
    return f"{hours:,}:{remainder // 60:02d}:{remainder % 60:02d}"


def duration(value: float) -> str:
    """Format a short duration in its own unit: `85 us`, `2.1 ms`, `3.40 s`."""
    if value < 1e-3:
        return f"{value * 1e6:.0f} us"
    return f"{value * 1e3:.{0 if value >= 0.01 else 1}f} ms" if value < 1 else f"{value:.2f} s"


def joules(value: float) -> str:
    """Format an energy with three digits and a prefix: `56.8 kJ`."""
    units = ((1.0, "J"), (1e3, "kJ"), (1e6, "MJ"), (1e9, "GJ"))
    factor, unit = next((pair for pair in reversed(units) if value >= pair[0] * 0.9995), units[0])
    scaled = value / factor
    return f"{scaled:.{0 if scaled >= 99.95 else 1 if scaled >= 9.995 else 2}f} {unit}"


def percent(ratio: float) -> str:
    """Format a ratio as a percentage, with a decimal below 10 %: 0.174 as `17 %`."""
    share = ratio * 100
    return f"{share:.0f} %" if abs(share) >= 9.95 or share == 0 else f"{share:.1f} %"


def times(ratio: float) -> str:
    """Format a ratio with two or three digits: `1.06x`, `3.1x`, `25x`."""
    return f"{ratio:,.{2 if ratio < 1.995 else 1 if ratio < 9.95 else 0}f}x"


def counted(reasons: Mapping[str, int]) -> str:
    """Format what was left out: `2 jobs that did not complete, 1 dependency on jobs that are left out`.

    Args:
        reasons: what it was, beginning with its plural noun -> how many.
    """
    return ", ".join(f"{number:,} {_singular(words) if number == 1 else words}" for words, number in reasons.items())


#: Singular of the verbs that can follow the noun of a phrase, as in "jobs that do not fit".
_VERBS = {"are": "is", "were": "was", "do": "does", "have": "has"}


def _singular(words: str) -> str:
    """Return a phrase with its first plural noun in the singular, and the verb of a clause that follows at once."""

    def one(phrase: re.Match[str]) -> str:
        stem, ending, that, verb = phrase.groups("")
        return stem + ("y" if ending == "ies" else "") + that + _VERBS.get(verb, verb)

    return re.sub(r"\b(\w+?)(ies|s)\b( that )?((?<= that )\w+)?", one, words, count=1)
