"""What is kept is bounded by user: no user displaces what is kept for others."""

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.model.bounded import BoundedByOwner, turns

puts = st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc")), max_size=80)


@given(puts, st.integers(1, 12))
def test_a_user_loses_an_entry_only_while_no_other_has_more(entries, most):
    table, oracle = BoundedByOwner(most), dict[int, tuple[str, int]]()
    for value, (key, owner) in enumerate(entries):
        oracle.pop(key, None)
        oracle[key] = owner, value
        if len(oracle) > most:
            counts = {who: sum(other == who for other, _ in oracle.values()) for who, _ in oracle.values()}
            shared = [who for who, number in counts.items() if number == max(counts.values())]
            table.put(key, value, owner)
            (lost,) = oracle.keys() - {kept for kept, _ in table.items()}
            assert oracle[lost][0] in shared
            assert lost == next(each for each, (who, _) in oracle.items() if who == oracle[lost][0]), "its oldest"
            del oracle[lost]
        else:
            table.put(key, value, owner)
        assert dict(table.items()) == {each: kept for each, (_, kept) in oracle.items()} and len(table) == len(oracle)
    assert all(key in table and table.get(key) == kept for key, (_, kept) in oracle.items())
    assert table.pop(99) is None and table.get(99) is None


def test_one_user_displaces_only_their_own():
    table = BoundedByOwner(100)
    for number in range(30):
        table.put(("ada", number), number, "ada")
    for number in range(6000):
        table.put(("eve", number), number, "eve")
    assert sum(key[0] == "ada" for key, _ in table.items()) == 30 and len(table) == 100


@given(st.lists(st.sampled_from("abc"), max_size=40), st.integers(0, 40))
def test_the_newest_of_each_come_in_turns(owners, most):
    order = turns(owners)
    assert sorted(order) == list(range(len(owners)))
    kept = order[:most]
    counts = {who: sum(owners[place] == who for place in kept) for who in owners}
    for who in set(owners):
        mine = [place for place, owner in enumerate(owners) if owner == who]
        assert sorted(place for place in kept if owners[place] == who) == mine[len(mine) - counts[who] :]
        assert counts[who] == len(mine) or counts[who] >= max(counts.values()) - 1
