"""Where the names of jobs are written into a chart.

Rule: a name is written once, into its job's largest rectangle, where that has room for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..render.text import width
from .panels import Panel, Rectangles

#: Most names in a chart.
MOST = 400
#: Pixels of a cell of a name, at the size in which it is written.
_WIDE, _HIGH = 11.0, 19.0


def places(panel: Panel, bars: Rectangles, wide: int, high: int) -> Iterator[tuple[float, float, str]]:
    """x in the panel's unit, y, and the name, on axes of so many pixels."""
    assert panel.unit is not None and panel.y is not None and panel.y[1] is not None
    begin, end = panel.x
    left, right = np.clip(bars.left, begin, end), np.clip(bars.right, begin, end)
    long, tall = (right - left) * wide / (end - begin), (bars.high - bars.low) * high / panel.y[1]
    written: set[int] = set()
    for i in np.argsort(-long * tall, kind="stable").tolist():
        job = int(bars.job[i])
        fits = tall[i] > _HIGH and long[i] > _WIDE * (width(bars.name[job]) + 1)
        if fits and job not in written and len(written) < MOST:
            written.add(job)
            yield (left[i] + right[i]) / 2 / panel.unit.size, (bars.low[i] + bars.high[i]) / 2, bars.name[job]
