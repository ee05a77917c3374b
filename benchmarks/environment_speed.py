"""Steps a second of the environments for agents, with observations and masks; next to RLScheduler's environment.

That one is measured if the traces' directory has a copy of its repository (https://github.com/DIR-LAB/
deep-batch-scheduler, a folder with HPCSimPickJobs.py and data/lublin_256.swf); nothing of it is in the product. Its
steps need neither TensorFlow nor gym, so empty modules take the places of these.

Rule: CPU seconds of one process, in rounds that take turns, on the same trace. Each agent takes the first job that is
allowed; for RLScheduler's, the authors' training makes the mask from the observation, and here also nothing does.
Resets are counted: theirs, every 256 steps, replays the jobs under two rules.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from pilotfish.api import OrderEnvironment, OrderOptions, PairEnvironment, PairNode, PairOptions, lublin, read_workload
from pilotfish.benchmarks.show import heading, number, table
from pilotfish.learning.environments import thesis
from pilotfish.simulate.model.workload import Workload

EPISODE = 256
#: Carries out at least so many steps, and returns how many it carried out.
Play = Callable[[int], int]


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the table."""
    folders = sorted(path.parent for path in traces.rglob("HPCSimPickJobs.py")) if traces is not None else []
    path = folders[0] / "data" / "lublin_256.swf" if folders else None
    jobs = lublin(10_000, 256, seed=0) if path is None else read_workload(path, skip_invalid=True)
    timed = jobs.take(jobs.run_time > 0.0)
    plays: dict[str, tuple[Play, int]] = {}  # by name: with the steps of a round
    if path is not None:
        plays["RLScheduler, 256 processors, no mask"] = _rlscheduler(folders[0], path, masks=False), 2_000
        plays["RLScheduler, 256 processors"] = _rlscheduler(folders[0], path, masks=True), 2_000
    one_node = [PairNode(256, 1.0)]
    for copies in (1, 20):
        alike = PairEnvironment([_with_limits(timed)], one_node, PairOptions(episode=EPISODE), copies=copies)
        plays[f"pairs, one node of 256 processors, copies: {copies}"] = _pilotfish(alike), 40_000
    for copies in (1, 20):
        options = PairOptions(due="largest", episode=EPISODE)
        unlike = PairEnvironment([thesis.jobs_of(jobs)], thesis.NODES, options, copies=copies)
        plays[f"pairs, 20 nodes of the thesis, copies: {copies}"] = _pilotfish(unlike), 40_000
    orders = OrderEnvironment([_with_limits(timed)], 256, OrderOptions("order", episode=EPISODE), copies=20)
    plays["orders in EASY, 256 processors, copies: 20"] = _pilotfish(orders), 40_000
    rates: dict[str, list[float]] = {name: [] for name in plays}
    for _ in range(2 if quick else 7):
        for name, (play, steps) in plays.items():
            began = time.process_time()
            carried_out = play(steps // 10 if quick else steps)
            rates[name].append(carried_out / (time.process_time() - began))
    heading("Environments for agents: steps a CPU second of one core, with observations, masks and the choice")
    medians = {name: float(np.median(one)) for name, one in rates.items()}
    base = next(iter(medians.values())) if folders else None
    rows = [
        (
            name,
            number(medians[name]),
            number(min(one)),
            number(max(one)),
            "-" if base is None else number(median / base),
        )
        for (name, one), median in zip(rates.items(), medians.values(), strict=True)
    ]
    table(("environment", "median", "least", "most", "to RLScheduler's"), rows)


def _with_limits(jobs: Workload) -> Workload:
    """Return jobs whose requested times are their run times, as RLScheduler takes those of this trace."""
    return replace(jobs, walltime=jobs.run_time)


def _pilotfish(world: PairEnvironment | OrderEnvironment) -> Play:
    def play(steps: int) -> int:
        turns = -(-steps // world.copies)
        for _ in range(turns):
            world.step(world.mask.argmax(axis=1))
        return turns * world.copies

    return play


def _rlscheduler(folder: Path, trace: Path, *, masks: bool) -> Play:
    """Return what plays RLScheduler's own environment.

    Args:
        folder: of its code.
        trace: that it plays.
        masks: the mask is made; else the agent takes the first row, which always has a job.
    """
    _stand_in("tensorflow")
    scipy = _stand_in("scipy")
    scipy.signal = _stand_in("scipy.signal")  # type: ignore[attr-defined]
    gym, spaces, utils, seeding = (_stand_in(f"gym{name}") for name in ("", ".spaces", ".utils", ".utils.seeding"))
    more: Any
    for more in (gym, spaces, utils, seeding):
        more.Env, more.spaces, more.seeding = object, spaces, seeding
        more.Box = more.Discrete = lambda *_, **__: None
        more.np_random = lambda seed: (np.random.RandomState(seed), seed)
    sys.path.insert(0, str(folder))
    with redirect_stdout(StringIO()):
        import HPCSimPickJobs as other  # type: ignore[import-not-found]

        world = other.HPCEnv()
        world.seed(0)
        world.my_init(workload_file=str(trace))
        seen = [world.reset()[0]]
    empty = [0] + [1] * (other.JOB_FEATURES - 2) + [0]

    def play(steps: int) -> int:
        for _ in range(steps):
            rows = range(0, other.MAX_QUEUE_SIZE * other.JOB_FEATURES, other.JOB_FEATURES)
            mask = [1]
            if masks:
                mask = [0 if all(seen[0][row : row + other.JOB_FEATURES] == empty) else 1 for row in rows]
            observation, _, ended, *_ = world.step(int(np.argmax(mask)))
            seen[0] = world.reset()[0] if ended else observation
        return steps

    return play


def _stand_in(name: str) -> ModuleType:
    """Return an empty module of a name, which takes the place of a package."""
    sys.modules[name] = module = ModuleType(name)
    return module
