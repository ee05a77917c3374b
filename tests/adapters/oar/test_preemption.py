"""Besteffort jobs hold their nodes until a job that is handed over fits nowhere else."""

from __future__ import annotations

from pilotfish.adapters.oar.preemption import WHY, with_room
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.snapshot import JobState, JobView

CLUSTER = Cluster("pilot", tuple(Node(f"n{n}", NodeType("t", 2, 1e9, 1e9)) for n in range(1, 4)))
UP = frozenset(CLUSTER.index)


def job(cores: int, nodes: int = 1, **other: object) -> Job:
    return Job("j", Profile((ThreadGroup(cores, 60.0),)), nodes=nodes, **other)


def runs(key: str, cores: int, *nodes: str) -> JobView:
    return JobView(key, job(cores, len(nodes)), JobState.RUNNING, nodes, preemptible=key.startswith("b"))


def waits(key: str, asked: Job, waits: str = "") -> JobView:
    return JobView(key, asked, JobState.PENDING, offered=True, restartable=True, waits=waits)


def gone(*views: JobView, up: frozenset[str] = UP) -> set[str]:
    """The besteffort jobs (keys with a b) that are shown without nodes."""
    changed = with_room(views, CLUSTER, up)
    assert [view.key for view in changed] == [view.key for view in views]
    assert all(view.yields == before.nodes for view, before in zip(changed, views, strict=True) if not view.nodes)
    assert all(view.reason == WHY for view in changed if view.key.startswith("b") and not view.nodes)
    return {view.key for view, before in zip(changed, views, strict=True) if before.nodes and not view.nodes}


def test_none_yields_while_all_fit() -> None:
    assert gone(runs("b1", 2, "n1"), runs("b2", 1, "n2"), waits("w", job(1)), waits("x", job(2))) == set()
    assert gone(runs("b1", 2, "n1"), runs("b2", 2, "n2"), runs("b3", 2, "n3")) == set()


def test_the_fewest_cores_yield_and_only_for_jobs_that_may_start() -> None:
    full = [runs("b1", 1, "n1"), runs("b1x", 1, "n1"), runs("b2", 2, "n2"), runs("b3", 1, "n3"), runs("r", 1, "n3")]
    assert gone(*full, waits("w", job(1))) == {"b3"}
    assert gone(*full, waits("w", job(1)), waits("x", job(2))) == {"b3", "b1", "b1x"}
    assert gone(*full, waits("w", job(1), waits="it is held")) == set()
    assert gone(*full, waits("w", job(1, allowed=frozenset({"n2"})))) == {"b2"}
    assert gone(*full, waits("w", job(1)), up=frozenset({"n2"})) == {"b2"}


def test_none_yields_where_that_would_not_help() -> None:
    full = [runs("r1", 2, "n1"), runs("r2", 1, "n2"), runs("b2", 1, "n2"), runs("r3", 2, "n3")]
    assert gone(*full, waits("w", job(2))) == set()
    assert gone(*full, waits("w", job(1, 2))) == set()


def test_a_job_of_several_nodes_yields_as_a_whole_and_once() -> None:
    full = [runs("b", 2, "n1", "n2", "n3")]
    assert gone(*full, waits("w", job(2, 2)), waits("x", job(2))) == {"b"}
