"""Compiled kernels as object files: made by numba once, loaded by LLVM alone from then on.

Rule: whoever calls `load` gets a function pointer and need not know whether something was compiled. The file's name
hashes the kernels' sources, the compilers' versions and this processor, its content carries its own checksum, and
it is written whole or not at all; where nothing can be written the kernel lives in memory only.
Loading takes milliseconds and imports llvmlite; compiling takes seconds and imports numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from ..errors import ConfigError, InvariantError

Kernel = Callable[..., int]
#: Kernels (modules with `call` and `SIGNATURE`) and how many whole numbers or addresses, then reals, each takes.
KERNELS = {
    "entry": (6, 1),
    "interval": (2, 1),
    "batch.easy": (2, 0),
    "batch.rich_easy": (2, 0),
    "batch.powered.easy": (2, 0),
    "batch.conservative": (2, 0),
    "batch.network.easy": (2, 0),
    "batch.network.conservative": (2, 0),
    "batch.network.powered": (2, 0),
    "batch.contended.run": (2, 0),
    "batch.swf": (1, 0),
}
_SYMBOL = b"pilotfish_kernel"


def source_stamp() -> str:
    """Hash of all kernel sources and of what compiles them."""
    digest = hashlib.sha256(f"{version('numba')} {version('llvmlite')} {platform.python_version()}".encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Directory of compiled kernels: below NUMBA_CACHE_DIR where that is set, else in the user's cache."""
    if root := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(root) / "kernels"
    try:
        return Path.home() / ".cache" / "pilotfish" / "kernels"
    except RuntimeError:
        problem = "it is not set, and this user has no home directory"
        raise ConfigError("HOME", "", problem, "a directory; or set NUMBA_CACHE_DIR") from None


def cache_directory() -> Path:
    """Where the present sources' compiled kernels are, or will be."""
    return cache_root() / source_stamp()


@cache
def object_file(kernel: str) -> Path:
    """A compiled kernel for this processor."""
    host = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    return cache_directory() / f"{kernel}-{hashlib.sha256(host.encode()).hexdigest()[:16]}.o"


def is_warm(kernel: str = "entry") -> bool:
    """Whether a compiled kernel is there, so that a caller can announce the one slow first use."""
    return object_file(kernel).exists()


@cache
def load(kernel: str = "entry") -> Kernel:
    """A compiled kernel's `call`: takes what its SIGNATURE says, blocks as addresses; returns its whole number."""
    code = _read(object_file(kernel))
    if code is None:
        code = _compile(kernel)
        _write(object_file(kernel), code)
    engine, address = _link(code)
    signature = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p,
        *(ctypes.c_int64,) * KERNELS[kernel][0], *(ctypes.c_double,) * KERNELS[kernel][1],
    )  # fmt: skip
    function = signature(address)
    # Numba's own calling convention: a slot for the result, one for an exception, then the arguments.
    result, exception = ctypes.c_int64(0), ctypes.c_void_p(None)
    slots = ctypes.addressof(result), ctypes.addressof(exception)

    def call(*arguments: Any, _alive: Any = engine) -> int:
        if function(*slots, *arguments) > 0:
            raise InvariantError(f"the compiled kernel {kernel!r} raised an exception")
        return result.value

    return call


def warm(kernel: str) -> str:
    """Compile a kernel if it is not yet, and return its name."""
    load(kernel)
    return kernel


def _compile(kernel: str) -> bytes:
    """Object code of a kernel's `call` and everything it calls."""
    from .jit import object_code_only

    module = import_module(f".{kernel}", __package__)
    call = module.call
    with object_code_only(call.py_func.__name__):
        call.compile(module.SIGNATURE)
    compiled = call.overloads[tuple(module.SIGNATURE)]
    library = compiled.library
    name = compiled.fndesc.mangled_name.encode()
    code = library.codegen._tm.emit_object(library._final_module)
    return _SYMBOL + len(name).to_bytes(4, "big") + name + code


def _link(code: bytes) -> tuple[Any, int]:
    """Load object code into this process; returns its owner and the kernel's address."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    size = int.from_bytes(code[len(_SYMBOL) : len(_SYMBOL) + 4], "big")
    start = len(_SYMBOL) + 4
    name, content = code[start : start + size].decode(), code[start + size :]
    # Reference counts of arrays that nobody owns are never zero: nothing is ever destroyed.
    llvm.add_symbol("NRT_MemInfo_call_dtor", ctypes.cast(_never_called, ctypes.c_void_p).value)
    machine = llvm.Target.from_default_triple().create_target_machine(opt=3, codemodel="jitdefault", jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    return engine, engine.get_function_address(name)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _never_called(_: int) -> None:
    """Stands for the destructor that numba's reference counting refers to."""


def _read(path: Path) -> bytes | None:
    """The file's content without its checksum; None when it is absent or damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, code = data[:32], data[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(path: Path, code: bytes) -> None:
    """Put the file there whole; a directory that cannot be written only costs the next start some seconds."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(file.name, path)
    except OSError:
        return
