"""The nodes on which the jobs of a trace run, and their threads there."""

from __future__ import annotations

import pytest

from pilotfish.simulate.world.node_allocation import Places, spread


@pytest.mark.parametrize(
    ("size", "rooms", "found"),
    [
        (13, [12, 12], (2, 7)),
        (12, [12, 12], (1, 12)),
        (25, [12, 12], None),
        (7, [4, 4], (2, 4)),
        (30, [12, 12, 4, 4], None),
        (16, [12, 12, 4, 4], (2, 8)),
        (3, [1, 0, 1, 1], (3, 1)),
    ],
)
def test_as_few_nodes_as_possible(size: int, rooms: list[int], found: tuple[int, int] | None) -> None:
    assert spread(size, rooms) == found


def test_processors_of_a_job_that_is_not_divided_equally() -> None:
    places = Places([4, 4, 4])
    assert places.allocate(1, [2, 0], 4, 7) == [(0, 3), (8, 10)]
    assert places.allocate(2, [1], 1, 1) == [(4, 4)]
    places.release(1)
    assert places.allocate(3, [0], 2, 2) == [(0, 1)]
