"""Kernels as plain Python over the same tables, so that a debugger can step through them.

Rule: `NUMBA_DISABLE_JIT=1` chooses this, as in any program that uses numba. The results are those of the compiled
kernels; it takes thousands of times as long.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array
from .block import Block


class Row(np.record):  # type: ignore[misc]
    """A row of a table, whose fields are attributes, also those that NumPy has names of its own for, such as `size`."""

    def __getattribute__(self, name: str) -> Any:
        fields = np.void.__getattribute__(self, "dtype").fields
        return np.void.__getitem__(self, name) if name in fields else super().__getattribute__(name)


class Tables:
    """The tables of a block, as attributes.

    Args:
        kind: the class of the block.
        address: of its header.
    """

    def __init__(self, kind: type[Block], address: int) -> None:
        self.numba_type = kind.numba_type
        words = _at(address, np.dtype(np.int64), (3 * len(kind.layout),)).tolist()
        for slot, (name, (dtype, dimensions)) in enumerate(kind.layout.items()):
            first, *shape = words[3 * slot : 3 * slot + 1 + dimensions]
            rows: Any = _at(first, np.dtype((Row, dtype)) if dtype.fields else dtype, tuple(shape))
            if dtype == np.uint8:
                rows = memoryview(rows)  # its cells are integers that cannot overflow
            setattr(self, name, rows if dimensions else rows[()])


def _at(address: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Return an array of this memory; what owns it outlives the call of a kernel."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(address)
    if not size:
        return np.zeros(shape, dtype)
    array: Array = np.frombuffer(memoryview(memory), np.uint8).view(dtype).reshape(shape)
    return array


def interpreted(call: Callable[..., Any], signature: tuple[Any, ...]) -> Callable[..., int]:
    """Return a kernel's `call` that takes blocks as addresses.

    Args:
        call: the function in Python.
        signature: numba's types of its arguments.
    """
    blocks = {kind.numba_type: kind for kind in _subclasses(Block) if kind.numba_type is not None}

    def run(*arguments: Any) -> int:
        values = [
            Tables(blocks[kind], value) if kind in blocks else value
            for kind, value in zip(signature, arguments, strict=True)
        ]
        with np.errstate(all="ignore"):  # as in compiled code
            return int(call(*values))

    return run


def _subclasses(kind: type[Block]) -> list[type[Block]]:
    return [subclass for child in kind.__subclasses__() for subclass in (child, *_subclasses(child))]


# --- what the compiler has as one machine instruction ---
def trailing_zeros(bits: Any) -> int:
    """Return the number of zero bits below the lowest one; 64 if all are zero."""
    return (int(bits) & -int(bits)).bit_length() - 1 if bits else 64


def leading_zeros(bits: Any) -> int:
    """Return the number of zero bits above the highest one, of 64."""
    return 64 - int(bits).bit_length()


def compare_64(column: Array, first: int, bound: int) -> np.uint64:
    """Return one bit for each of 64 cells: 1 if the cell is at least `bound`.

    Args:
        column: one-dimensional array of 32-bit integers.
        first: the first of the cells.
        bound: an integer of at most 32 bits.
    """
    bits = np.packbits(column[first : first + 64] >= bound, bitorder="little")
    return np.uint64(bits.view(np.uint64)[0])
