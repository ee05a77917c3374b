"""The demands of a placed job's phase on its hosts, their ports and the links between them.

Rule: computation and communication overlap, so a phase alone takes as long as its slowest part: a rank on a core, a
host, a port, a link, or a flow from one host to another, or to itself. Ranks on one host send each other bytes as the
host does to itself.
Source: Batsim's documentation, "Parallel task"; SimGrid's model `ptask_L07`.
"""

from __future__ import annotations

import math

from ....arrays import Row
from ...block import Block
from ...jit import by_type, inner
from .tables import EVEN, MATRIX, NONE, PLACED, STAGE, WAIT, NetworkedNodes


@inner
def _find_own(world: Block, job: int) -> None:
    """Find the hosts of a job, ascending, the ranks on each, and the number of ranks at each place."""
    _forget_hosts(world)
    row = world.jobs[job]
    for i in range(row.piece0, row.piece0 + row.pieces):
        for host in range(world.pieces[i].first, world.pieces[i].last + 1):
            _add_host(world, host, 1)


@inner
def _find_shared(world: Block, job: int) -> None:
    """A job has as many ranks as threads on each of its nodes, fewer on the last."""
    _forget_hosts(world)
    j, course = world.jobs[job], world.courses[job]
    cls = world.classes[j.cls]
    for i in range(cls.nodes):
        ranks_left = course.ranks - world.solver.ranks
        _add_host(world, world.placed[j.place0 + i], min(int(world.groups[cls.group_start].count), ranks_left))


@inner
def _forget_hosts(world: Block) -> None:
    solver = world.solver
    for i in range(solver.laid):
        place = world.places[world.laid[i]]
        place.ranks = place.squares = 0
    solver.laid = solver.many = solver.ranks = 0


@inner
def _add_host(world: Block, host: int, ranks: int) -> None:
    solver, at = world.solver, world.solver.many
    while at > 0 and world.hosts[at - 1] > host:
        world.hosts[at], world.ranks[at] = world.hosts[at - 1], world.ranks[at - 1]
        at -= 1
    world.hosts[at], world.ranks[at] = host, ranks
    solver.many += 1
    solver.ranks += ranks
    place = world.places[world.place_of[host]]
    if place.ranks == 0:
        world.laid[solver.laid] = world.place_of[host]
        solver.laid += 1
    place.ranks += ranks
    place.squares += ranks * ranks


_find_hosts = by_type(lambda world: world == NetworkedNodes.numba_type, _find_shared, _find_own)


@inner
def lay_out(world: Block, job: int, phase: Row) -> float:
    """Return the work of a phase; record its bytes on each link, and its latency and energy in `lags`.

    O(hosts + places^2 x route), for a matrix O(ranks^2 x route).
    """
    world.solver.touched, world.lags.latency, world.lags.flow = 0, 0.0, 0.0
    world.lags.joules = world.lags.lift = world.lags.computing = 0.0
    if phase.kind == WAIT:
        return phase.amount
    if phase.kind == STAGE:
        _send(world, phase.at, phase.to, phase.bytes, 1)
        return _links_alone(world)
    if phase.kind == PLACED:
        work = _ranks(world, int(phase.amount), phase)
        return max(work, world.lags.computing, _links_alone(world))
    _find_hosts(world, job)
    if phase.kind == MATRIX:
        work = _ranks(world, world.solver.ranks, phase)
    elif phase.kind == EVEN:
        work = _even(world, phase)
    else:
        work = _stored(world, phase)
    return max(work, world.lags.computing, _links_alone(world))


@inner
def _send(world: Block, source: int, target: int, amount: float, flows: float) -> None:
    """Add flows of `amount` bytes each to the links of the route between two places."""
    if amount > 0.0 and flows > 0:
        _send_along(world, source * len(world.places) + target, amount, flows)


@inner
def _send_along(world: Block, route: int, amount: float, flows: float) -> None:
    world.lags.latency = max(world.lags.latency, world.latency[route])
    world.lags.flow = max(world.lags.flow, amount * world.pace[route])
    for i in range(world.route0[route], world.route0[route + 1]):
        _load(world, world.routes[i], flows * amount)


