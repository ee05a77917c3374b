"""Everything of numba that numba does not document, in one module: block types, and object code of kernels.

Rule: no other module imports a private part of numba; only compiling imports this one, loading does not. `TESTED` is
the range of versions on which it was tested (`make test-numba`).

Needed by every kernel, on any numba:
- `typing.templates.AttributeTemplate`, `np.arrayobj.make_array` and `populate_array`: the tables of a block are its
  attributes.
- `cpython.unsafe.numbers`: `trailing_zeros` and `leading_zeros`, one machine instruction each.

Needed to show progress, and documented: the events `numba:compile` of `numba.core.event`.

Needed to keep kernels as object files; without them `object_code_problem` gives a reason, and `compiled_by_numba`
compiles them slowly and keeps them in numba's own cache:
- `JITCodeLibrary._final_module`, `codegen._tm.emit_object`: the object code of a function and of all that it calls.
- `JITCodeLibrary._optimize_final_module`, `_finalize_specific` and `JITCPUCodegen._add_module`, `set_env`: numba
  optimises each function with all it calls and makes machine code of it. A kernel needs that once, for its `call`.
- The calling convention of compiled functions: a pointer to the result, one to an exception, then the arguments.
- The symbol NRT_MemInfo_call_dtor, which compiled code refers to. It destroys an array without owners. Arrays of
  blocks are never counted, so it is never called, and an empty function stands for it.
"""

from __future__ import annotations

import gc
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import cfunc, from_dtype, types
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model
from numba.np.arrayobj import make_array, populate_array

from .block import Block
from .mapping.layout import Scratch, World

__all__ = [
    "TESTED", "BlockType", "ScratchType", "WorldType", "compare_64", "compiled_by_numba", "leading_zeros", "lines_of",
    "object_code", "object_code_problem", "register", "trailing_zeros",
]  # fmt: skip

#: Oldest version of numba that was tested, and the first after the newest; pyproject.toml says the same.
TESTED = ((0, 60), (0, 69))
#: Name of a kernel's C function in its object file.
SYMBOL = "pilotfish_kernel"
#: The address of a function that a kernel takes as an argument, in a name: it differs from one compilation to the next.
_ADDRESS = re.compile(r"(?<=_20at_200x)[0-9a-f]+")
#: New objects between two runs of the garbage collector; the default, 700, costs a tenth of the time to compile.
_GARBAGE = (100_000, 50, 1000)


class BlockType(types.Type):
    """Numba's view of a subclass of Block."""

    def __init__(self) -> None:
        super().__init__(name=type(self).__name__)


class _BlockModel(models.PrimitiveModel):
    """A block is its address; Python code never calls a compiled function with one."""

    def __init__(self, manager: Any, fe_type: BlockType) -> None:
        super().__init__(manager, fe_type, ir.IntType(64))


def register(python_type: type[Block], module: str) -> type[BlockType]:
    """Make a subclass of Block usable as a kernel argument, its tables as attributes; return numba's type of it.

    Args:
        python_type: the subclass.
        module: the calling module, which assigns the result to the name of `python_type` plus "Type": numba's disk
            cache must find it again by name.
    """
    kind = type(f"{python_type.__name__}Type", (BlockType,), {"__module__": module})
    python_type.numba_type = kind()
    register_model(kind)(_BlockModel)
    tables = {
        name: (3 * slot, types.Array(from_dtype(dtype), dims, "C") if dims else from_dtype(dtype))
        for slot, (name, (dtype, dims)) in enumerate(python_type.layout.items())
    }

    class Attributes(AttributeTemplate):
        key = kind

        def generic_resolve(self, block: Any, name: str) -> Any:
            return tables[name][1] if name in tables else None

    infer_getattr(Attributes)

    @lower_getattr_generic(kind)
    def lower(context: Any, builder: Any, block: Any, value: Any, name: str) -> Any:
        return _table(context, builder, value, *tables[name])

    return kind


