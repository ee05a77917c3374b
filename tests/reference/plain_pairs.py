"""Reference of environment A in plain Python, by definition: everything is computed again at each decision."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

MOST, LEAST = 1.0 - 1e-5, 1e-5
#: (submission, run time on the slowest node, requested time, size)
Job = tuple[float, float, float, int]


class PlainPairs:
    """One episode.

    Args:
        jobs: in the order of submission; all of them are the episode.
        nodes: (processors, speed).
        due: "any", "largest", "first", "shortest" or "smallest".
        objective: "bsld", "sld" or "wait".
        rows: visible jobs.
        warm: jobs that do not count.
    """

    def __init__(
        self, jobs: Sequence[Job], nodes: Sequence[tuple[int, float]], due: str = "any", objective: str = "bsld",
        rows: int = 128, warm: int = 0,
    ) -> None:  # fmt: skip
        self.jobs, self.nodes, self.due, self.objective = jobs, nodes, due, objective
        self.rows, self.warm = rows, warm
        self.time, self.start, self.node = jobs[0][0], dict[int, float](), dict[int, int]()
        self.head: int | None = None
        self.forward()

    @property
    def queue(self) -> list[int]:
        return [i for i, job in enumerate(self.jobs) if job[0] <= self.time and i not in self.start]

    @property
    def visible(self) -> list[int]:
        return self.queue[: self.rows] if self.head is None else [self.head]

    @property
    def over(self) -> bool:
        return len(self.start) == len(self.jobs)

    def run_time(self, i: int, node: int) -> float:
        return math.floor(self.jobs[i][1] * min(speed for _, speed in self.nodes) / self.nodes[node][1])

    def end(self, i: int) -> float:
        return self.start[i] + self.run_time(i, self.node[i])

    def free(self) -> list[int]:
        free = [processors for processors, _ in self.nodes]
        for i, node in self.node.items():
            if self.end(i) > self.time:
                free[node] -= self.jobs[i][3]
        return free

    def is_due(self) -> bool:
        waiting, room = self.queue, max(self.free())
        if self.due == "any":
            return any(self.jobs[i][3] <= room for i in waiting[: self.rows])
        if self.due == "largest":
            return max(self.jobs[i][3] for i in waiting) <= room
        if self.head is None:
            column = {"first": 0, "shortest": 2, "smallest": 3}[self.due]
            self.head = min(waiting, key=lambda i: (0 if self.due == "first" else self.jobs[i][column], i))
        return self.jobs[self.head][3] <= room

    def forward(self) -> None:
        while not self.over and (not self.queue or not self.is_due()):
            coming = [job[0] for job in self.jobs if job[0] > self.time]
            if self.queue:
                coming += [self.end(i) for i in self.start if self.end(i) > self.time]
            self.time = min(coming)

    def mask(self) -> list[bool]:
        free = self.free()
        cells = [self.jobs[i][3] <= room for i in self.visible for room in free] if not self.over else []
        return cells + [False] * (self.rows * len(self.nodes) - len(cells))

    def step(self, action: int) -> float:
        """Start a job; return the reward."""
        i, node = self.visible[action // len(self.nodes)], action % len(self.nodes)
        assert self.mask()[action]
        self.start[i], self.node[i], self.head = self.time, node, None
        submit, _, limit, _ = self.jobs[i]
        wait, run = self.time - submit, self.run_time(i, node)
        cost = {
            "bsld": max(1.0, (wait + run) / max(limit, 10.0)), "sld": (wait + run) / limit, "wait": wait,
        }[self.objective]  # fmt: skip
        self.forward()
        return -cost / (len(self.jobs) - self.warm) if i >= self.warm else 0.0

    def seen_jobs(self, scale: float) -> np.ndarray:
        """Return the jobs as a policy sees them, with requested times on a linear scale."""
        table = np.tile(np.array([0.0, 1.0, 1.0, 0.0]), (self.rows, 1))
        largest, room = max(processors for processors, _ in self.nodes), max(self.free())
        for row, i in enumerate([] if self.over else self.visible):
            submit, _, limit, size = self.jobs[i]
            values = (self.time - submit) / 43_200.0, limit / scale, size / largest, MOST if size <= room else LEAST
            table[row] = np.minimum(values, MOST)
        return table

    def seen_nodes(self) -> np.ndarray:
        largest, fastest = (max(column) for column in zip(*self.nodes, strict=True))
        rows = [
            (processors / largest, free / processors, speed / fastest)
            for (processors, speed), free in zip(self.nodes, self.free(), strict=True)
        ]
        return np.minimum(rows, MOST)
