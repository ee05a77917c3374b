"""Compile all kernels that this machine has not compiled yet, some at once: `python -m pilotfish.simulate.kernels`.

For images, installations and test runs, so that nobody waits for it later.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from .library import KERNELS, is_warm, warm


def main() -> None:
    """Compile what is missing, and say what was compiled."""
    missing = [kernel for kernel in KERNELS if not is_warm(kernel)]
    if not missing:
        return
    print("compiling the simulator for this machine, once; this takes a minute or two", flush=True)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for kernel in pool.map(warm, missing):
            print(f"  {kernel}", flush=True)


if __name__ == "__main__":
    main()
