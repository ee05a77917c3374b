"""Networks described by a few numbers."""

from __future__ import annotations

import math

from pilotfish.simulate.model.network import Link, NetworkPlace, NetworkRoute, Tree, unlimited


def test_a_tree_of_switches() -> None:
    found = Tree(1e9, 4e9, 8e9, 1e-6, (1.0, 2.0, 2.0), (0, 1, 1)).network()
    assert found.places == [NetworkPlace("group 0", 1e9), NetworkPlace("group 1", 1e9)] and found.place_of.tolist() == [
        0,
        1,
        1,
    ]
    assert found.links == [Link("switch 0", 4e9), Link("switch 1", 4e9), Link("backbone", 8e9)]
    assert found.ways == [
        NetworkRoute((0,), 1e-6),
        NetworkRoute((0, 2, 1), 1e-6),
        NetworkRoute((1, 2, 0), 1e-6),
        NetworkRoute((1,), 1e-6),
    ]
    assert found.speeds.tolist() == [1.0, 2.0, 2.0]


def test_an_unspecified_bandwidth_is_unlimited() -> None:
    assert {link.bandwidth for link in Tree(1e9, group_of=(0,), speeds=(1.0,)).network().links} == {math.inf}
    found = unlimited([1.0, 3.0])
    assert found.places == [NetworkPlace("all", math.inf)] and found.speeds.tolist() == [1.0, 3.0]
