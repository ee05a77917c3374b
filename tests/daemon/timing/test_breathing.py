"""Clients are answered during a plan, for half of the time at most."""

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.timing.breathing import BREATH_S, Breathing


@given(answers=st.lists(st.floats(0.0, 0.3), min_size=1, max_size=50), runs=st.lists(st.floats(0.0, 0.3), min_size=100))
def test_answers_take_half_of_the_time_and_wait_for_no_more_than_that_and_a_run(answers, runs):
    now, served, begins, rest = 0.0, 0.0, [], list(answers)

    def serve():
        nonlocal now, served
        begins.append(now)
        took = rest.pop(0) if rest else 0.0
        now, served = now + took, served + took

    breathing = Breathing(serve, lambda: now)
    for run in runs:
        before, number = now, len(begins)
        breathing()
        if len(begins) > number and number:
            last_end = begins[-2] + (answers[number - 1] if number - 1 < len(answers) else 0.0)
            waited = before - last_end
            assert waited + 1e-9 >= max(BREATH_S, last_end - begins[-2])
        now += run
    assert served <= (now - served) + max(answers) + 1e-9


def test_a_client_may_cancel_before_the_journal_has_what_a_snapshot_showed(bench, kit) -> None:
    workflow = bench.submit(kit.job("long", seconds=3), kit.job("next", "long", seconds=3), kit.job("other", seconds=3))
    bench.run(3)
    tracker, seen = bench.cycle.tracker, list[dict[str, str]]()

    def cancel() -> None:
        bench.cycle.planner.breathe = lambda: None
        seen.append(bench.states(workflow))
        entries = tracker.queue.submissions[workflow].entries.values()
        tracker.cancel([entry for entry in entries if not entry.state.ended])

    bench.cycle.planner.breathe = cancel
    bench.run(1)
    assert seen == [{"long": "completed", "next": "pending", "other": "completed"}]
    assert bench.states(workflow) == {"long": "completed", "next": "cancelled", "other": "completed"}
    assert workflow not in tracker.queue.submissions and f"{workflow}/next" not in bench.manager.runs
