"""Handing tables to kernels as one address.

Rule: a `Block` is a set of named arrays that compiled code reaches through a small header of (address, rows,
columns); it costs a kernel call one integer where a tuple of arrays would cost seven values an array, in every
call and in every compilation. The Python object keeps the memory alive; kernels never own or free it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import (
    NativeValue,
    intrinsic,
    models,
    overload_attribute,
    register_model,
    typeof_impl,
    unbox,
)


class Block:
    """Named arrays with a header that compiled code can read; subclasses name their tables in `layout`.

    `layout`: name -> (dtype, dimensions); `mutable`: names kept in one buffer, so that a copy of the state is one
    memory copy.
    """

    layout: dict[str, tuple[Any, int]] = {}
    mutable: tuple[str, ...] = ()
    numba_type: Any = None

    def __init__(self, tables: dict[str, npt.NDArray[Any]]) -> None:
        size = sum(_padded(tables[name].nbytes) for name in self.mutable)
        self.buffer = np.empty(size, np.uint8)
        self.header = np.zeros(3 * len(self.layout), np.int64)
        at = 0
        for slot, (name, (dtype, dims)) in enumerate(self.layout.items()):
            table = tables[name]
            if table.dtype != dtype or table.ndim != dims or not table.flags.c_contiguous:
                raise TypeError(f"table {name}: {table.dtype}, {table.ndim} dimensions; wanted {dtype}, {dims}")
            if name in self.mutable:
                view = self.buffer[at : at + table.nbytes].view(dtype).reshape(table.shape)
                view[...] = table
                at += _padded(table.nbytes)
                table = view
            setattr(self, name, table)
            shape = (*table.shape, 1)
            self.header[3 * slot : 3 * slot + 3] = table.ctypes.data, shape[0], shape[1]
        self.address = self.header.ctypes.data

    def tables(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name."""
        return {name: getattr(self, name) for name in self.layout}

    def copy(self) -> Block:
        """The same static arrays, an own copy of the mutable ones."""
        return type(self)(self.tables())

    def restore(self, other: Block) -> None:
        """Take over the mutable state of a block of the same shape: one memory copy."""
        np.copyto(self.buffer, other.buffer)


def _padded(size: int) -> int:
    return (size + 63) // 64 * 64


class BlockType(types.Type):
    """Numba's view of one subclass of Block."""

    def __init__(self) -> None:
        super().__init__(name=type(self).__name__)


@register_model(BlockType)
class _BlockModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: BlockType) -> None:
        super().__init__(manager, fe_type, ir.IntType(64))


@unbox(BlockType)
def _unbox(typ: Any, obj: Any, c: Any) -> NativeValue:
    number = c.pyapi.object_getattr_string(obj, "address")
    value = c.pyapi.long_as_longlong(number)
    c.pyapi.decref(number)
    return NativeValue(value, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


@intrinsic
def _word(typingctx: Any, block: Any, slot: Any) -> Any:
    """Header word `slot`: an int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(base, [args[1]]))

    return types.int64(block, types.int64), generate


@intrinsic
def _pointer(typingctx: Any, address: Any) -> Any:
    """An address as a pointer that `carray` takes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


def register(python_type: type[Block], kind: type[BlockType]) -> None:
    """Make a subclass of Block usable as a kernel argument, its tables as attributes.

    `kind` is a class of its own at module level: numba's disk cache must find it again by name.
    """
    numba_type = kind()
    register_model(kind)(_BlockModel)
    unbox(kind)(_unbox)
    typeof_impl.register(python_type)(lambda value, context: numba_type)
    python_type.numba_type = numba_type
    for slot, (name, (dtype, dims)) in enumerate(python_type.layout.items()):
        _attribute(kind, name, slot, dtype, dims)


def _attribute(kind: type[BlockType], name: str, slot: int, dtype: Any, dims: int) -> None:
    where, element = 3 * slot, np.dtype(dtype)
    rows, columns = where + 1, where + 2
    jit_options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    if dims == 1:

        @overload_attribute(kind, name, jit_options=jit_options, inline="never")
        def table(block: Any) -> Any:
            def get(block: Any) -> Any:
                return carray(_pointer(_word(block, where)), _word(block, rows), element)

            return get

    else:

        @overload_attribute(kind, name, jit_options=jit_options, inline="never")
        def matrix(block: Any) -> Any:
            def get(block: Any) -> Any:
                return carray(_pointer(_word(block, where)), (_word(block, rows), _word(block, columns)), element)

            return get
