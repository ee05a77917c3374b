"""Jobs that communicate, on nodes that they share: their phases, and what their links let them do.

Rule: a phase that computes demands the cores and the memory of its nodes, and a phase that sends its links; either from
the end of its latency on. The nodes say how fast it could compute, the links how fast it could send if it computed at
full speed, and it progresses at the lower of the two rates: what it cannot use of one because of the other is not given
to others. A job ends its phases on all its nodes together. Forecasts know nothing of phases: there, a job demands the
mean of its program, from its start for as long as it is expected to run.
The type of the state selects at compile time whether jobs communicate, so others pay nothing for it.
"""

from __future__ import annotations

import math
from typing import Any

from ...arrays import Row
from ..block import Block
from ..compile import register
from ..jit import by_type, inner
from ..queue.network.fair_share import charge, leave_links, log_is_full, solve_links
from ..queue.network.job_progress import enter, go_on
from ..queue.network.tables import GOES_ON, NONE, WAIT, NetworkedNodes
from .layout import ONE, ZERO

NetworkedNodesType = register(NetworkedNodes, __name__)


@inner
def _begin(world: Block, job: int, now: float) -> None:
    course = world.courses[job]
    if course.program == NONE:
        return
    program = world.programs[course.program]
    course.phase, course.rounds, course.state, course.first = program.first, program.rounds, GOES_ON, NONE
    course.over, course.since, course.speed, course.joules, course.lag = 0, now, 1.0, 0.0, 0.0
    enter(world, job, now)
    _demand(world, job, now)


@inner
def _demand(world: Block, job: int, now: float) -> None:
    """Write what a job's phase demands of the nodes into the tables of phases."""
    j, course = world.jobs[job], world.courses[job]
    computing = world.lags.computing if course.state == GOES_ON and course.over == 0 else 0.0
    slowest, strand, moved, kinds = math.inf, world.strands[j.strand0], 0.0, len(world.types)
    first = (world.groups[strand.group].phase_start + 1) * kinds
    for i in range(world.classes[j.cls].nodes):
        slowest = min(slowest, world.flop_s[world.nodes[world.placed[j.place0 + i]].type])
    if course.over == 0:
        moved = world.program_phases[course.phase].moved
    least = math.inf
    for kind in range(kinds):
        least = min(least, world.flop_s[kind])
    for kind in range(kinds):
        row = world.phases[first + kind]
        row.work, row.utilisation, row.bandwidth = 1.0, 0.0, 0.0
        if computing > 0.0:
            row.work, row.utilisation = computing * (slowest / world.flop_s[kind]), 1.0
            row.bandwidth = moved / row.work
            if world.flop_s[kind] > least:
                row.bandwidth = min(row.bandwidth, world.types[kind].bandwidth)
    work = 0.0 if course.over == 1 else course.left
    course.pace = work / world.phases[first + strand.type].work if computing > 0.0 else math.inf
    course.raised, course.speed = 1.0, 0.0
    strand.phase, strand.rem, strand.rate, strand.last = ONE, work, 0.0, now


@inner
def _next(world: Block, s: int, now: float) -> bool:
    job = world.strands[s].job
    course = world.courses[job]
    if course.program == NONE or course.over == 1:
        return False
    go_on(world, job, now)
    if course.over == 1:
        return False
    _demand(world, job, now)
    world.strands[s].finish = math.inf
    return True


@inner
def _waits(world: Block, s: int) -> bool:
    course = world.courses[world.strands[s].job]
    if course.program == NONE or course.over == 1 or course.state != GOES_ON:
        return False
    return world.program_phases[course.phase].kind == WAIT


@inner
def _end(world: Block, job: int, now: float) -> None:
    if world.courses[job].program != NONE:
        charge(world, world.courses[job], now)
        world.courses[job].since = now
        leave_links(world, job)


@inner
def _solve(world: Block) -> int:
    solve_links(world)
    return world.solver.met


@inner
def _met(world: Block, i: int) -> int:
    return world.met[i]


@inner
def _slower(world: Block, s: int, rate: float, now: float) -> float:
    course = world.courses[world.strands[s].job]
    if course.program == NONE:
        return rate
    charge(world, course, now)
    course.since, course.speed = now, min(rate * course.pace, course.raised)
    return course.speed


@inner
def _mean(world: Block, row: Row, now: float) -> bool:
    if row.candidate == 1:
        return False
    job = world.strands[row.id].job
    if world.courses[job].program == NONE:
        return False
    j = world.jobs[job]
    alone = world.phases[world.groups[row.group].phase_start * len(world.types) + row.type].work
    row.phase, row.rem = ZERO, alone - (now - j.start)
    if world.classes[j.cls].told == 1.0:
        row.rem = max(row.rem, 0.0)
    return True


def _communicates(world: Any) -> bool:
    return world == NetworkedNodes.numba_type


#: begin_program(world, job, now): begin the program of a job that was placed, if it has one.
begin_program = by_type(_communicates, _begin, inner(lambda world, job, now: None))
#: next_phase(world, s, now): begin the next phase of a strand's job. Return False if it has none.
next_phase = by_type(_communicates, _next, inner(lambda world, s, now: False))
#: waits(world, s): return whether a strand's job waits: if its walltime is over just then, it is killed.
waits = by_type(_communicates, _waits, inner(lambda world, s: False))
#: end_program(world, job, now): let a job that has ended leave its links.
end_program = by_type(_communicates, _end, inner(lambda world, job, now: None))
#: changed_speeds(world): solve the links whose users changed; return the number of jobs whose speeds may be others now.
changed_speeds = by_type(_communicates, _solve, inner(lambda world: ZERO))
#: changed_job(world, i): return one of these jobs.
changed_job = by_type(_communicates, _met, inner(lambda world, i: ZERO))
#: speed_next_to(world, s, rate, now): return the speed of a strand whose nodes allow `rate`.
speed_next_to = by_type(_communicates, _slower, inner(lambda world, s, rate, now: rate))
#: must_pause(world): return whether the power log must be emptied before the next instant.
must_pause = by_type(_communicates, log_is_full, inner(lambda world: False))
#: show_mean(world, row, now): in its row of the scratch tables, show a running job as forecasts know it. Return whether
#: that differs.
show_mean = by_type(_communicates, _mean, inner(lambda world, row, now: False))
