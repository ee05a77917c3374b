"""`pilotfish warm`: compile all kernels for this machine, so that no later command does."""

from __future__ import annotations

from typing import Annotated

from ..formats.text import count
from ..machine_share import usable_cpus
from ..simulate.errors import PilotfishError
from . import options
from .options import flag, option
from .output.documents import print_json
from .streams import note, show, warn
from .usage_errors import not_among


def _kernels() -> list[str]:
    from ..simulate.kernels import KERNELS

    return list(KERNELS)


def warm(
    as_list: Annotated[bool, flag("--list", "Compile nothing; show which kernels are there.")] = False,
    only: Annotated[
        list[str] | None, option("NAME", "Only this kernel; may be repeated.", "--kernel", "-k", words=_kernels)
    ] = None,
    workers: options.Workers = None,
    as_json: options.Json = False,
) -> int:
    """Compile all kernels that this machine has not compiled yet, for an image, a package or a service.

    Kernels are kept for the processor that compiles them, in the user's cache or below PILOTFISH_CACHE. Only their
    owner may read them. After `chmod -R a+rX`, other users load those of root, but of no other user.
    Exit code 1: a kernel is missing, because it could not be compiled or stored.

    \b
    Examples:
      pilotfish warm
      pilotfish warm --list
      PILOTFISH_CACHE=/var/cache/pilotfish pilotfish warm -k mapping.entry
    """
    from ..simulate.kernels import KERNELS, is_warm
    from ..simulate.kernels.object_cache import why_not_kept

    for name in only or ():
        if name not in KERNELS:
            raise not_among("--kernel", name, "a kernel", KERNELS)
    wanted = [name for name in KERNELS if not only or name in only]
    if not as_list and (missing := [name for name in wanted if not is_warm(name)]):
        if problem := why_not_kept():
            raise PilotfishError(problem)
        _compile(missing, workers)
    there = {name: is_warm(name) for name in wanted}
    _show(there, as_list=as_list, as_json=as_json)
    return int(not all(there.values()))


def _compile(missing: list[str], workers: int | None) -> None:
    """Compile kernels in processes of their own, those that take longest first; print a line for each."""
    import time
    from concurrent.futures import ThreadPoolExecutor, as_completed

    from ..simulate.kernels import KERNELS

    most = min(workers or len(usable_cpus()), len(missing))
    seconds = sum(KERNELS[name].seconds for name in missing) / most
    note(f"compiling {count(len(missing), 'kernel')} for this machine, {most} at once (about {max(seconds, 1):.0f} s)")
    printed: set[str] = set()
    began = time.monotonic()
    with ThreadPoolExecutor(most) as pool:
        order = sorted(missing, key=lambda name: -KERNELS[name].seconds)
        for number, done in enumerate(as_completed([pool.submit(_compiled, name) for name in order]), 1):
            name, lines = done.result()
            warn(*(line for line in lines if line not in printed))
            printed.update(lines)
            seconds = time.monotonic() - began
            note(f"{number} of {len(missing)}: {name}, {KERNELS[name].title} ({seconds:.0f} s)")


def _compiled(kernel: str) -> tuple[str, list[str]]:
    """Compile a kernel in a process of its own, which has ended then; return its name, and what was wrong."""
    import subprocess
    import sys

    load = "import sys; from pilotfish.simulate.kernels import load; load(sys.argv[1], print)"
    argv = [sys.executable, *(["-P"] * sys.flags.safe_path), "-c", load, kernel]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return kernel, [*done.stdout.splitlines(), *done.stderr.splitlines()[-1:]]


def _show(there: dict[str, bool], *, as_list: bool, as_json: bool) -> None:
    from ..simulate.kernels import KERNELS, cache_directory, object_file

    directory = cache_directory()
    if as_json:
        rows = [
            {"kernel": name, "title": KERNELS[name].title, "compiled": done, "file": str(object_file(name) or "")}
            for name, done in there.items()
        ]
        print_json("kernels", {"directory": str(directory or ""), "kernels": rows})
        return
    if as_list:
        width = max(map(len, there))
        for name, done in there.items():
            show(f"{'compiled' if done else 'missing':8}  {name:{width}}  {KERNELS[name].title}")
    if directory is not None:
        show(f"{sum(there.values())} of {len(there)} kernels are in {directory}")
    else:
        show("kernels cannot be kept: this user has no home directory; set PILOTFISH_CACHE")
