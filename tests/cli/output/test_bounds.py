"""The distance of a plan to the lower bound in words, and the best of several equal plans."""

from __future__ import annotations

from dataclasses import replace

from pilotfish.cli.output.tables import best_of, bound
from pilotfish.simulate.model.plan import Plan

PLAN = Plan("w", "c", "mom", 0, 10.0, None, 10.0, 0.0, False, 1, ())


def test_only_a_plan_that_meets_the_bound_is_called_optimal() -> None:
    assert bound(PLAN).startswith("optimal")
    assert bound(replace(PLAN, makespan=11.0)) == "within 10 % of the proven lower bound of 10.00 s"
    assert bound(replace(PLAN, lower_bound=0.0)) == "no lower bound"


def test_among_equal_plans_the_searched_one_is_best() -> None:
    assert best_of([3.0, 2.0, 2.0 * (1 + 1e-12), 4.0]) == 2
    assert best_of([1.0, 1.0, 1.1]) == 1