def _table(context: Any, builder: Any, header: Any, slot: int, kind: types.Array | types.Record) -> Any:
    """Compiled code that makes an array, or a row, of the header's words from `slot` on; nothing owns it."""
    word = ir.IntType(64)
    base = builder.inttoptr(header, word.as_pointer())
    if isinstance(kind, types.Record):
        address = builder.load(builder.gep(base, [ir.Constant(word, slot)]))
        return builder.inttoptr(address, context.get_value_type(kind))
    data, *shape = (builder.load(builder.gep(base, [ir.Constant(word, slot + i)])) for i in range(1 + kind.ndim))
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides = [ir.Constant(word, size)]
    if kind.ndim == 2:
        strides.insert(0, builder.mul(shape[1], strides[0]))
    array = context.make_array(kind)(context, builder)
    pointer = builder.inttoptr(data, context.get_data_type(kind.dtype).as_pointer())
    populate_array(array, data=pointer, shape=shape, strides=strides, itemsize=ir.Constant(word, size), meminfo=None)
    return array._getvalue()


@intrinsic
def _compare_64(_context: Any, column: Any, first: Any, bound: Any) -> Any:
    """Return one bit for each of 64 cells: 1 if the cell is at least `bound`. LLVM's vectoriser makes no such code.

    Args:
        _context: numba's; callers leave it out.
        column: one-dimensional array of 32-bit integers.
        first: the first of the cells, at least 0; all 64 must exist.
        bound: an integer of at most 32 bits.
    """

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = make_array(signature.args[0])(context, builder, values[0])
        cell = ir.IntType(32)
        cells = ir.VectorType(cell, 64)
        loaded = builder.load(builder.bitcast(builder.gep(array.data, [values[1]]), cells.as_pointer()), align=4)
        one = builder.insert_element(ir.Constant(cells, ir.Undefined), builder.trunc(values[2], cell), cell(0))
        every = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(cell, 64), [0] * 64))
        return builder.bitcast(builder.icmp_signed(">=", loaded, every), ir.IntType(64))

    return types.uint64(column, types.int64, types.int64), lower


_settings: Any = numba.config
if TYPE_CHECKING or _settings.DISABLE_JIT:
    from .interpreted import compare_64, leading_zeros, trailing_zeros
else:
    from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros

    compare_64 = _compare_64

WorldType, ScratchType = register(World, __name__), register(Scratch, __name__)


def object_code_problem() -> str | None:
    """Return why `object_code` cannot be used with this numba, None if it can."""
    numbers = tuple(map(int, re.findall(r"\d+", numba.__version__)[:2]))
    if not TESTED[0] <= numbers < TESTED[1]:
        return f"outside the tested range, {_text(TESTED[0])} to below {_text(TESTED[1])}"
    try:
        from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
        from numba.core.registry import cpu_target

        generator = cpu_target.target_context.codegen()
        parts = (
            (JITCodeLibrary, "_optimize_final_module"), (JITCodeLibrary, "_finalize_specific"),
            (JITCPUCodegen, "_add_module"), (JITCPUCodegen, "set_env"),
            (generator, "_tm"), (generator.create_library("probe"), "_final_module"),
        )  # fmt: skip
    except (ImportError, AttributeError) as error:
        return f"different inside ({error})"
    missing = [name for owner, name in parts if not hasattr(owner, name)]
    return f"without {', '.join(missing)}" if missing else None


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def object_code(
    call: Any, signature: tuple[Any, ...], *, lowered: bool = False, each: Callable[[int], object] = lambda lines: None
) -> bytes:
    """Return an object file with a kernel and everything it calls.

    The C function `SYMBOL` in it takes a pointer for the result (64 bits), then the kernel's arguments. It returns
    a number above 0 where the kernel raised an exception.

    Args:
        call: the function, as `jit.inner` made it.
        signature: numba's types of its arguments.
        lowered: lower each function for the processor before it is inlined, too. What that rewrites is optimised again
            in the callers: a third longer to compile; EASY, its power variants and conservative backfilling run 2 to
            10 % faster, other kernels about 1 %.
        each: takes the lines of code of each function of ours when it has been compiled for the first time; their sum
            is the `lines` of the kernel.
    """
    listening = event.install_listener("numba:compile", _CompiledFunctions(each))
    with listening, _optimised_once(call.py_func.__name__, _lower if lowered else _nothing):
        call.compile(signature)
        compiled = call.overloads[signature]
        library = compiled.library
        module = library._final_module
        module.link_in(llvm.parse_assembly(_c_function(compiled.fndesc.mangled_name, signature, module)))
        for variable in list(module.global_variables):
            variable.name = _ADDRESS.sub("", variable.name)
        code: bytes = library.codegen._tm.emit_object(module)
        return code


