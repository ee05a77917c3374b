"""Standard output and error, whose readers may go away at any time (`pilotfish plan ... | head`).

Rule: a reader who has gone is not an error of what was asked for: nothing more is written, and nobody complains.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO


def tell(text: str) -> None:
    """One line on stderr, harmless to a terminal, after what stdout has so far; unheard where nobody listens."""
    from .render.text import clean

    with suppress(BrokenPipeError):
        sys.stdout.flush()
    try:
        print(clean(text), file=sys.stderr, flush=True)
    except BrokenPipeError:
        forget(sys.stderr)


@contextmanager
def unheard() -> Iterator[None]:
    """Go on where the reader of stdout goes away meanwhile; what was left to say is dropped."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        forget(sys.stdout)


def forget(stream: IO[str]) -> None:
    """Let what is still written to `stream` vanish, the interpreter's last flush included."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
    with suppress(OSError):
        stream.flush()
