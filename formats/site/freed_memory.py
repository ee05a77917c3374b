"""Give memory back to the system that was freed.

Rule: what cannot be given back costs memory, and is no error. The C library of GNU keeps freed pieces up to 32 MiB.
"""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Give freed memory back, where the C library has a way to do so."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
