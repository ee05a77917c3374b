"""When to plan: on news, on drift with growing gaps, and never while the journal cannot be written."""

from __future__ import annotations

import dataclasses

import pytest

from pilotfish.daemon.planning.plan_cache import PlanCache
from pilotfish.daemon.planning.trigger import LONGEST_RECHECK_S, Trigger
from pilotfish.daemon.state.applied import Applied
from pilotfish.simulate.model.plan import Cancel
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState


@pytest.fixture
def trigger(kit) -> Trigger:
    """A trigger that has planned once."""
    made = Trigger(PlanCache(kit.Manager(kit.cluster()), lambda: 0.0))
    assert made.due(kit.Manager(kit.cluster()).snapshot(), [], blocked=False)
    return made


def test_without_news_it_is_due_at_the_recheck_with_growing_gaps(trigger, kit) -> None:
    manager, gaps = kit.Manager(kit.cluster()), []
    trigger.recheck(manager.time, 0.0)
    last = manager.time
    while len(gaps) < 9:
        manager.advance(1.0)
        if trigger.due(manager.snapshot(), [], blocked=False):
            trigger.recheck(manager.time, 0.0)
            gaps.append(manager.time - last)
            last = manager.time
    assert gaps == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, *[LONGEST_RECHECK_S] * 3]


def test_without_a_recheck_it_is_never_due(trigger, kit) -> None:
    manager = kit.Manager(kit.cluster())
    manager.advance(1e9)
    assert not trigger.due(manager.snapshot(), [], blocked=False)


def test_a_policy_that_wants_to_decide_again_is_asked_on_time_but_not_all_the_time(trigger, kit) -> None:
    manager, times = kit.Manager(kit.cluster()), []
    trigger.recheck(manager.time, 50.0)
    trigger.wake(manager.time, 0.25)
    assert trigger.recheck_at == manager.time + 0.25
    while len(times) < 5:
        if trigger.due(manager.snapshot(), [], blocked=False):
            times.append(manager.time - 1000.0)
            trigger.recheck(manager.time, 50.0)
            trigger.wake(manager.time, 0.01)
        manager.advance(0.25)
    assert times == [0.25, 1.25, 2.25, 3.25, 4.25]


def test_a_policy_is_asked_on_time_after_a_plan_that_it_did_not_ask_for(trigger, kit) -> None:
    manager = kit.Manager(kit.cluster())
    trigger.recheck(manager.time, 1.0)
    manager.advance(1.0)
    assert trigger.due(manager.snapshot(), [], blocked=False), "a plan that has drifted"
    trigger.recheck(manager.time, 50.0)
    trigger.wake(manager.time, 0.25)
    assert trigger.recheck_at == manager.time + 0.25


def test_a_node_that_changes_and_a_neighbour_that_ends_are_news(trigger, kit) -> None:
    manager = kit.Manager(kit.cluster())
    manager.states[0] = NodeState.DRAINED
    assert trigger.due(manager.snapshot(), [], blocked=False)
    view = JobView("other/1", kit.job("x"), JobState.RUNNING, ("n2",))
    manager.views[view.key] = view
    assert not trigger.due(manager.snapshot(), [], blocked=False), "a neighbour that starts frees no node"
    manager.views[view.key] = dataclasses.replace(view, state=JobState.COMPLETED)
    assert trigger.due(manager.snapshot(), [], blocked=False)


def test_news_is_kept_while_the_journal_cannot_be_written(trigger, kit) -> None:
    manager = kit.Manager(kit.cluster())
    manager.states[0] = NodeState.DRAINED
    assert not trigger.due(manager.snapshot(), [], blocked=True)
    assert trigger.due(manager.snapshot(), [], blocked=False)
    assert not trigger.due(manager.snapshot(), [], blocked=False)


@pytest.mark.parametrize(
    ("applied", "more", "dry", "changed"),
    [
        (Applied(Cancel("w/a")), True, False, True),
        (Applied(Cancel("w/a")), False, False, False),  # there is nothing more to plan
        (Applied(Cancel("w/a")), True, True, False),  # nothing was really done
        (Applied(Cancel("w/a"), "refused"), True, False, False),
        (Applied(Cancel("w/a"), "no budget", sent=False), False, False, True),
    ],
)
def test_outcomes_that_ask_for_another_plan(trigger, applied, more, dry, changed) -> None:
    trigger.note_applied([applied], more=more, dry=dry)
    assert trigger.changed is changed
