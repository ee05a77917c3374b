"""When the tasks of a workflow begin and end on a machine without limits."""

from __future__ import annotations

from collections.abc import Sequence

from .tasks import Task


def earliest(tasks: Sequence[Task]) -> list[tuple[float, float]]:
    """Start and end of each, seconds: a task begins when all before it have ended. O(tasks + dependencies).

    Args:
        tasks: of a sound graph; who has no run time takes none.
    """
    place = {task.id: row for row, task in enumerate(tasks)}
    waits = [len(set(task.after)) for task in tasks]
    followers: list[list[int]] = [[] for _ in tasks]
    for row, task in enumerate(tasks):
        for before in set(task.after):
            followers[place[before]].append(row)
    found, ready = [(0.0, 0.0)] * len(tasks), [row for row, count in enumerate(waits) if not count]
    for row in ready:
        task = tasks[row]
        start = max((found[place[before]][1] for before in task.after), default=0.0)
        lasts = task.time or 0.0
        found[row] = start, start + (lasts if task.walltime is None else min(lasts, task.walltime))
        for follower in followers[row]:
            waits[follower] -= 1
            if not waits[follower]:
                ready.append(follower)
    return found
