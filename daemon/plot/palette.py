"""Colours, which people who see fewer of them can tell apart.

Rule: the same job has the same colour in every picture: it goes by a hash of the job's name that no run of Python
changes. Colours of jobs are about equally light, so that paler means idle and nothing else.
Source: P. Tol, "Colour Schemes" (SRON/EPS/TN/09-002, 2021): bright, muted, light.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

#: Of jobs.
FILLS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33")
#: Of runs that are compared.
LINES = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
#: Where there are more.
MORE_LINES = ("#cc6677", "#332288", "#ddcc77", "#117733", "#88ccee", "#882255", "#44aa99", "#999933", "#aa4499")
#: Of a machine's states, as `simulate.series.run.STATES`.
STATES = ("#dddddd", "#ee8866", "#ffaabb", "#eedd88", "#77aadd")
INK, QUIET, GRID, MARK, SIZE = "#1f2a37", "#5b6878", "#dfe5eb", "#1f2a37", "#aa3377"


def fill_of(names: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Which of FILLS each job has."""
    sums = (zlib.crc32(str(name).encode(errors="surrogateescape")) for name in names)
    return np.fromiter(sums, np.int64, len(names)) % len(FILLS)


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green, blue in 0..255 of #rrggbb."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
