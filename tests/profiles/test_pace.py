"""The pace of looks: whatever a look costs and whenever somebody comes to look, the node keeps its rest."""

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.profiles.pace import SHARE, Pace

LOOKS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 100)), max_size=50)


@given(LOOKS, st.floats(0.0001, 1.0))
def test_all_looks_but_the_last_are_within_the_share(looks, share):
    pace, now, costs = Pace(share), 0.0, []
    for cost, late in looks:
        now = max(now, pace.due) + late
        assert sum(costs) <= share * now * (1 + 1e-9) + 1e-12
        pace.pay(cost, now)
        costs.append(cost)


@given(st.floats(0, 10), st.floats(0, 1e6))
def test_a_look_is_followed_by_its_rest(cost, now):
    assert Pace().pay(cost, now) >= now + cost / SHARE


def test_what_was_paid_too_much_is_given_back():
    pace = Pace(0.01)
    pace.pay(0.5, 100.0)
    assert pace.pay(-0.2, 100.0) == 130.0