def lines_of(function: Any) -> int:
    """Return how many lines of a Python function have code: what compiling it costs is about proportional to them."""
    return len({line for _, _, line in function.__code__.co_lines()})


class _CompiledFunctions(event.Listener):
    """Reports the lines of each function of this package that is compiled for the first time."""

    def __init__(self, report: Callable[[int], object]) -> None:
        self._report, self._compiled = report, set[Any]()

    def on_start(self, event: Any) -> None:
        pass

    def on_end(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if function not in self._compiled and function.__module__.startswith(f"{__package__}."):
            self._compiled.add(function)
            self._report(lines_of(function))


def _c_function(kernel: str, signature: tuple[Any, ...], module: Any) -> str:
    """Return assembly of `SYMBOL`, which calls the compiled function `kernel`, and of the empty destructor."""
    wrapper, pointer = ir.Module(), ir.IntType(8).as_pointer()
    wrapper.triple, wrapper.data_layout = module.triple, module.data_layout
    takes = [ir.DoubleType() if kind == types.float64 else ir.IntType(64) for kind in signature]
    called = ir.Function(wrapper, ir.FunctionType(ir.IntType(32), [pointer, pointer, *takes]), kernel)
    function = ir.Function(wrapper, ir.FunctionType(ir.IntType(32), [pointer, *takes]), SYMBOL)
    builder = ir.IRBuilder(function.append_basic_block())
    exception = builder.bitcast(builder.alloca(pointer), pointer)
    result, *arguments = function.args
    builder.ret(builder.call(called, [result, exception, *arguments]))
    destructor = ir.Function(wrapper, ir.FunctionType(ir.VoidType(), [pointer]), "NRT_MemInfo_call_dtor")
    ir.IRBuilder(destructor.append_basic_block()).ret_void()
    return str(wrapper)


def _nothing(generator: Any, module: Any) -> None:
    """Do nothing with the module of a function."""


def _lower(generator: Any, module: Any) -> None:
    """Make machine code of a function, which rewrites its module, and drop it."""
    generator._tm.emit_object(module)


@contextmanager
def _optimised_once(name: str, add_module: Callable[[Any, Any], None]) -> Iterator[None]:
    """Optimise only function `name`, into which all others are linked, and load machine code of none.

    Args:
        name: the function's name.
        add_module: takes the code generator and the module of each function, instead of loading it.
    """
    from numba.core.codegen import JITCodeLibrary as library
    from numba.core.codegen import JITCPUCodegen as generator

    optimise = library._optimize_final_module

    def only_the_last(one: Any) -> None:
        if one.name == name:
            optimise(one)

    hooks = (
        (library, "_optimize_final_module", only_the_last),
        (library, "_finalize_specific", lambda one: None),
        (generator, "_add_module", add_module),
        (generator, "set_env", lambda one, name, environment: None),
    )
    with global_compiler_lock:
        before, thresholds = [(owner, part, getattr(owner, part)) for owner, part, _ in hooks], gc.get_threshold()
        try:
            for owner, part, hook in hooks:
                setattr(owner, part, hook)
            gc.set_threshold(*_GARBAGE)
            yield
        finally:
            gc.set_threshold(*thresholds)
            for owner, part, original in before:
                setattr(owner, part, original)


def compiled_by_numba(
    call: Any, signature: tuple[Any, ...], directory: str | None
) -> tuple[Any, int, bool]:  # fmt: skip
    """Compile a kernel as any user of numba would, or load it from numba's cache.

    Args:
        call: the function, as `jit.inner` made it.
        signature: numba's types of its arguments.
        directory: of numba's cache; None: the result is not kept.

    Returns:
        The owner of the machine code, the address of a C function of the kernel's arguments, and whether the result
        is kept. Numba cannot keep kernels that take functions as arguments.

    Raises:
        OSError: the directory cannot be written.
    """
    with global_compiler_lock, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", numba.NumbaWarning)
        settings: Any = numba.config
        before, settings.CACHE_DIR = settings.CACHE_DIR, directory or ""
        try:
            function = cfunc(types.int64(*signature), cache=directory is not None, error_model="numpy")(call.py_func)
        finally:
            settings.CACHE_DIR = before
    return function, int(function.address or 0), directory is not None and not caught
