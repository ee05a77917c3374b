"""The table of the thesis has every rule and every agent, on the same windows."""

from __future__ import annotations

import numpy as np
import pytest

from pilotfish.api import lublin
from pilotfish.learning.environments import thesis
from pilotfish.learning.thesis_table import RULES, thesis_table
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.learned.pair_heads import PairChooser, PairHead
from pilotfish.simulate.learned.pair_network import PairNetwork

JOBS = lublin(1100, 256, load=1.0, seed=5)
ZERO = (0.0,)
#: A network that takes the shortest job, and the biggest node for it.
PAIRS = PairNetwork([((ZERO, (-1e6,), ZERO, ZERO, (1.0,), ZERO, ZERO), ZERO)])
#: The same with a network of its own for the job, which sees no node.
JOBS_ALONE = PairNetwork([((ZERO, (-1e6,), ZERO, ZERO), ZERO)])
AGENTS = {
    "squared": [PairChooser(PairHead(), [PAIRS.scores])],
    "double": [PairChooser(PairHead(jobs_first=True), [JOBS_ALONE.scores, PAIRS.scores])],
}


@pytest.mark.long
def test_an_agent_that_is_a_rule_has_its_results() -> None:
    steps = list[int]()
    results = thesis_table(JOBS, "wait", AGENTS, [0, 50], progress=lambda: steps.append(1))
    assert len(steps) == len(RULES) + 2 and len(results.contests) == len(RULES) and results.windows == 2
    (same,) = (one for one in results.contests if one.rule.name == "shortest job, biggest node" and not one.blocks)
    for agent, (costs,) in results.agents.items():
        assert same.costs == pytest.approx(costs)
        assert same.ratios[agent].ratio == pytest.approx(1.0) and same.ratios[agent].won == 0.0
        for one in results.contests:
            ratio = one.ratios[agent]
            assert ratio.ratio == pytest.approx(float(np.exp(np.log((costs + 1.0) / (one.costs + 1.0)).mean())))
            assert ratio.low <= ratio.ratio <= ratio.high and np.isnan(one.published) != one.blocks
        assert results.beaten(agent, blocks=True)[1] == 12 and results.beaten(agent, blocks=False)[1] == 20
    assert results.against("double", "squared").ratio == pytest.approx(1.0)
    best = results.best(blocks=False)
    assert best.costs.mean() == min(one.costs.mean() for one in results.contests if not one.blocks)


def test_too_few_jobs_are_one_error() -> None:
    with pytest.raises(ConfigError, match="at least 9,984 jobs"):
        thesis_table(JOBS, "bsld", {})
    with pytest.raises(ConfigError, match="at least 1,281 jobs"):
        thesis.training_worlds(JOBS, "bsld")
