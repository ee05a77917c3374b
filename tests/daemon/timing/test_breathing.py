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
