"""The sampling budget: whatever a sample costs, the node keeps its share."""

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.profiles.measure.sampling_budget import SHARE, SamplingBudget

SAMPLES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 100)), max_size=50)


@given(SAMPLES, st.floats(0.0001, 1.0))
def test_all_samples_but_the_last_keep_the_share(samples, share):
    pace, now, costs = SamplingBudget(share), 0.0, []
    for cost, late in samples:
        now = max(now, pace.due) + late
        assert sum(costs) <= share * now * (1 + 1e-9) + 1e-12
        pace.charge(cost, now)
        costs.append(cost)


@given(st.floats(0, 10), st.floats(0, 1e6))
def test_a_sample_is_followed_by_its_pause(cost, now):
    assert SamplingBudget().charge(cost, now) >= now + cost / SHARE


def test_overcharges_are_returned():
    pace = SamplingBudget(0.01)
    pace.charge(0.5, 100.0)
    assert pace.charge(-0.2, 100.0) == 130.0
