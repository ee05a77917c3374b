"""The nodes that reservations leave to a job, or have for it.

Rule: a reservation keeps its nodes from each job outside it whose time limit reaches into it, and ends the jobs inside
it at its end. A reservation that comes again is several rows, see `simulate.slurm.reservation_tables`; rows are in the
order of their starts.
Complexity: O(reservations that have not ended and begin before the end of the job * words) for each set of nodes.
Source: job_test_resv and job_resv_check of Slurm 22.05.
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .bits import contains, copy, intersect, shared_number, subtract
from .tables import MORE

#: How often the start moves behind a reservation before Slurm gives up.
_MOVES = 10


@inner
def nodes_outside_reservations(world: Block, job: int, part: int, start: int, limit_min: int, row: int) -> int:
    """Remove from a set what reservations keep from a job during its run; return when it may start at the earliest.

    Args:
        world: the state; `count.reservation_end` becomes the end of the earliest-ending reservation that was in the
            way, 0 if there was none.
        job: the job.
        part: the partition.
        start: when it would start.
        limit_min: its time limit in minutes.
        row: row of `scratch` with the nodes.

    Returns:
        `start`, or a later time that the rules of reservations ask for; the nodes are those for a start then. -1: the
        job's reservation is over, or its required nodes are not in it.
    """
    world.count.reservation_end = 0
    if is_outside_all(world, job):
        return start
    if world.jobs[job].reservation >= 0:
        instance = instance_at(world, world.jobs[job].reservation, start)
        return _nodes_inside(world, job, part, instance, start, limit_min, row)
    copy(world.scratch[MORE], world.scratch[row])
    for _ in range(_MOVES):
        later = _subtract_others(world, job, part, int64(-1), start, limit_min, row)
        if later == start:
            break
        copy(world.scratch[row], world.scratch[MORE])
        start = later
    return start


@inner
def is_outside_all(world: Block, job: int) -> bool:
    """Return whether no reservation concerns a job: it is in none, and all have ended."""
    _pass_over_ended(world)
    return world.jobs[job].reservation < 0 and world.count.ended_reservations == len(world.reservations)


@inner
def _nodes_inside(world: Block, job: int, part: int, instance: int, start: int, limit_min: int, row: int) -> int:
    """Leave the nodes of a job's reservation; FLEX leaves all. Return as `nodes_outside_reservations` does."""
    if instance < 0:
        return int64(-1)
    reservation, required = world.reservations[instance], world.jobs[job].required
    if not reservation.flex:
        if required >= 0 and not contains(world.reservation_nodes[instance], world.allowed_nodes[required]):
            return int64(-1)
        intersect(world.scratch[row], world.reservation_nodes[instance])
        start = max(start, int64(reservation.start))
    _subtract_others(world, job, part, instance, start, limit_min, row)
    return start


@inner
def _subtract_others(world: Block, job: int, part: int, instance: int, start: int, limit_min: int, row: int) -> int:
    """Remove the nodes of reservations that overlap a run; return when it may start, `start` if nothing moves it.

    Args:
        world: the state.
        job: the job.
        part: the partition.
        instance: of its reservation, -1: it has none.
        start: when it would start.
        limit_min: its time limit in minutes.
        row: row of `scratch` with the nodes.
    """
    end, required = start + 60 * limit_min, world.jobs[job].required
    for other in range(world.count.ended_reservations, len(world.reservations)):
        reservation = world.reservations[other]
        if reservation.start >= end:  # so do all that follow
            break
        if other == instance or reservation.end <= start:
            continue
        if reservation.created > world.clock.now or (instance >= 0 and _yields(world, other, instance)):
            continue
        if instance < 0:
            in_the_way = required >= 0 and shared_number(world.reservation_nodes[other], world.allowed_nodes[required])
            if in_the_way or world.reservation_stops[other, part]:
                _note_end(world, reservation.end)
                return int64(reservation.end)
        if shared_number(world.scratch[row], world.reservation_nodes[other]):
            _note_end(world, reservation.end)
            subtract(world.scratch[row], world.reservation_nodes[other])
    return start


@inner
def _pass_over_ended(world: Block) -> None:
    """Count the reservations that have ended, as far as they stand before all others."""
    count = world.count
    while (
        count.ended_reservations < len(world.reservations)
        and world.reservations[count.ended_reservations].end <= world.clock.now
    ):
        count.ended_reservations += 1


@inner
def _yields(world: Block, other: int, instance: int) -> bool:
    """Return whether the jobs of an instance may use the nodes of another reservation."""
    inside = world.reservations[instance]
    return bool(inside.maint or (inside.overlap and not world.reservations[other].maint))


@inner
def _note_end(world: Block, end: int) -> None:
    if world.count.reservation_end == 0 or end < world.count.reservation_end:
        world.count.reservation_end = end


@inner
def instance_at(world: Block, reservation: int, time: int) -> int:
    """Return the first instance of a reservation that ends after a time, -1 if there is no more."""
    while reservation >= 0 and world.reservations[reservation].end <= time:
        reservation = world.reservations[reservation].next
    return int64(reservation)


@inner
def has_reservation_begun(world: Block, job: int, now: int) -> bool:
    """Return whether a job is eligible as far as its reservation is concerned; a FLEX one need not have begun.

    From then on its reservation is the present instance.
    """
    instance = instance_at(world, world.jobs[job].reservation, now)
    if instance < 0:
        return world.jobs[job].reservation < 0
    world.jobs[job].reservation = instance
    return bool(world.reservations[instance].start <= now or world.reservations[instance].flex)


@inner
def magnet_of(world: Block, job: int, place: int, now: int) -> int:
    """Return the magnetic reservation number `place` of a job, -1 if that one has not begun or is over."""
    instance = instance_at(world, world.magnets[world.jobs[job].magnet0 + place], now)
    if instance >= 0 and world.reservations[instance].start > now and not world.reservations[instance].flex:
        return int64(-1)
    return int64(instance)


@inner
def begin_and_end_reservations(world: Block, now: int) -> bool:
    """Return whether a reservation has begun since the last call, which asks for a main pass; every 5 s."""
    begun = False
    for row in range(len(world.reservations)):
        if not world.reservations[row].began and world.reservations[row].start <= now:
            world.reservations[row].began = 1
            begun = begun or world.reservations[row].end > now
    return begun


@inner
def end_in_reservation(world: Block, job: int, start: int) -> int:
    """Return until when a job that starts in its reservation may run, -1 if nothing ends it."""
    if world.jobs[job].reservation < 0 or world.rules.resv_over_run < 0:
        return int64(-1)
    instance = instance_at(world, world.jobs[job].reservation, start)
    if instance < 0 or world.reservations[instance].flex:
        return int64(-1)
    return int64(world.reservations[instance].end + 60 * world.rules.resv_over_run)
