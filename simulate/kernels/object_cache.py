"""Compiled kernels as object files: made by numba once, loaded by LLVM alone from then on.

Rule: the caller of `load` gets a function and need not know whether something was compiled. The file's name
hashes the kernels' sources, the compilers' versions and this processor, its content carries its own checksum, and
it is written whole or not at all. The code in it is run: a file or directory that is not trusted (see `trust`) is
neither loaded nor written. A directory that cannot be used costs time and is never an error.
A package may carry kernels for many processors (see PORTABLE). They are used until those for this one are compiled.
Loading takes milliseconds and imports llvmlite; compiling takes seconds and imports numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from ...trust import check_file, make_folder, open_file, private_umask
from ..errors import InvariantError

Call = Callable[..., int]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled `call` of a module, for the types that the module's `SIGNATURES` names."""

    title: str  # what it is, in a sentence
    lines: int  # of code that numba compiles for it, each function once, to show progress; see `compile.lines_of`
    integers: int = 2  # how many whole numbers or addresses its `call` takes first
    reals: int = 0  # how many reals it then takes
    module: str = ""  # the module below this package; "" if it is the kernel's name
    lowered: bool = False  # see `compile.object_code`


#: All kernels, by name.
KERNELS = {
    "mapping.entry": Kernel("the simulator of workflows", 2159, 6, 1),
    "mapping.networked": Kernel("shared nodes on a network", 2636, 6, 1, "mapping.entry"),
    "mapping.rule_choice": Kernel("rules for tasks, a decision a step", 1158, 5),
    "swf.parser": Kernel("the reader of SWF files", 62, 1),
    "bars.columns": Kernel("the reader of accountings", 94, 4),
    "queue.easy": Kernel("the replay under EASY and strict order", 572, lowered=True),
    "queue.easy_rich": Kernel("EASY with dependencies or predictions", 611, module="queue.easy"),
    "queue.stepwise": Kernel("the replay under policies in Python", 475, 1),
    "queue.classed": Kernel("EASY with classes of nodes", 263),
    "queue.conservative": Kernel("the conservative replay", 538, lowered=True),
    "queue.power.easy_power": Kernel("the replay with power policies", 1133, lowered=True),
    "queue.easy_networked": Kernel("the replay on a network", 1060, module="queue.easy"),
    "queue.conservative_networked": Kernel("the conservative replay on a network", 1024, module="queue.conservative"),
    "queue.power_networked": Kernel("the power replay on a network", 1619, module="queue.power.easy_power"),
    "queue.network.steps": Kernel("jobs on a network, step by step", 554, 3, 1),
    "pairs.placements": Kernel("jobs on nodes, a decision a step", 165, 2),
    "orders.choices": Kernel("orders of the queue, a decision a step", 253, 2),
    "pairs.row_scores": Kernel("networks that score pairs", 36, 1),
    "slurm.site_requests": Kernel("Slurm's own rules", 3690, 2, 1),
}
#: Variables that name the directory of kernels, the first that is set, and what is appended to each. Numba's own is not
#: among them: sites set it to a directory that all users can write.
PLACES = (
    ("PILOTFISH_CACHE", "kernels"),
    ("CACHE_DIRECTORY", "kernels"),
    ("XDG_CACHE_HOME", "pilotfish/kernels"),
)
#: The processors for which packages carry kernels: 64-bit x86 from about 2011 on, and most virtual ones. The name is
#: LLVM's; the features are what it adds to the first 64-bit processors (System V ABI for AMD64, section 3.1.1).
PORTABLE = "x86-64-v2"
PORTABLE_FEATURES = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
NO_HOME = "this user has no home directory"
ADVICE = "PILOTFISH_CACHE names another directory"
_loaded: dict[str, Call] = {}
_topics: set[str] = set()


class KernelWarning(RuntimeWarning):
    """Kernels work but take longer than they need to."""


