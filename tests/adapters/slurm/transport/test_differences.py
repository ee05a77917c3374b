"""The differences between two lists: applied to the old one they give the new one, and they are small."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.slurm.transport.differences import LONGEST, RUN, differences

LISTS = st.lists(st.integers(0, 5), max_size=40)
#: Changes of a long list: a place, how many elements to drop there, and what to put there.
EDITS = st.lists(st.tuples(st.integers(0, 3 * RUN), st.integers(0, 100), LISTS), max_size=6)


def applied(old: list[int], new: list[int]) -> list[int]:
    result, at = list[int](), 0
    for removed, added in differences(old, new):
        assert at <= removed.start
        result += old[at : removed.start] + new[added]
        at = removed.stop
    return result + old[at:]


@given(LISTS, LISTS)
def test_they_lead_from_one_list_to_the_other(old: list[int], new: list[int]) -> None:
    assert applied(old, new) == new and (old != new or not list(differences(old, new)))


@given(EDITS)
def test_also_in_long_lists(edits: list[tuple[int, int, list[int]]]) -> None:
    old = list(range(3 * RUN))
    new = old.copy()
    for place, dropped, added in edits:
        new[place : place + dropped] = added
    assert applied(old, new) == new


def test_few_changes_give_few_elements() -> None:
    old = list(range(20 * RUN))
    new = [number for number in old if number % 5000 != 17]
    new[700:700] = [-1, -2]
    new[9000] = -3
    ranges = list(differences(old, new))
    assert sum(removed.stop - removed.start for removed, _ in ranges) == 6
    assert sum(added.stop - added.start for _, added in ranges) == 3
    moved = old[LONGEST * 2 :] + old[: LONGEST * 2]
    assert applied(old, moved) == moved
