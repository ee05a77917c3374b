"""The text of a Standard Workload Format file, and the table of its values (needs NumPy only)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..block import Block
from ..mapping.layout import FLOAT, INT, row_dtype

FIELDS = 18
#: Most digits of an exact integer, and most decimals by which it may then be divided.
DIGITS, DECIMALS = 15, 22
#: Bytes read, lines read, rows found; number of invalid lines, the first of them, and its number of fields (-1: it
#: contains something other than numbers).
COUNT = row_dtype("", "at line rows invalid first_invalid found")


class Text(Block):
    """A file's bytes with a newline at the end, and at most one row per line."""

    layout: ClassVar = {
        "text": (np.dtype("u1"), 1),
        "values": (FLOAT, 2),  # [rows, FIELDS]
        "lines": (INT, 1),  # [rows]: number of the line, from 1
        "unread": (INT, 1),  # [rows]: offset of a line that this kernel cannot read exactly, else -1
        "powers": (FLOAT, 1),  # 10 ** i
        "count": (COUNT, 0),
    }
