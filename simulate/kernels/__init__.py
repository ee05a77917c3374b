"""Compiled kernels: the hot loops over tables (structured arrays) that the planner and the replay build.

Rule: numbers in, numbers out; no Python objects and no allocation inside a simulation. `object_cache` loads the
compiled functions. The modules that hold the loops are imported only to compile them.
"""

from __future__ import annotations

from .mapping import layout
from .object_cache import (
    KERNELS,
    Kernel,
    KernelWarning,
    adopt,
    cache_directory,
    is_warm,
    load,
    machine_code,
    object_file,
)

__all__ = [
    "KERNELS", "Kernel", "KernelWarning", "adopt", "cache_directory", "is_warm", "layout", "load", "machine_code",
    "object_file",
]  # fmt: skip
