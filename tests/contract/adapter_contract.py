"""Contract tests for adapters: derive from AdapterContract and provide a fixture `world`.

Rule: a test uses only the protocol. The world creates jobs and lets time pass, so that the same tests hold for real
processes and for a virtual clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import pytest

from pilotfish.adapters.base import Adapter, AdapterError
from pilotfish.simulate.model.job import Job
from pilotfish.simulate.model.plan import Cancel, Start
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot

PATIENCE = 400  # steps


class World(Protocol):
    """An adapter with at least two nodes that take jobs, and what its tests need.

    `job` creates a job that takes about `seconds` and ends with `exit_code`. `step` lets some time pass, at most a
    second of the adapter's clock. `restart` creates the adapter again from what a crash of pilotfish leaves (an adapter
    that keeps its jobs in memory stays). `runs` counts how often the job ran, None if that is unknown.
    """

    adapter: Adapter

    def job(self, id: str, seconds: float, exit_code: int = 0, walltime: float | None = None) -> Job: ...
    def step(self) -> None: ...
    def restart(self) -> None: ...
    def runs(self, id: str) -> int | None: ...


def until(world: World, wanted: Callable[[Snapshot], bool]) -> Snapshot:
    """Step until a snapshot is as wanted; fail if it never is."""
    for _ in range(PATIENCE):
        snapshot = world.adapter.snapshot()
        if wanted(snapshot):
            return snapshot
        world.step()
    raise AssertionError(f"never came: {snapshot.jobs}")


def view(snapshot: Snapshot, key: str) -> JobView:
    """Return the job of this key, which must exist once."""
    (found,) = [job for job in snapshot.jobs if job.key == key]
    return found


def ended(world: World, key: str) -> JobView:
    """Step until the job has ended, and return it."""
    return view(until(world, lambda snapshot: view(snapshot, key).state.ended), key)


class AdapterContract:
    """The contract; a subclass provides the fixture `world`."""

    @pytest.fixture
    def nodes(self, world: World) -> tuple[str, ...]:
        return tuple(node.name for node in world.adapter.snapshot().cluster.nodes)

    def test_an_idle_cluster_has_its_nodes_and_no_jobs(self, world: World) -> None:
        first, second = world.adapter.snapshot(), world.adapter.snapshot()
        assert first.jobs == ()
        assert first.node_states == (NodeState.UP,) * len(first.cluster.nodes)
        assert second.version > first.version
        assert second.time >= first.time
        assert world.adapter.name

    def test_a_started_job_runs_and_completes(self, world: World, nodes: tuple[str, ...]) -> None:
        job = world.job("a", 0.2)
        world.adapter.apply(Start("flow/a", job, nodes[1:2]))
        done = ended(world, "flow/a")
        assert (done.state, done.exit_code, done.signal) == (JobState.COMPLETED, 0, None)
        assert done.nodes == nodes[1:2]
        assert done.job == job
        assert done.submit_time is not None and done.start_time is not None and done.finish_time is not None
        assert done.submit_time <= done.start_time <= done.finish_time
        tick = world.adapter.capabilities.resolution_s
        assert tick or done.start_time < done.finish_time
        assert done.finish_time <= world.adapter.snapshot().time + tick

    def test_a_started_job_never_looks_unstarted(self, world: World, nodes: tuple[str, ...]) -> None:
        world.adapter.apply(Start("k", world.job("a", 0.3), nodes[:1]))
        seen = [view(world.adapter.snapshot(), "k")]
        while not seen[-1].state.ended and len(seen) < PATIENCE:
            world.step()
            seen.append(view(world.adapter.snapshot(), "k"))
        assert not any(look.restartable for look in seen)
        assert seen[-1].state is JobState.COMPLETED

    def test_a_failing_job_keeps_its_exit_code(self, world: World, nodes: tuple[str, ...]) -> None:
        world.adapter.apply(Start("k", world.job("a", 0.0, exit_code=7), nodes[:1]))
        failed = ended(world, "k")
        assert (failed.state, failed.exit_code) == (JobState.FAILED, 7)
        assert "exit code" not in failed.reason  # the code says it

    def test_output_is_two_files_or_unknown(self, world: World, nodes: tuple[str, ...]) -> None:
        world.adapter.apply(Start("k", world.job("a", 0.0), nodes[:1]))
        ended(world, "k")
        files = world.adapter.output("k")
        assert files is None or (len(files) == 2 and all(file.is_file() for file in files))

    def test_an_unknown_job_is_not_on_record(self, world: World) -> None:
        assert not world.adapter.recall({"never/was": world.adapter.snapshot().time})

    def test_a_preview_changes_nothing(self, world: World, nodes: tuple[str, ...]) -> None:
        start = Start("k", world.job("a", 0.0), nodes[:1])
        assert list(world.adapter.preview(start)) == list(world.adapter.preview(start))
        world.step()
        assert world.adapter.snapshot().jobs == ()
        world.adapter.apply(start)
        assert ended(world, "k").exit_code == 0

    def test_starting_twice_starts_once(self, world: World, nodes: tuple[str, ...]) -> None:
        start = Start("k", world.job("a", 0.2), nodes[:1])
        world.adapter.apply(start)
        world.adapter.apply(start)
        first = ended(world, "k")
        world.adapter.apply(start)
        assert ended(world, "k") == first
        assert world.runs("a") in (1, None)

    def test_a_walltime_ends_a_job(self, world: World, nodes: tuple[str, ...]) -> None:
        world.adapter.apply(Start("k", world.job("a", 600.0, walltime=0.3), nodes[:1]))
        over = ended(world, "k")
        assert over.state is JobState.TIMEOUT
        assert over.start_time is not None and over.finish_time is not None
        assert over.finish_time - over.start_time < 600.0

    def test_a_cancel_ends_a_job_and_only_that_one(self, world: World, nodes: tuple[str, ...]) -> None:
        world.adapter.apply(Start("k", world.job("a", 600.0), nodes[:1]))
        world.adapter.apply(Start("other", world.job("b", 0.5), nodes[1:2]))
        until(world, lambda snapshot: view(snapshot, "k").state is JobState.RUNNING)
        world.adapter.apply(Cancel("k"))
        world.adapter.apply(Cancel("k"))
        assert ended(world, "k").state is JobState.CANCELLED
        assert ended(world, "other").state is JobState.COMPLETED

    def test_a_cancel_changes_nothing_that_ended_or_never_was(self, world: World, nodes: tuple[str, ...]) -> None:
        world.adapter.apply(Start("k", world.job("a", 0.0), nodes[:1]))
        before = ended(world, "k")
        world.adapter.apply(Cancel("k"))
        world.adapter.apply(Cancel("never"))
        assert world.adapter.snapshot().jobs == (before,)

    def test_an_unknown_node_is_refused_and_leaves_nothing(self, world: World) -> None:
        with pytest.raises(AdapterError) as caught:
            world.adapter.apply(Start("k", world.job("a", 0.0), ("no-such-node",)))
        assert not caught.value.transient
        assert "no-such-node" in str(caught.value)
        assert world.adapter.snapshot().jobs == ()

    def test_a_job_on_two_nodes_has_both(self, world: World, nodes: tuple[str, ...]) -> None:
        world.adapter.apply(Start("k", replace(world.job("a", 0.1), nodes=2), nodes[:2]))
        assert ended(world, "k").nodes == nodes[:2]

    @pytest.mark.parametrize("key", ["flow/a", "..", "a b\n\"c'", "é/ß%2F", "x" * 300, "-rf *"])
    def test_any_key_comes_back(self, world: World, nodes: tuple[str, ...], key: str) -> None:
        world.adapter.apply(Start(key, world.job("a", 0.0), nodes[:1]))
        assert ended(world, key).state is JobState.COMPLETED

    def test_a_wait_ends_when_a_job_does(self, world: World, nodes: tuple[str, ...]) -> None:
        assert world.adapter.wait(0.0) is False
        world.adapter.apply(Start("k", world.job("a", 0.2), nodes[:1]))
        if world.adapter.capabilities.events:
            assert world.adapter.wait(60.0) is True
        assert ended(world, "k").state is JobState.COMPLETED

    def test_jobs_outlive_the_adapter(self, world: World, nodes: tuple[str, ...]) -> None:
        start = Start("k", world.job("a", 0.5, exit_code=3), nodes[:1])
        world.adapter.apply(start)
        world.restart()
        world.adapter.apply(start)
        assert ended(world, "k").exit_code == 3
        world.restart()
        assert ended(world, "k").exit_code == 3
        assert world.runs("a") in (1, None)

    def test_closing_ends_no_job_and_releases_the_cluster(self, world: World, nodes: tuple[str, ...]) -> None:
        world.adapter.apply(Start("long", world.job("a", 600.0), nodes[:1]))
        world.adapter.apply(Start("short", world.job("b", 0.5, exit_code=3), nodes[1:2]))
        before = view(until(world, lambda snapshot: view(snapshot, "long").start_time is not None), "long")
        world.adapter.close()
        world.adapter.close()
        world.restart()
        after = view(world.adapter.snapshot(), "long")
        assert before.state is JobState.RUNNING
        assert replace(after, job=before.job) == before
        assert ended(world, "short").exit_code == 3
        world.adapter.apply(Cancel("long"))
        assert ended(world, "long").state is JobState.CANCELLED
        assert (world.runs("a"), world.runs("b")) in ((1, 1), (None, None))
