"""The comparison of the groups: what counts, what is left out, and what is harm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pilotfish.daemon.canary.comparison import compare, stratum_of
from pilotfish.daemon.state.members import Member

FIRST = Member("slurm/0", "slurm/0", "canary", 0.5, 1, "drawn", 1000, "main", 4, 3600.0, 0.0)


def members(number: int, *, wait_s: float = 0.0, run_s: float = 0.0, seed: int = 1) -> list[Member]:
    """Return jobs of both groups; those of the canary wait and run so much longer."""
    draw, jobs = np.random.default_rng(seed), []
    for one in range(number):
        canary = one % 2 == 0
        start = 10.0 * one + float(draw.exponential(60.0)) + wait_s * canary
        end = start + 600.0 + run_s * canary
        name, side = f"slurm/{one}", "canary" if canary else "control"
        jobs.append(replace(FIRST, key=name, unit=name, side=side, submit_time=10.0 * one, start_time=start,
                            finish_time=end, state="completed"))  # fmt: skip
    return jobs


def test_a_gain_is_found_with_its_size():
    comparison = compare(members(400, wait_s=-50.0), 1e5)
    waiting = comparison.measures["waiting"]
    assert waiting.is_significant and waiting.low <= -40.0 <= waiting.high and not comparison.harm
    assert comparison.jobs == {"canary": 200, "control": 200} and comparison.waiting == {"canary": 0, "control": 0}
    assert comparison.measures["run time"].difference == pytest.approx(0.0, abs=1e-6)


def test_longer_waits_are_harm_unless_runs_are_shorter():
    assert "turnaround is longer" in compare(members(200, wait_s=100.0), 1e5).harm
    assert not compare(members(200, wait_s=100.0, run_s=-200.0), 1e5).harm
    assert not compare(members(200), 1e5).harm


def test_jobs_that_never_start_are_harm_before_any_has_started():
    jobs = [
        replace(one, start_time=None, finish_time=None, state="pending") if one.side == "canary" else one
        for one in members(100)
    ]
    comparison = compare(jobs, 5000.0)
    assert comparison.waiting == {"canary": 50, "control": 0} and "longer than in the control group" in comparison.harm


def test_a_chain_counts_once_and_what_was_not_drawn_does_not():
    jobs = members(100)
    chain = [replace(jobs[0], key=f"slurm/0-{part}", start_time=1e4, finish_time=2e4) for part in range(50)]
    outside = [replace(one, key=f"{one.key}x", unit=f"{one.key}x", compared=0) for one in jobs[:7]]
    unknown = [replace(one, key=f"{one.key}y", unit=f"{one.key}y", state="unknown") for one in jobs[:3]]
    comparison = compare([*jobs, *chain, *outside, *unknown], 1e5)
    assert comparison.measures["waiting"].units == (50, 50)
    assert (comparison.not_drawn, comparison.unknown) == (7, 3)


def test_nothing_is_compared_with_nothing():
    assert set(compare([], 1e5).measures.values()) == {None} and not compare([], 1e5).harm
    comparison = compare(members(10, wait_s=1e4), 1e5)
    assert comparison.measures["waiting"].low is None and not comparison.harm


def test_strata_are_what_was_known_before_the_draw():
    assert stratum_of(FIRST) == stratum_of(replace(FIRST, side="control", start_time=5.0, finish_time=9.0, owner=5))
    for other in ({"share": 0.1}, {"queue": "gpu"}, {"cores": 100}, {"walltime": 90000.0}, {"submit_time": 40000.0}):
        assert stratum_of(replace(FIRST, **other)) != stratum_of(FIRST)
