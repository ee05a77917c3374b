"""The text of a table divided by bars, and the different texts of one of its columns (needs NumPy only)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..block import Block
from ..mapping.layout import INT, NARROW, row_dtype

BYTE = np.dtype("u1")
#: What `call` does with a column: give its texts numbers, read it as times, or as ids of jobs; or with larger `slots`.
TEXTS, TIMES, IDS, SLOTS = range(4)
#: Longest id of a job or of an array, and longest index of a task, digits.
ID_DIGITS, TASK_DIGITS = 12, 9


class RecordLines(Block):
    """Some records of a table, and what was read of one column.

    The field of column c of record r is `text[cuts[first[r] + c] + 1 : cuts[first[r] + c + 1]]`.
    """

    layout: ClassVar = {
        "text": (BYTE, 1),
        "cuts": (INT, 1),
        "first": (INT, 1),  # [records]
        "code": (NARROW, 1),  # [records]: number of the text, of an hour or of another time, or index of a task
        "number": (INT, 1),  # [records]: seconds of a time after its hour, or id of a job; -1: none
    }


class Texts(Block):
    """Different texts in the order in which they came; text i is `bytes[ends[i] : ends[i + 1]]`."""

    layout: ClassVar = {
        "slots": (NARROW, 1),  # [a power of two]: 1 + number of a text, 0 for none
        "hashes": (NARROW, 1),  # [texts]
        "ends": (INT, 1),  # [texts + 1]
        "bytes": (BYTE, 1),
        "is_odd": (BYTE, 1),  # [texts]: 1: it has a byte that is no ASCII, or a blank or a control code at its ends
        "count": (row_dtype("", "texts seed"), 0),
    }
