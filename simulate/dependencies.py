"""Which jobs of a workload wait for which others.

Rule: pairs of rows, no cycle among them; a pair of which one job is not there is no pair any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Job `after[k]` is submitted once job `before[k]` has ended well: by itself, and with success.

    Args:
        before, after: rows of the workload, int64.
    """

    before: Array
    after: Array

    def __len__(self) -> int:
        return len(self.before)

    def take(self, rows: Array, jobs: int) -> tuple[Dependencies, int]:
        """Those among these rows (a mask, or their numbers) of so many jobs, numbered anew; and how many of the jobs'
        that stay wait for one that does not. O(jobs + dependencies)."""
        kept = np.flatnonzero(rows) if rows.dtype == bool else rows
        place = np.full(jobs, -1, np.int64)
        place[kept] = np.arange(len(kept))
        before, after = place[self.before], place[self.after]
        both = (before >= 0) & (after >= 0)
        return Dependencies(before[both], after[both]), int(((after >= 0) & (before < 0)).sum())


def side_by_side(parts: Sequence[tuple[Dependencies | None, int]]) -> Dependencies | None:
    """Those of several workloads of so many jobs each, put one behind the other; None: there are none."""
    first = np.cumsum([0, *(jobs for _, jobs in parts)])
    given = [(each, shift) for (each, _), shift in zip(parts, first.tolist(), strict=False) if each is not None]
    if not given:
        return None
    columns = ([each.before + shift for each, shift in given], [each.after + shift for each, shift in given])
    return Dependencies(*map(np.concatenate, columns))
