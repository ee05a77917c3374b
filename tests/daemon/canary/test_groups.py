"""The groups of the canary: random, stable, notes for life, and together where jobs belong together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.canary.groups import BEFORE, CanaryState, Group, Groups, place_of
from pilotfish.daemon.config_sections import HandoverConfig
from pilotfish.simulate.model.snapshot import JobState, JobView
from tests.daemon.conftest import make_job

KEY = "00" * 16
HALF = HandoverConfig(share=0.5)


def view(name: str, **changes) -> JobView:
    job = make_job(name, *changes.pop("after", ()), traits=changes.pop("traits", ()))
    return replace(JobView(f"slurm/{name}", job, JobState.PENDING, submit_time=100.0, offered=True), **changes)


def groups(settings=HALF, members=(), **keys) -> tuple[Groups, list]:
    notes = list(members)
    return Groups(settings, keys.get("key", KEY), members, notes.append), notes


def side(chosen: Groups, one: JobView) -> str:
    why = chosen.why_left(one, 100.0)
    assert bool(why) == (chosen.members[one.key].side == Group.CONTROL)
    return chosen.members[one.key].side


def test_a_share_of_the_jobs_is_handed_over():
    for share in (0.0, 0.1, 0.5, 1.0):
        chosen, _ = groups(HandoverConfig(share=share))
        number = sum(side(chosen, view(str(one))) == Group.CANARY for one in range(4000))
        assert number == pytest.approx(4000 * share, abs=4 * (4000 * share * (1 - share)) ** 0.5)


@given(st.text(max_size=20), st.integers(0, 2**128 - 1))
def test_the_place_of_a_unit_is_stable_and_in_range(unit, key):
    text = f"{key:032x}"
    assert 0.0 <= place_of(text, unit) < 1.0 and place_of(text, unit) == place_of(text, unit)
    assert place_of(text, unit) != place_of(f"{key ^ 1:032x}", unit)


def test_a_restart_and_another_share_move_no_job():
    first, notes = groups()
    sides = {str(one): side(first, view(str(one))) for one in range(100)}
    again, _ = groups(HandoverConfig(share=0.0), members=notes)
    assert {name: side(again, view(name)) for name in sides} == sides
    assert side(again, view("new")) == Group.CONTROL
    again.settings = None
    assert {name: side(again, view(name)) for name in sides} == sides and not again.why_left(view("later"), 100.0)


def test_without_the_journal_the_same_key_draws_the_same():
    sides = [[side(groups()[0], view(str(one))) for one in range(100)] for _ in range(2)]
    assert sides[0] == sides[1]
    assert sides[0] != [side(groups(key="11" * 16)[0], view(str(one))) for one in range(100)]


def test_a_chain_of_jobs_stays_together():
    chosen, _ = groups()
    for one in range(50):
        first = side(chosen, view(f"{one}a"))
        assert side(chosen, view(f"{one}b", after=(f"{one}a",))) == first
        assert side(chosen, view(f"{one}c", after=(f"{one}b",))) == first
        assert {chosen.members[f"slurm/{one}{part}"].unit for part in "abc"} == {f"slurm/{one}a"}


def test_a_held_job_is_drawn_as_any_other_and_its_hold_is_kept():
    chosen, _ = groups()
    sides = [side(chosen, view(str(one), due=700.0, submit_time=97.5)) for one in range(50)]
    assert sides == [side(groups()[0], view(str(one))) for one in range(50)] and set(sides) == set(Group)
    assert all((one.compared, one.held_s) == (1, 2.5) for one in chosen.members.values())


def test_jobs_that_were_handed_over_before_stay_so():
    chosen, _ = groups(HandoverConfig(share=0.0, partitions=["gpu"]))
    chosen.before = {"slurm/1"}
    assert side(chosen, view("1")) == Group.CANARY and chosen.members["slurm/1"].why == BEFORE


def test_other_partitions_are_left_alone_and_have_no_group():
    chosen, notes = groups(HandoverConfig(share=1.0, partitions=["gpu"]))
    assert "handover.partitions" in chosen.why_left(view("1", traits=(("queue", "main"),)), 100.0) and not notes
    assert not chosen.why_left(view("2", traits=(("queue", "main,gpu"),)), 100.0) and len(notes) == 1


def test_without_control_nothing_is_compared():
    chosen, _ = groups(HandoverConfig(share=0.5, control=False))
    sides = {side(chosen, view(str(one))) for one in range(50)}
    assert sides == set(Group) and not any(one.compared for one in chosen.members.values())


def test_a_state_that_cannot_be_read_stays_in_shadow():
    state = CanaryState.of({})
    assert state.stepped_back is None and CanaryState.of(state.kept()) == state
    for notes in ({"key": 3}, {"key": "xy"}, {"key": KEY, "since": "now"}, {"unknown": 1}):
        assert CanaryState.of(notes).stepped_back is not None
