"""When Python looks for garbage: after a cycle, not in it.

Rule: a cycle makes and drops tens of thousands of small objects, none in a ring; looking through them again and again
on the way would cost a sixth of it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collected_after() -> Iterator[None]:
    """Let nothing be collected before the end."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
