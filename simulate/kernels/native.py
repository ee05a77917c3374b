"""What numba must know to compile for blocks: their types, and their tables as attributes.

Rule: only compiling imports this module; running compiled kernels does not need numba.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, models, register_model, typeof_impl, unbox
from numba.np.arrayobj import populate_array

from .block import Block
from .layout import Scratch, World


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
    data, *shape = (builder.load(builder.gep(base, [ir.Constant(word, slot + i)])) for i in range(1 + kind.ndim))
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides = [ir.Constant(word, size)]
    if kind.ndim == 2:
        strides.insert(0, builder.mul(shape[1], strides[0]))
    array = context.make_array(kind)(context, builder)
    pointer = builder.inttoptr(data, context.get_data_type(kind.dtype).as_pointer())
    populate_array(array, data=pointer, shape=shape, strides=strides, itemsize=ir.Constant(word, size), meminfo=None)
    return array._getvalue()


class WorldType(BlockType):
    """Numba's type of World."""


class ScratchType(BlockType):
    """Numba's type of Scratch."""


register(World, WorldType)
register(Scratch, ScratchType)
