"""Compilation of kernels.

Rule: a kernel's `call` is compiled once together with all that it calls (see `compile`), so no function needs a
wrapper or a cache of numba's own. Division follows IEEE (no exceptions in hot
loops); no fastmath: infinities are sentinels and the last bits matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from numba import njit
from numba.extending import overload

if TYPE_CHECKING:
    F = TypeVar("F", bound=Callable[..., Any])

    def inner(function: F) -> F:
        """Compile a function when a kernel that calls it is compiled; its types are those of the Python function."""
        return function

    def inlined(function: F) -> F:
        """Compile a function as `inner` does, into each of its callers: numba passes an array as about seven values."""
        return function
else:
    _HOW = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    inner, inlined = njit(**_HOW), njit(**_HOW, forceinline=True)


def by_type(test: Callable[[Any], bool], special: Any, general: Any) -> Callable[..., Any]:
    """Return a function that is `special` for some types of the state and `general` for the others.

    The compiler chooses, so the others pay nothing; in plain Python (see `interpreted`) each call does.

    Args:
        test: whether a numba type of the first argument, the state, needs the special function.
        special: a compiled function.
        general: one that takes the same arguments.
    """

    def chosen(*arguments: Any) -> Any:
        return (special if test(arguments[0].numba_type) else general)(*arguments)

    def compiled(state: Any, *others: Any) -> Any:
        return (special if test(state) else general).py_func

    overload(chosen, jit_options={"error_model": "numpy"}, strict=False)(compiled)
    return chosen
