"""The demo's programs: a fixed amount of work, the same on every run."""

import time

import pytest

from pilotfish.profiles.demo_work import duty, main


def test_cpu_ends_when_the_time_is_used():
    target = time.thread_time() + 0.1
    assert main(["cpu", str(target)]) == 0
    assert time.thread_time() == pytest.approx(target, abs=0.01)


def test_duty_computes_its_share_and_sleeps_the_rest(monkeypatch):
    slept, used = [], [0.0]
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr("pilotfish.profiles.demo_work.compute", lambda until: used.append(until))
    duty(0.25, 2.0)
    assert used[-1] == pytest.approx(0.5)
    assert sum(slept) == pytest.approx(1.5)


def test_stream_runs():
    assert main(["stream", "1", "0.01"]) == 0
