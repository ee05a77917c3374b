"""The differences between two lists: applied to the old one they give the new one, and they are small."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.slurm.transport.differences import LONGEST, RUN, differences

LISTS = st.lists(st.integers(0, 5), max_size=40)
#: Changes of a long list: a place, how many elements to drop there, and what to put there.
EDITS = st.lists(st.tuples(st.integers(0, 3 * RUN), st.integers(0, 100), LISTS), max_size=6)


def applied(old: list[int], new: list[int]) -> list[int]:
    found, at = list[int](), 0
    for gone, added in differences(old, new):
        assert at <= gone.start
        found += old[at : gone.start] + new[added]
        at = gone.stop
    return found + old[at:]


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
    new = [each for each in old if each % 5000 != 17]
    new[700:700] = [-1, -2]
    new[9000] = -3
    found = list(differences(old, new))
    assert sum(gone.stop - gone.start for gone, _ in found) == 6
    assert sum(added.stop - added.start for _, added in found) == 3
    moved = old[LONGEST * 2 :] + old[: LONGEST * 2]
    assert applied(old, moved) == moved
