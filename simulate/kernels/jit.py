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
from numba.core.codegen import CPUCodeLibrary

inner = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@contextmanager
def optimise_once(name: str) -> Iterator[None]:
    """While compiling, optimise only the library of function `name`, into which all others are linked.

    Numba optimises every function together with all it calls, so a chain of calls is optimised over and over; here
    that is most of the compile time. Without the hook (another numba) the result is the same, only later.
    """
    optimise = getattr(CPUCodeLibrary, "_optimize_final_module", None)
    if optimise is None:
        yield
        return

    def only_the_last(library: Any) -> None:
        if library.name == name:
            optimise(library)

    CPUCodeLibrary._optimize_final_module = only_the_last
    try:
        yield
    finally:
        CPUCodeLibrary._optimize_final_module = optimise
