"""Colours that people with a colour vision deficiency can distinguish, and that differ in grey.

Rule: the colour of a job depends on its name only, so a job has the same colour in every picture. The colours of jobs
are equally light, so that a paler cell means idle resources and nothing else.
Sources: M. Okabe, K. Ito, "Color Universal Design" (2008); cividis: J. Nunez, C. Anderton, R. Renslow (2018).
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

#: Colours of series (Okabe-Ito), the most different in grey first. Their dashes differ as well.
SERIES = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000", "#8c8c8c", "#b5a800")
#: Tints of Okabe-Ito colours with a relative luminance of 0.45, for jobs.
JOBS = ("#69bceb", "#e8a714", "#63c4aa", "#dca2c2", "#c0b635", "#e7a570")
#: Colours of machine states, in the order of `simulate.results.recorded_run.STATES`.
STATES = ("#dddddd", "#d55e00", "#cc79a7", "#f0e442", "#0072b2")
INK, QUIET, GRID, STRIPE, LIMIT = "#1b2430", "#56616e", "#dde3e9", "#f2f5f8", "#d55e00"
#: Lengths of dashes and gaps in line widths, by the number of a series; () = solid.
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.5), (1.5, 1.2), (6, 1.5, 1.5, 1.5))

#: The scale of heat: cividis reversed, light = low, dark = high.
HEAT = (
    "#fee838", "#f6e040", "#edd849", "#e5d051", "#ddc859", "#d4c15e", "#cbba63", "#c3b368", "#baac6d", "#b1a66f",
    "#a99f72", "#a09874", "#989276", "#908b77", "#898577", "#817f78", "#797977", "#727375", "#6b6d72", "#646770",
    "#5c616f", "#545b6e", "#4d556d", "#454f6c", "#3b4a6d", "#30446d", "#263e6e", "#1b396f", "#143368", "#0d2d5f",
    "#072857", "#00224e",
)  # fmt: skip
LEVELS = len(HEAT)


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue in 0..255 of #rrggbb."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def ink_on(colour: str) -> str:
    """Return `black` or `white`, whichever is easier to read on a colour."""
    red, green, blue = rgb(colour)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 128 else "white"


def job_colours(names: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the index into JOBS of the colour of each job."""
    sums = (zlib.crc32(str(name).encode(errors="surrogateescape")) for name in names)
    return np.fromiter(sums, np.int64, len(names)) % len(JOBS)


def series_style(number: int) -> tuple[str, int]:
    """Return the colour and the index into DASHES of a series."""
    return SERIES[number % len(SERIES)], number % len(DASHES)