@inner
def _load(world: Block, number: int, amount: float) -> None:
    """Add bytes to a link, if there is one."""
    if number == NONE or amount <= 0.0:
        return
    link, solver = world.links[number], world.solver
    if link.bytes == 0.0:
        world.touched[solver.touched] = number
        solver.touched += 1
    link.bytes += amount


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
def _port_alone(world: Block, host: int, sent: float, received: float, local_bytes: float) -> float:
    """Return the time of a host's port, which `local_bytes` to the host itself also pass. A shared port is links."""
    if len(world.ports) == 0:
        port = world.places[world.place_of[host]]
        return max((max(sent, received) + local_bytes) / port.way, (sent + received + local_bytes) / port.both)
    _load(world, world.ports[host, 0], sent + local_bytes)
    _load(world, world.ports[host, 1], received + local_bytes)
    _load(world, world.ports[host, 2], sent + received + local_bytes)
    return 0.0


@inner
def _to_itself(world: Block, host: int, amount: float, flows: float) -> float:
    """Add flows from a host to itself; return their bytes through its port."""
    if amount <= 0.0 or flows == 0:
        return 0.0
    place = world.place_of[host]
    _send_along(world, len(world.places) ** 2 + place, amount, flows)
    return flows * amount if world.places[place].loops == 1 else 0.0


@inner
def _even(world: Block, phase: Row) -> float:
    solver, slowest, work = world.solver, math.inf, 0.0
    for i in range(solver.many):
        slowest = min(slowest, world.speeds[world.hosts[i]])
    if phase.amount > 0.0:
        world.lags.computing = phase.amount / slowest
        for i in range(solver.many):
            _heat(world, world.hosts[i], world.ranks[i] * phase.amount)
    if phase.bytes <= 0.0 or solver.ranks < 2:
        return work
    for i in range(solver.many):
        host, ranks = world.hosts[i], world.ranks[i]
        out = ranks * (solver.ranks - ranks) * phase.bytes
        local_bytes = _to_itself(world, host, phase.bytes, ranks * (ranks - 1))
        work = max(work, _port_alone(world, host, out, out, local_bytes))
    for i in range(solver.laid):
        source = world.laid[i]
        for k in range(solver.laid):
            target = world.laid[k]
            pairs = world.places[source].ranks * world.places[target].ranks
            if source == target:
                pairs -= world.places[source].squares
            _send(world, source, target, phase.bytes, pairs)
    return work


@inner
def _ranks(world: Block, count: int, phase: Row) -> float:
    """Lay out the matrices of a number of ranks, each on an end of its own or together with others."""
    work, amounts, loads, places, lags = 0.0, world.amounts, world.loads, len(world.places), world.lags
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
            lags.computing = max(lags.computing, amounts[flops + i] / world.speeds[end])
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
        work = max(work, _port_alone(world, end, load.sent, load.received, load.own))
        if load.flops > 0.0:
            lags.computing = max(lags.computing, load.flops / (world.cores[end] * world.speeds[end]))
            _heat(world, end, load.flops)
    return work


@inner
def _end_of(world: Block, phase: Row, rank: int) -> int:
    """Return the host of a rank; ~p is the storage at place p. All hosts but the last have equally many ranks."""
    return int(world.amounts[phase.at + rank]) if phase.kind == PLACED else world.hosts[rank // world.ranks[0]]


@inner
def _place_of(world: Block, end: int) -> int:
    return world.place_of[end] if end >= 0 else ~end


@inner
def _stored(world: Block, phase: Row) -> float:
    work = 0.0
    for i in range(world.solver.many):
        ranks = world.ranks[i]
        work = max(work, _port_alone(world, world.hosts[i], ranks * phase.bytes, ranks * phase.amount, 0.0))
    for i in range(world.solver.laid):
        place = world.laid[i]
        _send(world, phase.at, place, phase.amount, world.places[place].ranks)
        _send(world, place, phase.at, phase.bytes, world.places[place].ranks)
    return work
