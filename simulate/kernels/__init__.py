"""Compiled kernels: the hot loops, over tables (structured arrays) that `engine` builds.

Rule: numbers in, numbers out; no Python objects, no allocation inside a simulation. Compiled once by numba and
cached on disk under a name that hashes every source of this package, so that a change in one kernel never
meets a stale copy of another that was linked into it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numba


def source_stamp() -> str:
    """Hash of all kernel sources and of numba's version; the cache directory is named after it."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Directory of compiled kernels: NUMBA_CACHE_DIR where set (numba reads it), else the user's cache."""
    return Path(numba.config.CACHE_DIR or Path.home() / ".cache" / "pilotfish") / "kernels"


def cache_directory() -> Path:
    """Where the present sources' compiled kernels are, or will be."""
    return cache_root() / source_stamp()


def is_warm() -> bool:
    """Whether the compiled kernels are there, so that a caller can announce the one slow first use."""
    return any(cache_directory().rglob("entry.call*.nbi"))


# numba settles a function's cache path when it is decorated: point it at ours while the kernels are imported,
# and leave other users of numba in this process their own.
_before = numba.config.CACHE_DIR
numba.config.CACHE_DIR = str(cache_directory())
try:
    from . import entry, layout
finally:
    numba.config.CACHE_DIR = _before

__all__ = ["cache_directory", "entry", "is_warm", "layout", "source_stamp"]
