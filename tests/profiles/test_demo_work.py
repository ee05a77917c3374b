"""The demo's programs: a fixed amount of work, the same on every run."""

import itertools
import time

import pytest

from pilotfish.profiles.demo_work import duty, main


def test_cpu_ends_when_the_time_is_used(monkeypatch):
    seconds = itertools.count()
    monkeypatch.setattr("pilotfish.profiles.demo_work.time.thread_time", seconds.__next__)
    assert main(["cpu", "5"]) == 0
    assert next(seconds) == 6


def test_duty_computes_its_share_and_sleeps_the_rest(monkeypatch):
    slept, used = [], [0.0]
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr("pilotfish.profiles.demo_work.compute", lambda until: used.append(until))
    duty(0.25, 2.0)
    assert used[-1] == pytest.approx(0.5)
    assert sum(slept) == pytest.approx(1.5)


def test_bandwidth_counts_cpu_time_only(monkeypatch, capsys):
    """On a busy CPU a stream of the demo moves as much in each of its own seconds."""
    clock = iter(range(100))
    monkeypatch.setattr("pilotfish.profiles.demo_work.time.thread_time", iter((7.0, 7.25)).__next__)
    monkeypatch.setattr("pilotfish.profiles.demo_work.time.perf_counter", lambda: float(next(clock)))
    assert main(["bandwidth", "1.5"]) == 0  # two copies: others used the CPU, too
    assert float(capsys.readouterr().out) == 2 * 2 * 64e6 / 0.25


def test_stream_runs():
    assert main(["stream", "1", "0.01"]) == 0
