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

from ...simulate.errors import ConfigError
from ...simulate.model.workload import Workload
from ...simulate.wording import count
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
#: Windows that an epoch of a training plays, as long as those of the test, and windows that judge a training. The
#: thesis has 20 an epoch, of 256 jobs, which never see a long queue.
COPIES, JUDGED = 5, 20
#: Jobs at the beginning of a trace that no training uses.
_LEFT_OUT = 256
#: Means over the windows, printed in the thesis, of the rules that block: (objective, job) -> random, biggest, fastest
#: node.
PUBLISHED = {
    ("bsld", "random"): (26.9, 61.3, 40.7), ("bsld", "first"): (35.9, 68.4, 38.7),
    ("bsld", "shortest"): (14.0, 25.1, 18.3), ("bsld", "smallest"): (16.5, 27.5, 20.1),
    ("sld", "random"): (42.7, 98.2, 68.0), ("sld", "first"): (58.1, 109.8, 63.4),
    ("sld", "shortest"): (21.6, 39.1, 28.8), ("sld", "smallest"): (26.7, 44.3, 33.4),
    ("wait", "random"): (943.0, 2164.0, 1415.0), ("wait", "first"): (1207.0, 2395.0, 1327.0),
    ("wait", "shortest"): (650.0, 1261.0, 856.0), ("wait", "smallest"): (643.0, 1136.0, 789.0),
}  # fmt: skip
#: The same of its agents, by agent and objective. Of double agents it prints boxes in a figure only.
PUBLISHED_AGENTS = {
    ("squared", "bsld"): 9.70, ("squared", "sld"): 13.9, ("squared", "wait"): 439.0, ("clustered", "bsld"): 9.11,
}  # fmt: skip


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


def training_worlds(jobs: Workload, objective: str) -> tuple[PairEnvironment, PairEnvironment]:
    """Return the environment that a training plays, and the one that judges it, both on windows of any start.

    Args:
        jobs: of `jobs_of`.
        objective: as of PairOptions.

    Raises:
        ConfigError: there are too few jobs.
    """
    starts = np.arange(_LEFT_OUT, len(jobs) - WINDOW_JOBS)
    if not len(starts):
        least = _LEFT_OUT + WINDOW_JOBS + 1
        raise ConfigError(jobs.name, "", f"{count(len(jobs), 'job')} of a run time above 0", f"at least {least:,} jobs")
    world, judging = (
        PairEnvironment([jobs], NODES, options(objective), copies=copies, starts=starts) for copies in (COPIES, JUDGED)
    )
    return world, judging


def windows(
    trace: Workload, objective: str, due: str, starts: Sequence[int] = WINDOWS, seed: int = 0
) -> PairEnvironment:  # fmt: skip
    """Return the environment at the beginning of the test windows, one copy each.

    Args:
        trace: the trace.
        objective: as of PairOptions.
        due: as of PairOptions.
        starts: first jobs of the windows.
        seed: of what a rule draws.

    Raises:
        ConfigError: the windows do not fit into the jobs.
    """
    jobs, least = jobs_of(trace), max(starts) + WINDOW_JOBS
    if len(jobs) < least:
        raise ConfigError(jobs.name, "", f"{count(len(jobs), 'job')} of a run time above 0", f"at least {least:,} jobs")
    world = PairEnvironment([jobs], NODES, options(objective, due), copies=len(starts), seed=seed)
    world.reset(starts)
    return world
