"""The type of the columns and tables of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # most commands need no numbers, and start without numpy
    import numpy.typing as npt

    Array = npt.NDArray[Any]
else:
    Array = Any
#: A row of a structured array, in compiled kernels: its fields are attributes.
Row = Any
