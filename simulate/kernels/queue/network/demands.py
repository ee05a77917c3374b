"""The demands of a placed job's phase on its hosts, their ports and the links between them.

Rule: computation and communication overlap, so a phase alone takes as long as its slowest part: a rank on a core, a
host, a port, a link, or a flow from one host to another, or to itself.
Source: Batsim's documentation, "Parallel task"; SimGrid's model `ptask_L07`.
"""

from __future__ import annotations

import math

from ....arrays import Row
from ...block import Block
from ...jit import inner
from .tables import EVEN, MATRIX, PLACED, STAGE, WAIT


@inner
def lay_out(world: Block, job: int, phase: Row) -> float:
    """Return the work of a phase; record its bytes on each link, and its latency and energy in `lags`.

    O(hosts + places^2 x route), for a matrix O(hosts^2 x route).
    """
    world.solver.touched, world.lags.latency, world.lags.flow = 0, 0.0, 0.0
    world.lags.joules = world.lags.lift = 0.0
    if phase.kind == WAIT:
        return phase.amount
    if phase.kind == STAGE:
        _send(world, phase.at, phase.to, phase.bytes, 1)
        return _links_alone(world)
    if phase.kind == PLACED:
        return max(_ranks(world, int(phase.amount), phase), _links_alone(world))
    _find_hosts(world, job)
    if phase.kind == MATRIX:
        work = _ranks(world, world.jobs[job].size, phase)
    elif phase.kind == EVEN:
        work = _even(world, world.jobs[job].size, phase)
    else:
        work = _stored(world, phase)
    return max(work, _links_alone(world))


@inner
def _find_hosts(world: Block, job: int) -> None:
    """Find the hosts of a job, ascending, and their number at each place."""
    row, solver, many = world.jobs[job], world.solver, 0
    for i in range(solver.laid):
        world.places[world.laid[i]].hosts = 0
    solver.laid = 0
    for i in range(row.piece0, row.piece0 + row.pieces):
        for host in range(world.pieces[i].first, world.pieces[i].last + 1):
            at = many
            while at > 0 and world.hosts[at - 1] > host:
                world.hosts[at] = world.hosts[at - 1]
                at -= 1
            world.hosts[at] = host
            many += 1
            place = world.place_of[host]
            if world.places[place].hosts == 0:
                world.laid[solver.laid] = place
                solver.laid += 1
            world.places[place].hosts += 1


@inner
def _send(world: Block, source: int, target: int, amount: float, flows: float) -> None:
    """Add flows of `amount` bytes each to the links of the route between two places."""
    if amount > 0.0 and flows > 0:
        _send_along(world, source * len(world.places) + target, amount, flows)


@inner
def _send_along(world: Block, route: int, amount: float, flows: float) -> None:
    links, solver = world.links, world.solver
    world.lags.latency = max(world.lags.latency, world.latency[route])
    world.lags.flow = max(world.lags.flow, amount * world.pace[route])
    for i in range(world.route0[route], world.route0[route + 1]):
        link = world.routes[i]
        if links[link].bytes == 0.0:
            world.touched[solver.touched] = link
            solver.touched += 1
        links[link].bytes += flows * amount


@inner
def _heat(world: Block, host: int, flops: float) -> None:
    """Add the energy of a host that computes."""
    world.lags.joules += flops * world.joules_per_flop[host]
    world.lags.lift += world.lift[host]


@inner
def _links_alone(world: Block) -> float:
    """Return the time of the slowest link or flow if no other job uses the links."""
    work = world.lags.flow
    for i in range(world.solver.touched):
        link = world.links[world.touched[i]]
        work = max(work, link.bytes / link.bandwidth)
    return work


@inner
def _port_alone(world: Block, place: int, sent: float, received: float, own: float) -> float:
    """Return the time of a host's port; `own`: bytes to itself that pass through it."""
    port = world.places[place]
    return max((max(sent, received) + own) / port.way, (sent + received + own) / port.both)


@inner
def _even(world: Block, size: int, phase: Row) -> float:
    work, slowest = 0.0, math.inf
    for i in range(size):
        slowest = min(slowest, world.speeds[world.hosts[i]])
    if phase.amount > 0.0:
        work = phase.amount / slowest
        for i in range(size):
            _heat(world, world.hosts[i], phase.amount)
    if phase.bytes <= 0.0 or size < 2:
        return work
    out, laid = (size - 1) * phase.bytes, world.solver.laid
    for i in range(laid):
        source = world.laid[i]
        work = max(work, _port_alone(world, source, out, out, 0.0))
        for k in range(laid):
            target = world.laid[k]
            pairs = world.places[source].hosts * world.places[target].hosts
            if source == target:
                pairs -= world.places[source].hosts
            _send(world, source, target, phase.bytes, pairs)
    return work


@inner
def _ranks(world: Block, count: int, phase: Row) -> float:
    """Lay out the matrices of a number of ranks, each on an end of its own or together with others."""
    work, amounts, loads, places = 0.0, world.amounts, world.loads, len(world.places)
    flops = phase.at + count if phase.kind == PLACED else phase.at
    for i in range(count):
        end = _end_of(world, phase, i)
        if end >= 0:
            load = loads[end]
            load.flops = load.sent = load.received = load.own = 0.0
            load.open = 1
    for i in range(count):
        end, row = _end_of(world, phase, i), flops + count * (1 + i)
        if amounts[flops + i] > 0.0:
            work = max(work, amounts[flops + i] / world.speeds[end])
            loads[end].flops += amounts[flops + i]
        if phase.bytes <= 0.0:
            continue
        for k in range(count):
            amount = amounts[row + k]
            if amount <= 0.0:
                continue
            other = _end_of(world, phase, k)
            source, target = _place_of(world, end), _place_of(world, other)
            if end == other:
                _send_along(world, places * places + source, amount, 1)
                if end >= 0 and world.places[source].loops == 1:
                    loads[end].own += amount
                continue
            _send_along(world, source * places + target, amount, 1)
            if end >= 0:
                loads[end].sent += amount
            if other >= 0:
                loads[other].received += amount
    for i in range(count):
        end = _end_of(world, phase, i)
        if end < 0 or loads[end].open == 0:
            continue
        load = loads[end]
        load.open = 0
        work = max(work, _port_alone(world, world.place_of[end], load.sent, load.received, load.own))
        if load.flops > 0.0:
            work = max(work, load.flops / (world.cores[end] * world.speeds[end]))
            _heat(world, end, load.flops)
    return work


@inner
def _end_of(world: Block, phase: Row, rank: int) -> int:
    """Return the host of a rank; ~p is the storage at place p."""
    return int(world.amounts[phase.at + rank]) if phase.kind == PLACED else world.hosts[rank]


@inner
def _place_of(world: Block, end: int) -> int:
    return world.place_of[end] if end >= 0 else ~end


@inner
def _stored(world: Block, phase: Row) -> float:
    work = 0.0
    for i in range(world.solver.laid):
        place = world.laid[i]
        work = max(work, _port_alone(world, place, phase.bytes, phase.amount, 0.0))
        _send(world, phase.at, place, phase.amount, world.places[place].hosts)
        _send(world, place, phase.at, phase.bytes, world.places[place].hosts)
    return work
