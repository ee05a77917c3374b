"""Compiled kernels: the hot loops, over tables (structured arrays) that `engine` builds.

Rule: numbers in, numbers out; no Python objects, no allocation inside a simulation. `library` hands out the compiled
functions (`entry`, and `interval` for who asks for it); the modules that hold the loops are imported only to compile.
"""

from __future__ import annotations

from . import layout
from .library import cache_directory, is_warm, load

__all__ = ["cache_directory", "is_warm", "layout", "load"]
