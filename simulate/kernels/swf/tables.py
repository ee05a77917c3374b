"""The text of a Standard Workload Format file, and the table that it is read into (NumPy alone)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..block import Block
from ..layout import FLOAT, INT

FIELDS = 18
#: Most digits of which a whole number is exact, and most decimals by which it may then be divided.
DIGITS, DECIMALS = 15, 22
# Cells of `count`: bytes read, lines read, rows found; lines that are no job, the first of them, and how many fields
# it has (-1: something else than a number is in it).
AT, LINE, ROWS, INVALID, FIRST_INVALID, FOUND, CELLS = range(7)


class Text(Block):
    """A file's bytes, with a newline at the end, and a row for each of its lines at most."""

    layout: ClassVar = {
        "text": (np.dtype("u1"), 1),
        "values": (FLOAT, 2),  # [rows, FIELDS]
        "lines": (INT, 1),  # [rows]: number of the line, from 1
        "unread": (INT, 1),  # [rows]: where a line begins that takes more than this kernel to read exactly, else -1
        "powers": (FLOAT, 1),  # 10 ** i
        "count": (INT, 1),
    }
