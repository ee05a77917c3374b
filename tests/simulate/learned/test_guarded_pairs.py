"""A learned choice of pairs with its net: where it is trusted it decides, elsewhere the baseline does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pilotfish.formats.model_file import dump_model, guarded, parse_model
from pilotfish.formats.models.pair_model import PairModel
from pilotfish.simulate.arrays import Array
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.learned.guarded_pairs import GuardedPairQueue, GuardedPairs
from pilotfish.simulate.learned.pair_network import PAIR_COLUMNS
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.queue_policies.easy_policy import Backfilling
from pilotfish.simulate.queue_policies.order import Order
from pilotfish.simulate.replay.replay import replay
from tests.simulate.learned.test_pair_queue import cluster, jobs_of
from tests.support.learned_models import BEATS
from tests.support.pair_models import SEEN, headed_model, pair_model

DRAW = np.random.default_rng(4)
ROWS = [(int(gap), int(half), int(size)) for gap, half, size in DRAW.integers((0, 1, 1), (5, 30, 9), (50, 3))]
JOBS = jobs_of(ROWS)
#: A verdict of `evaluate --as thesis`.
ON_WINDOWS = {key: value for key, value in BEATS.items() if key != "copies"} | {"windows": 20}


def with_net(model: PairModel) -> GuardedPairs:
    """Return the model that is read from its file."""
    guarded_model = guarded(parse_model(dump_model(model).encode(), "m"), "m")
    assert isinstance(guarded_model, GuardedPairs)
    return guarded_model


def played(policy: Any, machine: Any = None) -> Array:
    return replay(JOBS, machine or cluster(), policy, contention=True).start_time


def test_where_it_is_trusted_it_decides() -> None:
    model = pair_model(seen=SEEN)
    queue = with_net(model).replayed(0)
    assert np.array_equal(played(queue), played(model.policy("m"))) and queue.model_use.by_baseline.total() == 0


@pytest.mark.parametrize(
    ("changes", "machine"),
    [
        ({"seen": SEEN | {"limit": (200.0, 300.0)}}, None),
        ({"seen": SEEN | {"size": (9.0, 10.0)}}, None),
        ({"seen": SEEN}, cluster(((4, 1.0), (8, 1.0), (8, 3.0)))),
    ],
)
def test_jobs_or_nodes_that_it_was_not_trained_on_are_the_baselines(changes: dict[str, Any], machine: Any) -> None:
    queue = with_net(pair_model(**changes)).replayed(0)
    assert np.array_equal(played(queue, machine), played(Backfilling(Order("sjf"), fills=True), machine))
    assert queue.model_use.by_baseline.total() > 0


def test_a_job_that_waited_too_long_goes_first_with_a_reservation() -> None:
    free, bound = with_net(pair_model(seen=SEEN)), with_net(pair_model(seen=SEEN, max_wait=40.0))
    queue = bound.replayed(0)
    waits = [played(one) - JOBS.submit_time for one in (free.replayed(0), queue)]
    assert queue.model_use.by_baseline.total() > 0 and waits[1].max() < waits[0].max()


@pytest.mark.parametrize("head", ["squared", "double", "clustered"])
def test_what_it_explains_is_what_it_did(head: str) -> None:
    model = with_net(headed_model(head, 2, seen=SEEN))
    queue = model.planned(0, {})
    starts = played(queue)
    assert isinstance(queue, GuardedPairQueue)
    first = JOBS.submit_time == JOBS.submit_time.min()
    assert set(queue.scored) == set(np.flatnonzero(first).tolist())
    leader = min(queue.scored, key=lambda number: queue.scored[number].rank)
    assert starts[leader] == JOBS.submit_time[leader] or head == "clustered"
    for one in queue.scored.values():
        assert one.baseline == "easy:order=sjf" and one.doubt == "" and len(one.features) == 3
        assert {name for name, _ in one.features} <= set(PAIR_COLUMNS)
        sizes = [abs(change) for _, change in one.features]
        assert sizes == sorted(sizes, reverse=True)


def test_a_doubt_is_explained() -> None:
    queue = with_net(pair_model(seen=SEEN | {"size": (9.0, 10.0)})).planned(0, {})
    played(queue)
    assert {one.doubt for one in queue.scored.values()} == {"a waiting job requests 8 cores, in training 9 to 10 cores"}


def test_a_file_without_what_was_seen_has_no_net() -> None:
    with pytest.raises(ConfigError, match="seen: missing"):
        guarded(pair_model(), "m")


@pytest.mark.parametrize(
    ("verdict", "proven"),
    [
        (BEATS, True),
        (BEATS | {"chosen": "best rule in hindsight"}, False),
        (BEATS | {"number": "wait"}, False),
        (BEATS | {"beats": False}, False),
        (BEATS | {"copies": 19}, False),
        (ON_WINDOWS, False),
    ],
)
def test_only_a_verdict_on_enough_copies_against_its_baseline_proves_it(verdict: dict[str, Any], proven: bool) -> None:
    model = replace(pair_model(seen=SEEN), evaluated=(verdict,))
    assert with_net(model).is_proven == proven


@pytest.mark.parametrize(("nodes", "jobs"), [(4, 50), (100, 50), (400, 25), (10_000, 20)])
def test_more_nodes_are_compared_with_fewer_jobs(nodes: int, jobs: int) -> None:
    kind = NodeType("t", 4, 8e9, 1e10)
    cluster_of_nodes = Cluster("c", tuple(Node(f"n{place}", kind) for place in range(nodes)))
    assert with_net(pair_model(seen=SEEN)).jobs_compared(cluster_of_nodes) == jobs
