"""Words that make a sentence hard to read, and what to write in their place.

Rule: a line of a tracked text file contains none of these phrases. Recorded output of other programs is exempt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

#: Pattern of a phrase -> plain wording.
PHRASES = {
    r"[Ff]oretold|[Ff]oretell\w*": "forecast",
    r"\b[Aa]new\b": "again",
    r"\bof which nothing\b": "name the subject: 'for which no ... is known'",
    r"(?<![\"'`*@/])\b[Nn]obody\b(?![\"'`:])": "name who: 'no process', 'no user'",
    r"\bwhat is told\b|\bis told of\b|\bare told of\b": "report, print, or pass",
    r"\bwho waits\b|\bwho has locked\b|\bwho is ill\b": "name the subject: 'a job that waits'",
    r"\bas it may be\b|\bas they may be\b": "valid, or in range",
    r"\bby the books\b": "according to accounting",
    r"\bthose that are none\b|\bare none\b": "invalid, or 'are not ...'",
    r"\bthe more seldom\b": "the less often",
    r"\bsets it in\b|\bis wanted of\b": "use the field's verb",
}
#: The same, outside the tests.
PRODUCT_PHRASES = {
    r"(?<!`)\b[Bb]eside\b": "next to, or in addition to",
    r"\bthere (is|are) none\b": "name the subject: 'it has no ...', or None",
    r"\bof which\b": "two sentences, or a relative clause with a noun",
    r"\b(was|is|are|be) told\b(?! to)|\b(kernel|which|log|metric|it) tells\b": "report, print, or pass",
    r"\b[Ss]eldom\b": "rarely, or less often",
    r"\b[Ss]ome(body|one)\b|\b[Ww]hoever\b|\b(environment|only by|variables) of who\b|\bby who (may|made)\b": "name who: a user",
    r"\bbecome of\b|\bas good as\b": "name the state, or 'counts as'",
    r'^\s*r?"""(What|Which|How|Whether|Why|When|Where|Who|Whose)\b': "a docstring begins with a noun or an imperative",
}
SUFFIXES = {".py", ".md", ".yaml", ".yml", ".json", ".toml", ".sh", ".service", ".timer", ".conf", ".lua"}
#: This file names the phrases.
EXEMPT = {"tests/lint/words.py"}
_BANNED = [(re.compile(pattern), plain) for pattern, plain in PHRASES.items()]
_BANNED_IN_PRODUCT = [(re.compile(pattern), plain) for pattern, plain in PRODUCT_PHRASES.items()]


def problems_in(name: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield one message for each banned phrase.

    Args:
        name: the file's path relative to the root, with forward slashes.
        lines: its lines.
    """
    banned = _BANNED if name.startswith("tests/") else _BANNED + _BANNED_IN_PRODUCT
    for number, line in enumerate(lines, start=1):
        for pattern, plain in banned:
            if match := pattern.search(line):
                yield f"{name}:{number}: {match.group()!r} (write: {plain})"


def check(root: Path, files: Iterable[str]) -> Iterator[str]:
    """Yield one message for each banned phrase in the tracked text files."""
    for name in files:
        if (Path(name).suffix in SUFFIXES or Path(name).name == "Makefile") and name not in EXEMPT:
            yield from problems_in(name, (root / name).read_text(encoding="utf-8").splitlines())
