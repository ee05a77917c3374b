"""The progress of jobs on a network, one step a call, for a queue policy in Python.

Rule: the steps are those of the compiled replays, so the same starts give the same ends to the last bit.
"""

from __future__ import annotations

from numba import types

from ...block import Block
from ...compile import register
from ...jit import inner
from .job_progress import begin, end_first, kill, next_end
from .tables import BEGIN, KILL, NEXT_END, NetworkProgress

NetworkProgressType = register(NetworkProgress, __name__)


@inner
def call(world: Block, question: int, job: int, before: float) -> int:
    """Do one step at `clock.now`.

    BEGIN: start `job` on its pieces; without a program it ends at its `finish`. NEXT_END: store the next end of a job
    in `lags.answer`, infinity if that is after `before`. END_FIRST: end the job that ends first, and return it. KILL:
    end `job`, and store how much of its phase was done in `lags.answer`.
    """
    if question == BEGIN:
        world.jobs[job].start = world.clock.now
        begin(world, job, world.jobs[job].finish)
    elif question == NEXT_END:
        world.lags.answer = next_end(world, before)
    elif question == KILL:
        world.lags.answer = kill(world, job)
    else:
        return end_first(world)
    return 0


SIGNATURES = {"queue.network.steps": (NetworkProgressType(), types.int64, types.int64, types.float64)}
