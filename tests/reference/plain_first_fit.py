"""Reference of the daemon on one node under a policy without foresight, in plain Python, by definition.

Rule: at each instant all ends, then all submissions; then each waiting job, in the order of submission, starts if the
node has cores for it. A job ends when its run time or its walltime is over.
"""

from __future__ import annotations

import math


def first_fit(jobs: list[tuple[float, float, float, int]], cores: int) -> list[tuple[float, float]]:
    """Return start and finish of each job, nan for one that never fits.

    Args:
        jobs: (submission, run time, walltime, cores), by submission.
        cores: of the node.
    """
    found = [(math.nan, math.nan)] * len(jobs)
    waiting, ends, coming, now = list[int](), dict[int, float](), list(range(len(jobs))), 0.0
    while coming or ends:
        now = min([jobs[i][0] for i in coming[:1]] + list(ends.values()))
        ends = {i: end for i, end in ends.items() if end > now}
        while coming and jobs[coming[0]][0] <= now:
            waiting.append(coming.pop(0))
        for i in list(waiting):
            if jobs[i][3] <= cores - sum(jobs[k][3] for k in ends):
                waiting.remove(i)
                ends[i] = now + min(jobs[i][1], jobs[i][2])
                found[i] = (now, ends[i])
    return found
