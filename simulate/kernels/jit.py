"""How kernels are compiled.

Rule: a kernel's `call` is compiled once together with all that it calls (see `compile`), so no function needs a
wrapper or a cache of numba's own. Division follows IEEE (no exceptions in hot
loops); no fastmath: infinities are sentinels and the last bits matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from numba import njit

if TYPE_CHECKING:
    F = TypeVar("F", bound=Callable[..., Any])

    def inner(function: F) -> F:
        """Compile a function when a kernel that calls it is compiled; its types are those of the Python function."""
        return function
else:
    inner = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
