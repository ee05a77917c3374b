"""Compiled kernels: the hot loops, over tables (structured arrays) that `engine` builds.

Rule: numbers in, numbers out; no Python objects, no allocation inside a simulation. `library` hands out the one
compiled function; the modules that hold the loops are imported only to compile it.
"""

from __future__ import annotations

from . import layout
from .library import cache_directory, is_warm, load

__all__ = ["cache_directory", "is_warm", "layout", "load"]
