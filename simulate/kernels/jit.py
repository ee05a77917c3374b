"""How kernels are compiled.

Rule: a kernel's `call` is compiled once together with all that it calls (see `library`), so no function needs a
wrapper or a cache of numba's own. Division follows IEEE (no exceptions in hot
loops); no fastmath: infinities are sentinels and the last bits matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit
from numba.core.codegen import JITCodeLibrary

inner = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@contextmanager
def object_code_only(name: str) -> Iterator[None]:
    """While compiling, optimise only the library of function `name`, into which all others are linked, and make
    machine code of none (the caller emits an object file).

    Numba optimises every function together with all it calls, and makes each callable by itself: a chain of calls
    is optimised over and over, which here is most of the compile time. Without these hooks (another numba) the
    result is the same, only later.
    """
    optimise = getattr(JITCodeLibrary, "_optimize_final_module", None)
    finish = getattr(JITCodeLibrary, "_finalize_specific", None)
    if optimise is None or finish is None:
        yield
        return

    def only_the_last(library: Any) -> None:
        if library.name == name:
            optimise(library)

    JITCodeLibrary._optimize_final_module = only_the_last
    JITCodeLibrary._finalize_specific = lambda library: None
    try:
        yield
    finally:
        JITCodeLibrary._optimize_final_module = optimise
        JITCodeLibrary._finalize_specific = finish
