"""Which jobs are handed over and what may be done with them: never more than the site and the user allow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.slurm import create
from pilotfish.adapters.slurm.handed_over.ownership import (
    EXACT_S,
    Ownership,
    SlurmSelection,
    hold_seconds,
    is_held,
    ownership_of,
)
from pilotfish.adapters.slurm.placement.node_constraints import allowed, has_features, obstacle
from pilotfish.adapters.slurm.records import SlurmJob, SlurmNode
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.snapshot import JobState, NodeState

NOW = 1_000_000.0
OURS = SlurmJob(
    7, JobState.PENDING, "BeginTime", uid=5, partition="shared", submit=NOW - 10, begin=NOW + 50, priority=1,
    comment="pilotfish:hold=60",
)  # fmt: skip
BY_COMMENT = SlurmSelection()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, Ownership.HELD),
        ({"comment": "pilotfish"}, Ownership.WAITING),  # the begin time is the user's own
        ({"comment": "pilotfish:hold=300"}, Ownership.WAITING),  # its user moved it, within the hold
        ({"comment": "pilotfish:hold=30"}, Ownership.WAITING),  # so is one that is later than what was set for us
        ({"comment": f"pilotfish:until={NOW + 50:.0f}"}, Ownership.HELD),
        ({"comment": f"pilotfish:until={NOW + 50:.0f};hold=9"}, Ownership.HELD),
        ({"comment": f"pilotfish:until={NOW + 50:.0f}", "restarts": 1}, Ownership.WAITING),
        ({"comment": f"pilotfish:until={NOW + 90:.0f}"}, Ownership.WAITING),  # its user moved it
        ({"comment": f"pilotfish:until={NOW + 30:.0f}"}, Ownership.WAITING),
        ({"comment": f"pilotfish:until={NOW - 40:.0f}"}, Ownership.WAITING),
        ({"restarts": 1}, Ownership.WAITING),  # nor is the one that Slurm gives a requeued job
        ({"comment": "my-pilotfish:hold=60"}, Ownership.NEIGHBOUR),
        ({"comment": ""}, Ownership.NEIGHBOUR),
        ({"begin": NOW - 1, "reason": "Resources"}, Ownership.FREE),
        ({"begin": NOW - 1, "reason": "ReqNodeNotAvail, UnavailableNodes:n1"}, Ownership.FREE),
        ({"begin": NOW - 1, "reason": "JobHeldUser", "priority": 0}, Ownership.WAITING),
        ({"reason": "JobHeldAdmin", "priority": 0}, Ownership.WAITING),  # as `scontrol hold` of root leaves it
        ({"reason": "QOSMaxJobsPerUserLimit"}, Ownership.WAITING),
        ({"reason": "Dependency", "dependency": "afterok:6(unfulfilled)"}, Ownership.WAITING),
        ({"part": True}, Ownership.WAITING),  # held for us: it is let go at once
        ({"reservation": "maintenance"}, Ownership.WAITING),
        ({"part": True, "comment": "pilotfish"}, Ownership.NEIGHBOUR),
        ({"reservation": "maintenance", "begin": NOW - 1, "reason": "Priority"}, Ownership.NEIGHBOUR),
        ({"state": JobState.RUNNING}, Ownership.NEIGHBOUR),
        ({"state": JobState.UNKNOWN}, Ownership.NEIGHBOUR),
    ],
)
def test_ownership(changed: dict[str, object], expected: Ownership) -> None:
    ownership, why = ownership_of(replace(OURS, **changed), BY_COMMENT, NOW)
    assert ownership is expected
    assert bool(why) is (expected is Ownership.WAITING or "part" in changed or "reservation" in changed)


@given(st.integers(-40, 40).map(lambda eighths: eighths / 8))
def test_no_user_is_said_to_have_moved_a_begin_time_that_is_now(ahead: float) -> None:
    """We set begin times to now, and Slurm counts whole seconds."""
    ownership, why = ownership_of(replace(OURS, begin=NOW + ahead), BY_COMMENT, NOW)
    assert ownership is (Ownership.FREE if ahead <= 0 else Ownership.WAITING)
    assert ("moved" in why) is (ahead > EXACT_S) and ("within a second" in why) is (0 < ahead <= EXACT_S)


@given(st.text(), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_a_begin_time_is_ours_only_if_it_matches_the_hold(comment: str, submit: float, begin: float) -> None:
    job = replace(OURS, comment=comment, submit=NOW + submit, begin=NOW + begin)
    if is_held(job, NOW):
        hold = hold_seconds(comment)
        assert hold is not None and submit + hold - 15.0 - 1e-6 <= begin <= submit + hold + 5.0 + 1e-6 and begin > 0


@given(st.integers(-100_000, 100_000), st.floats(-4.9, 14.9))
def test_a_begin_time_in_the_comment_counts_whatever_the_clock_of_the_login_node(ahead: int, early: float) -> None:
    login, until = NOW + ahead, NOW + ahead + 600
    job = replace(OURS, submit=NOW, begin=until - early, comment=f"pilotfish:until={until:.0f}")
    assert is_held(job, NOW) is (job.begin > NOW)
    assert not is_held(replace(job, begin=until + 60), NOW) and not is_held(replace(job, begin=login + 300), NOW)


@pytest.mark.parametrize(
    ("selection", "taken"),
    [
        (SlurmSelection(comment=False), False),
        (SlurmSelection(comment=True), True),
        (SlurmSelection(frozenset({"shared"}), comment=False), True),
        (SlurmSelection(frozenset({"main"}), comment=False), False),
        (SlurmSelection(qos=frozenset({""}), comment=False), True),
        (SlurmSelection(features=frozenset({"fast"}), comment=False), False),
    ],
)
def test_selection(selection: SlurmSelection, taken: bool) -> None:
    assert selection.takes(OURS) is taken


def test_a_requested_feature_hands_a_job_over() -> None:
    selection = SlurmSelection(features=frozenset({"fast"}), comment=False)
    assert selection.takes(replace(OURS, features="big&fast")) and not selection.takes(replace(OURS, features="faster"))


NODES = [
    SlurmNode(f"n{i}", NodeState.UP, 4, 1e9, frozenset({"ssd"} if i < 3 else {"gpu"}), frozenset({"shared"}))
    for i in (1, 2, 3)
] + [SlurmNode("m1", NodeState.UP, 4, 1e9, frozenset({"ssd"}), frozenset({"main"}))]


@pytest.mark.parametrize(
    ("changed", "unwanted", "expected"),
    [
        ({}, (), {"n1", "n2", "n3"}),
        ({}, ("n2",), {"n1", "n3"}),
        ({"features": "ssd"}, (), {"n1", "n2"}),
        ({"features": "ssd|gpu"}, (), {"n1", "n2", "n3"}),
        ({"features": "ssd&gpu"}, (), set()),
        ({"features": "[rack1|rack2]"}, (), set()),
        ({"partition": "main,shared"}, (), {"n1", "n2", "n3", "m1"}),
        ({"wanted": ("n2",)}, (), {"n2"}),
        ({"wanted": ("n2",)}, ("n2",), set()),
        ({"wanted": ("n1", "n2")}, (), set()),  # more names than nodes: which of them is Slurm's choice
    ],
)
def test_allowed_nodes(changed: dict[str, object], unwanted: tuple[str, ...], expected: set[str]) -> None:
    assert allowed(replace(OURS, **changed), NODES, unwanted) == expected


@given(st.text())
def test_any_feature_expression_is_evaluated(expression: str) -> None:
    assert has_features(NODES[0], expression) in (True, False)


def test_a_pin_has_as_many_nodes_as_the_job_asks_for() -> None:
    places = frozenset({"n1", "n2"})
    assert obstacle(OURS, places, ("n1",)) == ""
    assert "asks for 1" in obstacle(OURS, places, ("n1", "n2"))
    assert "asks for 2" in obstacle(replace(OURS, nodes=2), places, ("n1", "n1"))
    assert "n3" in obstacle(OURS, places, ("n3",))


@pytest.mark.parametrize(("comment", "by"), [(True, "sbatch --comment=pilotfish ..."), (False, "")])
def test_a_command_that_hands_jobs_over_is_named_only_where_it_does(comment: bool, by: str) -> None:
    cluster = Cluster("lab", (Node("n1", NodeType("t", 4, 2**32, 1e10)),))
    assert create(cluster, comment=comment, partitions=["main"]).hand_over_by == by
