"""The setting of the thesis whose results environment A reproduces: its machine, its jobs, its test windows.

Rule: requested times are run times, sizes are capped, and jobs of run time 0 are left out. Training and test windows
are of one trace and overlap: that is the thesis's protocol, and proves nothing about other jobs.
Source: A. Fomperosa, "Reinforcement learning for job scheduling in heterogeneous clusters" (2021), chapter 5, and the
authors' files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...simulate.model.workload import Workload
from .pairs import PairEnvironment, PairNode, PairOptions

#: One node of each size and speed (GHz), sizes outer.
NODES = tuple(PairNode(processors, speed) for processors in (4, 8, 16, 32, 64) for speed in (2.0, 2.5, 3.0, 3.5))
#: Processors of a job at most.
LARGEST = 64
#: First jobs of the published test windows, and the jobs of each.
WINDOWS = (
    6562, 4830, 2732, 7485, 4015, 8363, 6562, 4835, 3039, 4849,
    8655, 7032, 3402, 8960, 6282, 2768, 6835, 6607, 5118, 4137,
)  # fmt: skip
WINDOW_JOBS = 1024
#: Longest run time of the published trace, seconds.
LONGEST_S = 124_707.0


def jobs_of(trace: Workload) -> Workload:
    """Return the jobs of a trace as the thesis uses them: one node each, requested times that are run times."""
    jobs = trace.take(trace.run_time > 0.0)
    return replace(jobs, size=np.minimum(jobs.size, LARGEST), walltime=jobs.run_time, dependencies=None)


def options(objective: str, due: str = "largest", episode: int = WINDOW_JOBS) -> PairOptions:
    """Return the options of the thesis.

    Args:
        objective: as of PairOptions.
        due: as of PairOptions; "largest" is the rule of the authors' code, "any" that of their text.
        episode: jobs of an episode.
    """
    return PairOptions(objective, due, episode, longest=LONGEST_S, logarithmic=False)


def windows(trace: Workload, objective: str, due: str, starts: Sequence[int] = WINDOWS) -> PairEnvironment:
    """Return the environment at the beginning of the test windows, one copy each. Raises ConfigError."""
    world = PairEnvironment([jobs_of(trace)], NODES, options(objective, due), copies=len(starts))
    world.reset(starts)
    return world
