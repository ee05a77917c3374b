"""A network as a queue policy: it decides as in its environment, and what it cannot place is one error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.learning.agents.pair_player import PairPlayer
from pilotfish.learning.environments.pairs import PairEnvironment, PairNode, PairOptions
from pilotfish.simulate.errors import PolicyError
from pilotfish.simulate.learned.pair_heads import HEADS
from pilotfish.simulate.learned.pair_network import PairSight
from pilotfish.simulate.learned.pair_queue import PairQueue
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.machine import Machine, machine_of
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.replay.replay import replay
from tests.support.pair_models import PAIR_NODES, headed_model, pair_model

#: Gap, half the run time, cores.
ROWS = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 30), st.integers(1, 8)), min_size=2, max_size=25)


def cluster(nodes: tuple[tuple[int, float], ...] = PAIR_NODES) -> Machine:
    kinds = {node: NodeType(f"c{node[0]}-{node[1]}", node[0], 8e9, 1e10, 1, node[1] * 1e9) for node in set(nodes)}
    return machine_of(Cluster("c", tuple(Node(f"n{place}", kinds[node]) for place, node in enumerate(nodes))))


def jobs_of(rows: list[tuple[int, int, int]]) -> Workload:
    gaps, halves, sizes = (np.array(column) for column in zip(*rows, strict=True))
    times = 2.0 * halves  # even, so that a run time on a node of double speed is whole
    return Workload("w", np.arange(len(rows)), np.cumsum(gaps) * 1.0, times, times, sizes.astype(np.int64))


@given(
    ROWS, st.integers(0, 10**6), st.sampled_from(["any", "largest"]), st.integers(1, 5), st.booleans(),
    st.sampled_from(list(HEADS)),
)  # fmt: skip
@settings(deadline=None)
def test_it_decides_as_in_its_environment(
    rows, seed: int, due: str, visible: int, logarithmic: bool, head: str
) -> None:
    jobs, chooser = jobs_of(rows), headed_model(head, seed).chooser
    options = PairOptions("wait", due, len(jobs), rows=visible, longest=500.0, logarithmic=logarithmic)
    world = PairEnvironment([jobs], [PairNode(*node) for node in PAIR_NODES], options)
    player, starts, places = PairPlayer(chooser), [], []
    for _ in range(len(jobs)):
        before = np.isnan(world.schedule()[0])
        world.step(player.actions(world))
        if not world.done[0]:
            now, nodes = world.schedule()
            (job,) = np.flatnonzero(before & ~np.isnan(now))
            starts.append((job, now[job], nodes[job]))
    sight = PairSight(due, visible, 500.0, 43_200.0, logarithmic)
    policy = PairQueue("learned:m", chooser, sight, PAIR_NODES)
    replayed = replay(jobs, cluster(), policy, contention=True)
    first = np.cumsum([0, *(size for size, _ in PAIR_NODES)])
    for job, start, node in starts:
        assert replayed.start_time[job] == start
        places.append(node)
    assert -world.last_return[0] == pytest.approx(float((replayed.start_time - jobs.submit_time).mean()))
    assert first[-1] == 24 and len(places) == len(jobs) - 1


@pytest.mark.parametrize(
    ("machine", "size", "says"),
    [
        (cluster(((4, 1.0), (8, 3.0))), 1, "nodes as in the training"),
        (cluster(((4, 1.0), (6, 1.0))), 1, "nodes as in the training"),
        (cluster(), 9, "jobs on one node, of at most 8 cores"),
    ],
)
def test_what_it_cannot_place_is_one_error(machine: Machine, size: int, says: str) -> None:
    model = pair_model()
    with pytest.raises(PolicyError, match=says) as raised:
        replay(jobs_of([(0, 1, size), (1, 1, 1)]), machine, model.policy("learned:m"), contention=True)
    assert "\n" not in str(raised.value)


def test_a_machine_without_nodes_is_one_error() -> None:
    with pytest.raises(PolicyError, match="no nodes to choose among"):
        replay(jobs_of([(0, 1, 1), (1, 1, 1)]), 8, pair_model().policy("learned:m"))
