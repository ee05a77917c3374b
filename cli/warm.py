"""`pilotfish warm`: compile all kernels for this machine, so that no later command does."""

from __future__ import annotations

from typing import Annotated

from ..formats.text import count
from ..simulate.errors import PilotfishError
from . import options
from .kernel_loading import compile_with_notes
from .options import flag, option
from .output.documents import print_json
from .streams import show
from .usage_errors import not_among


def _kernels() -> list[str]:
    from ..simulate.kernels.object_cache import KERNELS

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
    A package has kernels for many processors, which are used until they are compiled for this one.
    Exit code 1: a kernel is missing, because it could not be compiled or stored.

    \b
    Examples:
      pilotfish warm
      pilotfish warm --list
      PILOTFISH_CACHE=/var/cache/pilotfish pilotfish warm -k mapping.entry
    """
    from ..simulate.kernels.object_cache import KERNELS, is_kept, why_not_kept

    for name in only or ():
        if name not in KERNELS:
            raise not_among("--kernel", name, "a kernel", KERNELS)
    kernels = [name for name in KERNELS if not only or name in only]
    if not as_list and (missing := [name for name in kernels if not is_kept(name)]):
        if problem := why_not_kept():
            raise PilotfishError(problem)
        compile_with_notes(missing, workers)
    is_compiled = {name: is_kept(name) for name in kernels}
    _show(is_compiled, as_list=as_list, as_json=as_json)
    return int(not all(is_compiled.values()))


def _show(is_compiled: dict[str, bool], *, as_list: bool, as_json: bool) -> None:
    from ..simulate.kernels.object_cache import KERNELS, cache_directory, is_warm, object_file

    directory = cache_directory()
    if as_json:
        rows = [
            {"kernel": name, "title": KERNELS[name].title, "compiled": compiled, "file": str(object_file(name) or "")}
            for name, compiled in is_compiled.items()
        ]
        print_json("kernels", {"directory": str(directory or ""), "kernels": rows})
        return
    if as_list:
        width = max(map(len, is_compiled))
        for name, compiled in is_compiled.items():
            state = "compiled" if compiled else "packaged" if is_warm(name) else "missing"
            show(f"{state:8}  {name:{width}}  {KERNELS[name].title}")
    if directory is not None:
        show(f"{sum(is_compiled.values())} of {count(len(is_compiled), 'kernel is', 'kernels are')} in {directory}")
    else:
        show("kernels cannot be kept: this user has no home directory; set PILOTFISH_CACHE")
