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
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox
from numba.np.arrayobj import populate_array


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


def register(python_type: type[Block], kind: type[BlockType]) -> None:
    """Make a subclass of Block usable as a kernel argument, its tables as attributes.

    `kind` is a class of its own at module level: numba's disk cache must find it again by name.
    """
    python_type.numba_type = kind()
    register_model(kind)(_BlockModel)
    unbox(kind)(_unbox)
    typeof_impl.register(python_type)(lambda value, context: python_type.numba_type)
    arrays = {
        name: (3 * slot, types.Array(from_dtype(dtype), dims, "C"))
        for slot, (name, (dtype, dims)) in enumerate(python_type.layout.items())
    }

    class Attributes(AttributeTemplate):
        key = kind

        def generic_resolve(self, block: Any, name: str) -> Any:
            return arrays[name][1] if name in arrays else None

    infer_getattr(Attributes)

    @lower_getattr_generic(kind)
    def lower(context: Any, builder: Any, block: Any, value: Any, name: str) -> Any:
        return _array(context, builder, value, *arrays[name])


def _array(context: Any, builder: Any, header: Any, slot: int, kind: types.Array) -> Any:
    """Compiled code that makes an array of the header's words from `slot` on; nobody owns it."""
    word = ir.IntType(64)
    base = builder.inttoptr(header, word.as_pointer())
    data, *shape = (
        builder.load(builder.gep(base, [ir.Constant(word, slot + i)])) for i in range(1 + kind.ndim)
    )
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides = [ir.Constant(word, size)]
    if kind.ndim == 2:
        strides.insert(0, builder.mul(shape[1], strides[0]))
    array = context.make_array(kind)(context, builder)
    pointer = builder.inttoptr(data, context.get_data_type(kind.dtype).as_pointer())
    populate_array(array, data=pointer, shape=shape, strides=strides, itemsize=ir.Constant(word, size), meminfo=None)
    return array._getvalue()
