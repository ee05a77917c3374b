"""Handing tables to kernels as one address.

Rule: a `Block` is a set of named arrays that compiled code reaches through a small header of (address, rows,
columns); it costs a kernel call one integer where a tuple of arrays would cost seven values an array, in every
call and in every compilation. The Python object keeps the memory alive; kernels never own or free it.
"""

from __future__ import annotations

from typing import Any, Self

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
    """Named arrays with a header that compiled code can read.

    Subclasses name their tables in `layout`: name -> (dtype, dimensions). `fixed` tables are kept as they are and
    shared by copies; the others live in one zeroed buffer of the given shapes, so that a copy of the state is one
    memory copy. Attributes of that name are views, made when first asked for.
    """

    layout: dict[str, tuple[np.dtype[Any], int]] = {}
    numba_type: Any = None

    def __init__(self, fixed: dict[str, npt.NDArray[Any]], shapes: dict[str, tuple[int, ...]]) -> None:
        self._fixed, self._shapes = fixed, shapes
        self._offsets: dict[str, int] = {}
        size = 0
        for name, shape in shapes.items():
            self._offsets[name] = size
            count = shape[0] if len(shape) == 1 else shape[0] * shape[1]
            size += (count * self.layout[name][0].itemsize + 63) & ~63
        self.buffer = np.zeros(size, np.uint8)
        base = _address(self.buffer)
        words: list[int] = []
        for name, (dtype, dims) in self.layout.items():
            shape = shapes.get(name)
            if shape is None:
                table = fixed[name]
                if table.dtype != dtype or table.ndim != dims or not table.flags.c_contiguous:
                    raise TypeError(f"table {name}: {table.dtype}, {table.ndim} dimensions; wanted {dtype}, {dims}")
                setattr(self, name, table)
                words += (_address(table), *table.shape) if dims == 2 else (_address(table), len(table), 1)
            else:
                words += (base + self._offsets[name], *shape) if dims == 2 else (base + self._offsets[name], shape[0], 1)
        self.header = np.array(words, np.int64)
        self.address = _address(self.header)

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        offset = self.__dict__.get("_offsets", {}).get(name)
        if offset is None:
            raise AttributeError(name)
        view: npt.NDArray[Any] = np.ndarray(self._shapes[name], self.layout[name][0], self.buffer, offset)
        setattr(self, name, view)
        return view

    def copy(self) -> Self:
        """The same fixed tables, an own copy of the others: one memory copy."""
        twin = type(self)(self._fixed, self._shapes)
        np.copyto(twin.buffer, self.buffer)
        return twin


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


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
