"""How kernels are compiled.

Rule: a kernel's `call` is compiled once together with all that it calls (see `compile`), so no function needs a
wrapper or a cache of numba's own. Division follows IEEE (no exceptions in hot
loops); no fastmath: infinities are sentinels and the last bits matter.
"""

from __future__ import annotations

from numba import njit

inner = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
