"""Standard output and error, whose readers may go away at any time (`pilotfish plan ... | head`), or never were there.

Rule: a reader who has gone is not an error of what was asked for: nothing more is written, and nobody complains. What
cannot be said on stderr, for whatever reason, ends nothing either; a result that cannot be written is an error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO


def attach() -> None:
    """Put /dev/null where a standard stream was closed before we began (`>&-`): no other file may take its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
            if null != number:
                os.close(null)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def tell(text: str) -> None:
    """One line on stderr, harmless to a terminal, after what stdout has so far; unheard where it cannot be written."""
    from .render.text import clean

    with suppress(OSError):
        sys.stdout.flush()
    try:
        print(clean(text), file=sys.stderr, flush=True)
    except OSError:
        forget(sys.stderr)


@contextmanager
def unheard() -> Iterator[None]:
    """Go on where the reader of stdout goes away meanwhile; what was left to say is dropped."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        forget(sys.stdout)
    except SystemExit as stop:  # rich's own answer to it
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        forget(sys.stdout)


def forget(stream: IO[str]) -> None:
    """Let what is still written to `stream` vanish, the interpreter's last flush included."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
    with suppress(OSError):
        stream.flush()