def source_stamp() -> str:
    """Hash of all kernel sources and of what compiles them."""
    python = ".".join(platform.python_version_tuple()[:2])  # code of one 3.11 runs under another
    digest = hashlib.sha256(f"{version('numba')} {version('llvmlite')} {python}".encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_root() -> Path | None:
    """Directory of compiled kernels: see PLACES, else in the user's cache; None: this user has no home directory."""
    for name, below in PLACES:
        directory = os.environ.get(name, "").split(":")[0] if name == "CACHE_DIRECTORY" else os.environ.get(name)
        if directory and (name != "XDG_CACHE_HOME" or os.path.isabs(directory)):
            return Path(os.path.expanduser(directory)) / below
    home = os.path.expanduser("~")
    return Path(home) / ".cache" / "pilotfish" / "kernels" if os.path.isabs(home) else None


def cache_directory() -> Path | None:
    """Return the folder of the present sources' compiled kernels, which may not exist yet; None: nowhere."""
    root = cache_root()
    return None if root is None else root / source_stamp()


def processor() -> str:
    """Name and features of what numba compiles for: this processor, or the one that numba's variables name."""
    name, features = (os.environ.get(f"NUMBA_CPU_{part}") for part in ("NAME", "FEATURES"))
    if features is None:
        features = llvm.get_host_cpu_features().flatten()
    return f"{llvm.get_host_cpu_name() if name is None else name} {features}"


@cache
def object_file(kernel: str) -> Path | None:
    """A compiled kernel for this processor; None: it cannot be kept."""
    directory, digest = cache_directory(), hashlib.sha256(processor().encode()).hexdigest()[:16]
    return None if directory is None else directory / f"{kernel}-{digest}.o"


def packaged_file(kernel: str) -> Path | None:
    """Return where a package has a kernel, if it has one; None: this processor is not one of PORTABLE."""
    features = llvm.get_host_cpu_features()
    if not all(features.get(name) for name in PORTABLE_FEATURES):
        return None
    return Path(__file__).with_name("portable") / source_stamp() / f"{kernel}.o"


def is_warm(kernel: str = "mapping.entry") -> bool:
    """Return whether a compiled kernel is there, so that a caller can announce the one slow first use."""
    return kernel in _loaded or is_kept(kernel) or bool(_read(packaged_file(kernel)))


def is_kept(kernel: str) -> bool:
    """Return whether a later process finds a kernel for this processor, so that it need not be compiled."""
    return _is_interpreted() or _read(object_file(kernel)) is not None


def _is_interpreted() -> bool:
    """Return whether numba was asked to compile nothing, see `interpreted`."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def adopt(kernel: str, code: bytes, say: Callable[[str], None]) -> None:
    """Keep and load a kernel that another process compiled for this machine.

    Args:
        kernel: its name, see KERNELS.
        code: what `machine_code` returned there.
        say: see `load`.
    """
    _keep(object_file(kernel), code, say)
    _loaded[kernel] = _linked(kernel, code)


def machine_code(kernel: str, each: Callable[[int], object] = lambda lines: None) -> bytes:
    """Compile a kernel for this machine and return its object code.

    Args:
        kernel: its name, see KERNELS.
        each: takes the lines of code of each function that has been compiled.

    Raises:
        RuntimeError: this numba does not give the object code away.
    """
    from . import compile as compiler

    if problem := compiler.object_code_problem():
        raise RuntimeError(problem)
    module = import_module(f".{KERNELS[kernel].module or kernel}", __package__)
    return compiler.object_code(module.call, module.SIGNATURES[kernel], lowered=KERNELS[kernel].lowered, each=each)


def load(kernel: str = "mapping.entry", say: Callable[[str], None] | None = None) -> Call:
    """A compiled kernel's `call`: takes what its signature says, blocks as addresses; returns its whole number.

    Args:
        kernel: its name, see KERNELS.
        say: takes what makes kernels slow to load, one line each, once; None: it is a KernelWarning.
    """
    call = _loaded.get(kernel)
    if call is None:
        call = _loaded[kernel] = _obtain(kernel, say or _warn)
    return call


def _warn(text: str) -> None:
    warnings.warn(text, KernelWarning, stacklevel=4)


def _obtain(kernel: str, say: Callable[[str], None]) -> Call:
    """Load a kernel; compile and keep it if it is missing."""
    if _is_interpreted():
        from .interpreted import interpreted

        module = import_module(f".{KERNELS[kernel].module or kernel}", __package__)
        return interpreted(module.call, module.SIGNATURES[kernel])
    path = object_file(kernel)
    code = _read(path)
    if usable := code or _read(packaged_file(kernel)):
        return _linked(kernel, usable)
    from . import compile as compiler

    module = import_module(f".{KERNELS[kernel].module or kernel}", __package__)
    if problem := compiler.object_code_problem():
        return _fallback(kernel, (module.call, module.SIGNATURES[kernel]), problem, say, known=code is not None)
    code = machine_code(kernel)
    _keep(path, code, say)
    return _linked(kernel, code)


def _fallback(
    kernel: str, function: tuple[Any, tuple[Any, ...]], problem: str, say: Callable[[str], None], *, known: bool
) -> Call:
    """Have numba compile, and keep, a kernel whose object code cannot be had; an empty object file says so."""
    from . import compile as compiler

    if not known:
        text = f"numba {version('numba')} is {problem}: numba itself compiles the kernels, which takes longer"
        _say_once(say, "numba", text)
    path = object_file(kernel)
    directory = _numba_directory(path)
    try:
        with private_umask():
            owner, address, is_cached = compiler.compiled_by_numba(*function, directory)
    except OSError:  # the disk is full
        directory = None
        owner, address, is_cached = compiler.compiled_by_numba(*function, None)
    if not known and (is_cached or directory is None):
        _keep(path, b"", say)
    loaded = ctypes.CFUNCTYPE(ctypes.c_int64, *_arguments(KERNELS[kernel]))(address)

    def call(*arguments: Any, _alive: Any = owner) -> int:
        return int(loaded(*arguments))

    return call


def _keep(path: Path | None, code: bytes, say: Callable[[str], None]) -> None:
    """Write an object file, or say why every process compiles."""
    why = NO_HOME if path is None else _write(path, code)
    if why is not None:
        where = "" if path is None else f" in {path.parent.parent}"
        _say_once(say, "kept", f"kernels cannot be kept{where} and are compiled each time: {why} ({ADVICE})")


def why_not_kept() -> str:
    """Try to write into the cache. Return why no kernel can be kept there; "" if they can."""
    if (directory := cache_directory()) is None:
        return f"kernels cannot be kept: {NO_HOME} ({ADVICE})"
    try:
        with tempfile.TemporaryFile(dir=make_folder(directory)):
            return ""
    except OSError as error:
        return f"kernels cannot be kept in {directory.parent}: {error.strerror or error} ({ADVICE})"


def _numba_directory(path: Path | None) -> str | None:
    """The directory of numba's own cache, made; None if no directory is trusted and can be written.

    Numba unpickles what lies in it, also below directories of its own.
    """
    if path is None:
        return None
    try:
        directory = make_folder(path.parent / "numba")
        for folder, _, files in os.walk(directory):
            make_folder(folder)
            for name in files:
                check_file(os.path.join(folder, name))
    except OSError:
        return None
    return directory if os.access(directory, os.W_OK) else None


def _say_once(say: Callable[[str], None], topic: str, text: str) -> None:
    if topic not in _topics:
        _topics.add(topic)
        say(text)


def _arguments(kernel: Kernel) -> tuple[Any, ...]:
    return (*(ctypes.c_int64,) * kernel.integers, *(ctypes.c_double,) * kernel.reals)


def _linked(kernel: str, code: bytes) -> Call:
    """Load object code into this process (see `compile.object_code`)."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=3, codemodel="jitdefault", jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address("pilotfish_kernel")
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *_arguments(KERNELS[kernel]))(address)
    result = ctypes.c_int64(0)
    slot = ctypes.addressof(result)

    def call(*arguments: Any, _alive: Any = engine) -> int:
        if function(slot, *arguments) > 0:
            raise InvariantError(f"the compiled kernel {kernel!r} raised an exception")
        return result.value

    return call


def _read(path: Path | None) -> bytes | None:
    """The file's content without its checksum; None: it is absent, not trusted, damaged, or cannot be read."""
    if path is None:
        return None
    try:
        with os.fdopen(open_file(path), "rb") as file:
            data = file.read()
    except OSError:
        return None
    digest, code = data[:32], data[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(path: Path, code: bytes) -> str | None:
    """Put the file there whole. Returns why it could not be written."""
    try:
        folder = make_folder(path.parent)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            try:
                file.write(hashlib.sha256(code).digest() + code)
                file.flush()
                os.fchmod(file.fileno(), 0o600)
                os.replace(file.name, os.path.join(folder, path.name))
            except OSError:
                with suppress(OSError):
                    os.unlink(file.name)
                raise
    except OSError as error:
        return error.strerror or str(error)
    return None
