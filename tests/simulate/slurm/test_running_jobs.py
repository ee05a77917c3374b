"""The order of running jobs, and the room that they leave one after another, against plain lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.kernels.slurm import bits, later_room, node_ends, node_use, running_order
from pilotfish.simulate.kernels.slurm.tables import CANDIDATES, FREE_LATER, IDLE_LATER, LATER, MOST_ADDED
from tests.simulate.slurm.small_sites import NODES, T0, Hand, job, site

pytestmark = pytest.mark.usefixtures("plain_python")
_JOBS = MOST_ADDED + 16


@given(
    steps=st.lists(st.tuples(st.integers(0, _JOBS - 1), st.integers(0, 9), st.booleans()), max_size=250),
    reads=st.sets(st.integers(0, 250)),
    fills=st.booleans(),
)
def test_running_jobs_are_in_the_order_of_their_latest_ends(
    steps: list[tuple[int, int, bool]], reads: set[int], fills: bool
) -> None:
    hand, until = Hand(site([job(id=str(number)) for number in range(_JOBS)])), dict[int, int]()
    world = hand.world
    first = [(number, number % 7, True) for number in range(_JOBS if fills else 0)]
    for step, (number, time, moves) in enumerate([*first, *steps]):
        if number not in until:
            world.jobs[number].until = time
            running_order.add_running(world, number)
            until[number] = time
        elif moves:
            running_order.end_until(world, number, time)
            until[number] = time
        else:
            running_order.remove_running(world, number)
            del until[number]
        if step in reads:
            running_order.running_jobs(world)
    running = running_order.running_jobs(world)[: world.count.running].tolist()
    assert running == sorted(until, key=lambda number: (until[number], number))


@given(
    jobs=st.lists(st.tuples(st.integers(0, len(NODES) - 1), st.integers(1, 4)), min_size=1, max_size=14),
    stops=st.lists(st.integers(0, 14), max_size=6),
    words=st.sets(st.integers(0, len(NODES) - 1)),
    needed=st.integers(1, 5),
    least=st.integers(1, 3),
)
def test_what_is_free_later_depends_on_the_number_of_ends_alone(
    jobs: list[tuple[int, int]], stops: list[int], words: set[int], needed: int, least: int
) -> None:
    asking = job(id="0", cpus_per_task=needed, min_cpus=needed)
    hand = Hand(site([asking, *(job(id=str(number + 1)) for number in range(len(jobs)))]))
    world = hand.world
    for number, (node, cores) in enumerate(jobs, 1):
        row = world.jobs[number]
        row.until, row.piece0, row.pieces = T0 + 60 * number, number, 1
        world.pieces[number].node, world.pieces[number].cores = node, cores
        node_use.take_on_node(world, node, 0, cores, 10, 0)
        running_order.add_running(world, number)
    world.count.ends_noted = -1
    node_ends.note_ends(world, T0)

    def free(node: int, ends: int) -> int:
        return int(NODES[node].cpus) - sum(cores for place, cores in jobs[ends:] if place == node)

    for ends in (min(stop, len(jobs)) for stop in stops):
        later_room.let_end(world, ends)
        for node in range(len(NODES)):
            assert node_use.free_on(world, node, LATER).cores == free(node, ends)
            assert bits.has(world.node_sets[FREE_LATER], node) == (free(node, ends) > 0)
            assert bits.has(world.node_sets[IDLE_LATER], node) == all(place != node for place, _ in jobs[ends:])
    for node in words:
        bits.add(world.scratch[CANDIDATES], node)
    enough = [
        ends for ends in range(len(jobs) + 1) if sum(free(node, ends) >= needed for node in words) >= least
    ]  # fmt: skip
    assert later_room.ends_until_room(world, 0, world.scratch[CANDIDATES], least) == (enough or [len(jobs) + 1])[0]
