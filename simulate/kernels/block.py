"""Handing tables to kernels as one address.

Rule: a `Block` is a set of named arrays that compiled code reaches through a small header of (address, rows,
columns); it costs a kernel call one integer where a tuple of arrays would cost seven values an array, in every
call and in every compilation. The Python object keeps the memory alive; kernels never own or free it.
What numba must know of a block is in `compile`; this module needs NumPy alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # compiled code has one type of whole numbers
    int64 = int
else:
    int64 = np.int64


class Block:
    """Named arrays with a header that compiled code can read.

    Subclasses name their tables in `layout`: name -> (dtype, dimensions); 0 dimensions: one row, of
    the state. `fixed` tables are kept as they are and shared by copies; `copied` tables are kept as they are, too, and
    copied one by one; the others live in one zeroed buffer of the given shapes, so that their copy is one memory copy.
    Attributes of that name are views, made when first asked for.
    """

    layout: ClassVar[dict[str, tuple[np.dtype[Any], int]]] = {}
    numba_type: Any = None

    def __init__(
        self,
        fixed: dict[str, npt.NDArray[Any]],
        shapes: dict[str, tuple[int, ...]],
        copied: dict[str, npt.NDArray[Any]] | None = None,
    ) -> None:
        tables = fixed | (copied or {})
        rows = {name: () for name, (_, dims) in self.layout.items() if dims == 0 and name not in tables}
        self.fixed, self.copied, self.shapes = fixed, copied or {}, shapes | rows
        self._offsets: dict[str, int] = {}
        size = 0
        for name, shape in self.shapes.items():
            self._offsets[name] = size
            size += (math.prod(shape) * self.layout[name][0].itemsize + 63) & ~63
        self.buffer = np.zeros(size, np.uint8)
        base = _address(self.buffer)
        words: list[int] = []
        for name, (dtype, dims) in self.layout.items():
            if name in self.shapes:
                words += (base + self._offsets[name], *self.shapes[name], 1, 1)[:3]
                continue
            table = tables[name]
            if table.dtype != dtype or table.ndim != dims or not table.flags.c_contiguous:
                raise TypeError(f"table {name}: {table.dtype}, {table.ndim} dimensions; wanted {dtype}, {dims}")
            setattr(self, name, table)
            words += (_address(table), *table.shape, 1, 1)[:3]
        self.header = np.array(words, np.int64)
        self.address = _address(self.header)

    def __getattr__(self, name: str) -> Any:  # an array, whose rows have attributes in kernels
        offset = self.__dict__.get("_offsets", {}).get(name)
        if offset is None:
            raise AttributeError(name)
        view: npt.NDArray[Any] = np.ndarray(self.shapes[name], self.layout[name][0], self.buffer, offset)
        setattr(self, name, view)
        return view

    def copy(self) -> Self:
        """The same fixed tables, an own copy of the others: one memory copy, and one for each table of `copied`."""
        twin = type(self)(self.fixed, self.shapes, {name: table.copy() for name, table in self.copied.items()})
        np.copyto(twin.buffer, self.buffer)
        return twin


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.ctypes.data)  # `__array_interface__` takes 30 times as long: it describes all fields of a row
