"""The starts of a replay as columns.

Rule: `SiteStarts` is a sequence of the `SiteStart` values that a tuple would hold; outcomes are made of its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from ..arrays import Array
from ..kernels.slurm.tables import BY_MAIN
from .job_columns import Coded, offsets, spans, times_of
from .site import Site


@dataclass(frozen=True, slots=True)
class SiteStart:
    """A start of a job. `job`: its row in `Site.jobs`; `by`: main or backfill; `end` is None while it runs."""

    job: int
    partition: str
    start: float
    end: float | None
    nodes: tuple[str, ...]
    by: str
    priority: int


@dataclass(frozen=True, slots=True, eq=False)
class SiteStarts(Sequence[SiteStart]):
    """Starts as columns; `end` is NaN while a job runs. The nodes of start `i` are `nodes[begin[i] : begin[i + 1]]`.

    `nodes` are rows of `Site.nodes`, whose names are `node_names`. `cpus` are those of each start; None: as the site's
    rules give them.
    """

    node_names: Sequence[str]
    job: Array
    partition: Coded[str]
    start: Array
    end: Array
    begin: Array
    nodes: Array
    by: Coded[str]
    priority: Array
    cpus: Array | None = None

    @classmethod
    def of(cls, site: Site, starts: Sequence[SiteStart]) -> SiteStarts:
        """Return the columns of starts, which are themselves if they are columns. O(starts + nodes of all)."""
        if isinstance(starts, SiteStarts):
            return starts
        names = [node.name for node in site.nodes]
        rows = {name: row for row, name in enumerate(names)}
        return cls(
            node_names=names,
            job=np.array([one.job for one in starts], np.int64),
            partition=Coded.of(one.partition for one in starts),
            start=np.array([one.start for one in starts], np.float64),
            end=times_of(one.end for one in starts),
            begin=np.cumsum([0, *(len(one.nodes) for one in starts)]),
            nodes=np.array([rows[name] for one in starts for name in one.nodes], np.int64),
            by=Coded.of(one.by for one in starts),
            priority=np.array([one.priority for one in starts], np.int64),
        )

    @classmethod
    def of_state(cls, site: Site, block: Any, first: int = 0) -> SiteStarts:
        """Return the starts of a state.

        Args:
            site: the site, completed.
            block: the block `Slurm`.
            first: row of its table from which on.
        """
        rows = block.starts[first : int(block.count["starts"])]
        nodes = block.pieces["node"][spans(rows["piece0"], rows["pieces"])]
        order = np.lexsort((nodes, np.repeat(np.arange(len(rows)), rows["pieces"])))
        return cls(
            node_names=[node.name for node in site.nodes],
            job=rows["job"].copy(),
            partition=Coded([partition.name for partition in site.partitions], rows["part"].copy()),
            start=rows["start"].astype(np.float64),
            end=np.where(rows["end"] < 0, np.nan, rows["end"]),
            begin=offsets(rows["pieces"]),
            nodes=nodes[order],
            by=Coded(("main", "backfill"), (rows["by"] != BY_MAIN).astype(np.int8)),
            priority=rows["priority"].astype(np.int64),
        )

    def sums(self, values: Array) -> Array:
        """Return the sum of a value over the nodes of each start; the value of each node of the site is given."""
        total = np.cumsum(np.concatenate([np.zeros(1, values.dtype), values[self.nodes]]))
        sums: Array = total[self.begin[1:]] - total[self.begin[:-1]]
        return sums

    def node_names_of(self, row: int) -> tuple[str, ...]:
        """Return the names of the nodes of a start."""
        return tuple(self.node_names[node] for node in self.nodes[self.begin[row] : self.begin[row + 1]].tolist())

    def __len__(self) -> int:
        return len(self.job)

    @overload
    def __getitem__(self, row: int) -> SiteStart: ...
    @overload
    def __getitem__(self, row: slice) -> tuple[SiteStart, ...]: ...
    def __getitem__(self, row: int | slice) -> SiteStart | tuple[SiteStart, ...]:
        places = range(len(self))[row]
        return self._row(places) if isinstance(places, int) else tuple(map(self._row, places))

    def __iter__(self) -> Iterator[SiteStart]:
        return map(self._row, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (SiteStarts, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash((len(self), *self.job[:100].tolist()))

    def _row(self, row: int) -> SiteStart:
        end = float(self.end[row])
        return SiteStart(
            int(self.job[row]), self.partition[row], float(self.start[row]), None if end != end else end,
            self.node_names_of(row), self.by[row], int(self.priority[row]),
        )  # fmt: skip
