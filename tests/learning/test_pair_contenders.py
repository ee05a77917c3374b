"""Models that choose pairs and their rivals: replayed as a service does it, and with the choice of the model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.learning.environments.pair_rules import masked_rules
from pilotfish.learning.environments.pairs import PairEnvironment, PairNode, PairOptions
from pilotfish.learning.environments.site_pairs import cluster_of
from pilotfish.learning.pair_contenders import easy_orders, numbers_on_nodes, rules_with_mask
from pilotfish.learning.traces import Trace
from pilotfish.simulate.learned.pair_network import PairSight
from tests.simulate.learned.test_guarded_pairs import JOBS, with_net
from tests.simulate.learned.test_pair_queue import ROWS, jobs_of
from tests.support.pair_models import PAIR_NODES, SEEN, pair_model

NODES = tuple(PairNode(*node) for node in PAIR_NODES)
TRACE = Trace("t", "0" * 64, JOBS, 24)
SIGHT = pair_model().sight
#: Rules that draw nothing.
EXACT = [rule for rule in masked_rules() if "random" not in (rule.job, rule.node)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("baseline", ["easy:order=sjf", "easy"])
def test_the_replay_is_that_by_which_a_service_overrules_a_model(seed: int, baseline: str) -> None:
    model = with_net(pair_model(seed, seen=SEEN, baseline=baseline))
    of_service = [
        one.start_time - JOBS.submit_time
        for one in model.replays(JOBS, cluster_of(NODES), sum(n for n, _ in PAIR_NODES))
    ]
    name = baseline if "order" in baseline else "easy:order=fcfs"
    for make, waits in zip((lambda: model.replayed(0), easy_orders()[name]), of_service, strict=True):
        numbers = numbers_on_nodes(TRACE, make, NODES)
        assert numbers["wait"] == waits.mean() and numbers["longest_wait"] == waits.max()


@given(ROWS, st.sampled_from(EXACT), st.sampled_from(["any", "largest"]), st.integers(1, 5))
@settings(deadline=None)
def test_a_rule_decides_as_in_the_environment(rows, rule, due: str, visible: int) -> None:
    jobs = jobs_of(rows)
    for objective in ("bsld", "sld", "wait"):
        options = PairOptions(objective, due, len(jobs), rows=visible)
        cost = -rule.returns(PairEnvironment([jobs], NODES, options))[0]
        sight = PairSight(due, visible, options.longest, SIGHT.patience, options.logarithmic)
        numbers = numbers_on_nodes(Trace("t", "", jobs, 24), rules_with_mask(sight, NODES)[rule.name], NODES)
        assert numbers[objective] == pytest.approx(cost)


def test_only_jobs_that_count_are_counted() -> None:
    late, make = TRACE.half(second=True), easy_orders()["easy:order=fcfs"]
    entire, half = (numbers_on_nodes(trace, make, NODES) for trace in (TRACE, late))
    first = numbers_on_nodes(Trace("t", "", JOBS, 24, ~late.counts), make, NODES)
    assert np.mean([half["wait"], first["wait"]]) == pytest.approx(entire["wait"])
    assert max(half["longest_wait"], first["longest_wait"]) == entire["longest_wait"]


def test_rivals_have_names_of_their_own_and_rules_draw_no_jobs() -> None:
    rules = rules_with_mask(SIGHT, NODES)
    assert len(rules) == 16 and not rules.keys() & easy_orders().keys()
    assert not [name for name in rules if name.startswith("random")]
