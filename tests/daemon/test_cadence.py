"""When the next cycle is due: never late, and whatever is heard, only a share of the time is spent on cycles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.cadence import LARGEST_SHARE, LEAST_GAP_S, LOOKS_S, Cadence


def test_without_events_it_is_a_fixed_cadence() -> None:
    cadence = Cadence(1.0)
    cadence.begin(100.0)
    cadence.end(100.4)
    assert cadence.due(changed=False) == 101.0
    assert cadence.due(changed=True) == 100.0 + LEAST_GAP_S


@pytest.mark.parametrize("every_s", [0.2, 1.0, 600.0])
def test_an_event_is_looked_at_again_until_the_next_cycle_would_do(every_s: float) -> None:
    cadence = Cadence(every_s)
    cadence.begin(100.0)
    cadence.end(100.001)
    cadence.hear(100.1)
    for after in (after for after in LOOKS_S if after < every_s):
        look = cadence.due(changed=False)
        assert look == 100.1 + after
        cadence.begin(look)
        cadence.end(look + 0.001)
    assert cadence.due(changed=False) == pytest.approx(look + every_s)


def test_an_event_during_a_cycle_is_looked_at_after_it() -> None:
    cadence = Cadence(10.0)
    cadence.begin(100.0)
    cadence.hear(100.3)
    cadence.end(100.5)
    assert cadence.due(changed=False) == 100.0 + 0.5 / LARGEST_SHARE


@given(
    lengths=st.lists(st.floats(0.001, 2.0), min_size=2, max_size=20),
    gaps=st.lists(st.floats(0.0, 0.5), min_size=1, max_size=200),
)
def test_a_flood_of_events_causes_only_its_share_of_cycles(lengths: list[float], gaps: list[float]) -> None:
    cadence, now = Cadence(60.0), 1000.0
    due = now
    for number, length in enumerate(lengths):
        now = max(now, due)
        cadence.begin(now)
        began = now
        now += length
        cadence.end(now)
        for gap in gaps[number % len(gaps) :]:
            cadence.hear(now + gap)
        due = cadence.due(changed=False)
        assert began + min(60.0, length / LARGEST_SHARE) - 1e-9 <= due <= began + 60.0


@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=30))
def test_no_event_waits_longer_than_its_first_look(gaps: list[float]) -> None:
    """However often it hears, the look at what was heard first is not put off."""
    cadence, now = Cadence(60.0), 1000.0
    cadence.begin(now)
    cadence.end(now)
    first = now + gaps[0]
    for gap in gaps:
        now += gap
        cadence.hear(now)
        assert cadence.due(changed=False) <= max(first + LOOKS_S[0], 1000.0 + LEAST_GAP_S) + 1e-9
