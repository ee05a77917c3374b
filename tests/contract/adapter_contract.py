"""Contract tests for adapters: derive from AdapterContract and provide a fixture `world`.

Rule: a test uses only the protocol. The world creates jobs and lets time pass, so that the same tests hold for real
processes and for a virtual clock.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from enum import StrEnum
from typing import Protocol

import pytest

from pilotfish.adapters import registry
from pilotfish.adapters.base import Adapter, AdapterError
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.job import Job
from pilotfish.simulate.model.observed_queue import ObservedQueue
from pilotfish.simulate.model.plan import Cancel, Place, Release, Submit, SubmitAhead
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot

PATIENCE = 400  # steps
LONG_S = 600  # a hold that no test lives to see the end of
HEARTBEAT_S = 20.0
MISSING = "Install the adapter's package, or put the folder with its entry_points.txt on PYTHONPATH."


class Mind(StrEnum):
    """What a user may do to a job that was handed over."""

    CANCEL = "cancel"
    HOLD = "hold"
    BEGIN_LATER = "begin later"
    TAKE_BACK = "take back"
    REQUEUE = "requeue"


class World(Protocol):
    """An adapter with at least two nodes that take jobs, and what its tests need.

    `job` creates a job that takes about `seconds` and ends with `exit_code`. `step` lets some time pass, at most a
    second of the adapter's clock. `restart` creates the adapter again from what a crash of pilotfish leaves (an adapter
    that keeps its jobs in memory stays). `runs` counts how often the job ran, None if that is unknown.

    The others are needed by adapters with HandOver alone. `hand_over` lets a user submit a job of one core that is held
    for `hold_s` seconds, and returns its key. `user` lets its user do something, see `Mind`. `drain` lets a node take
    no more jobs, or take them again. While it is `away`, the manager answers nothing; `lose` loses the answer to the
    next change.
    """

    adapter: Adapter

    def job(self, id: str, seconds: float, exit_code: int = 0, walltime: float | None = None) -> Job: ...
    def step(self) -> None: ...
    def restart(self) -> None: ...
    def runs(self, id: str) -> int | None: ...
    def hand_over(self, id: str, seconds: float, hold_s: int) -> str: ...
    def user(self, key: str, does: Mind) -> None: ...
    def drain(self, node: str, *, drained: bool = True) -> None: ...
    def away(self) -> AbstractContextManager[None]: ...
    def lose(self) -> None: ...


def until(world: World, wanted: Callable[[Snapshot], bool]) -> Snapshot:
    """Step until a snapshot is as wanted; fail if it never is."""
    for _ in range(PATIENCE):
        snapshot = world.adapter.snapshot()
        if wanted(snapshot):
            _compare_queue(world.adapter.queue(), snapshot)
            return snapshot
        world.adapter.keep_holding(snapshot.time + HEARTBEAT_S)
        world.step()
    raise AssertionError(f"never came: {snapshot.jobs}")


def _compare_queue(queue: ObservedQueue | None, snapshot: Snapshot) -> None:
    """Assert that the whole queue, where it is known, is that of the snapshot."""
    shown = {job.key: job for job in queue.jobs} if queue else {}
    for job in snapshot.jobs if queue else ():
        seen = shown.get(job.key)
        taken = job.key.startswith("slurm/+")  # cores of a node that Slurm shows no job for
        assert seen is not None or job.state.ended or taken, f"{job.key} is missing"
        if seen is not None and seen.state.ended:
            assert job.state.ended or job.restartable, f"{job.key} has ended"
        elif seen is not None and not job.state.ended:
            assert seen.waiting == (job.state is JobState.PENDING)
            assert seen.waiting or (seen.where, seen.nodes) == (frozenset(job.nodes), len(job.nodes))
            assert seen.unknown or not seen.waiting or len(seen.where) >= seen.nodes > 0


def view(snapshot: Snapshot, key: str) -> JobView:
    """Return the job of this key, which must exist once."""
    (found,) = [job for job in snapshot.jobs if job.key == key]
    return found


def ended(world: World, key: str) -> JobView:
    """Step until the job has ended, and return it."""
    return view(until(world, lambda snapshot: view(snapshot, key).state.ended), key)


class AdapterContract:
    """The contract; a subclass provides the fixture `world`.

    With the name of its adapter, such as `adapter="toy"`, a subclass is one error if pilotfish does not find that one.
    """

    def __init_subclass__(cls, *, adapter: str = "") -> None:
        super().__init_subclass__()
        if adapter:
            try:
                registry.require(adapter)
            except ConfigError as error:
                raise pytest.Collector.CollectError(f"{error}\n{MISSING}") from None

    #: Keys that come back.
    keys: tuple[str, ...] = ("flow/a", "..", "a b\n\"c'", "é/ß%2F", "x" * 300, "-rf *")

    @pytest.fixture
    def nodes(self, world: World) -> tuple[str, ...]:
        return tuple(node.name for node in world.adapter.snapshot().cluster.nodes)

    def test_an_idle_cluster_has_its_nodes_and_no_jobs(self, world: World) -> None:
        assert world.adapter.wait(0.0) is False
        first, second = world.adapter.snapshot(), world.adapter.snapshot()
        assert first.jobs == ()
        assert first.node_states == (NodeState.UP,) * len(first.cluster.nodes)
        assert second.version > first.version
        assert second.time >= first.time
        assert world.adapter.name

    def test_a_job_is_previewed_starts_once_and_completes(self, world: World, nodes: tuple[str, ...]) -> None:
        """One that has started never looks unstarted, and nothing changes one that has ended."""
        job = world.job("a", 0.3)
        start = Submit("flow/a", job, nodes[1:2])
        assert list(world.adapter.preview(start)) == list(world.adapter.preview(start))
        world.step()
        assert world.adapter.snapshot().jobs == ()
        world.adapter.apply(start)
        world.adapter.apply(start)
        seen = [view(world.adapter.snapshot(), "flow/a")]
        if world.adapter.capabilities.events and not seen[0].state.ended:
            assert world.adapter.wait(60.0) is True
        while not seen[-1].state.ended and len(seen) < PATIENCE:
            world.step()
            seen.append(view(world.adapter.snapshot(), "flow/a"))
        assert not any(look.restartable for look in seen)
        done = seen[-1]
        assert (done.state, done.exit_code, done.signal) == (JobState.COMPLETED, 0, None)
        assert (done.nodes, done.job) == (nodes[1:2], job)
        assert done.submit_time is not None and done.start_time is not None and done.finish_time is not None
        assert done.submit_time <= done.start_time <= done.finish_time
        tick = world.adapter.capabilities.resolution_s
        assert tick or done.start_time < done.finish_time
        assert done.finish_time <= world.adapter.snapshot().time + tick
        files = world.adapter.output("flow/a")
        assert files is None or (len(files) == 2 and all(file.is_file() for file in files))
        for action in (start, Cancel("flow/a"), Cancel("never")):
            world.adapter.apply(action)
        assert world.adapter.snapshot().jobs == (done,)
        assert world.runs("a") in (1, None)

    def test_a_job_on_two_nodes_has_both_and_cores_on_both_or_none(self, world: World, nodes: tuple[str, ...]) -> None:
        world.adapter.apply(Submit("k", replace(world.job("a", 0.2), nodes=2), nodes[:2]))
        done = ended(world, "k")
        assert done.nodes == nodes[:2]
        assert len(done.cores) in (0, 2) and all(done.cores)
        own = {node.name: node.cpus for node in world.adapter.snapshot().cluster.nodes}
        if all(own.values()):
            assert done.cores == tuple(own[name] for name in done.nodes)

    def test_jobs_end_by_a_cancel_their_walltime_or_themselves(self, world: World, nodes: tuple[str, ...]) -> None:
        world.adapter.apply(Submit("over", world.job("c", 600.0, walltime=0.3), nodes[1:2]))
        world.adapter.apply(Submit("k", world.job("a", 600.0), nodes[:1]))
        until(world, lambda snapshot: view(snapshot, "k").state is JobState.RUNNING)
        world.adapter.apply(Submit("other", world.job("b", 0.5, exit_code=7), nodes[:1]))
        world.adapter.apply(Cancel("k"))
        world.adapter.apply(Cancel("k"))
        assert ended(world, "k").state is JobState.CANCELLED
        failed = ended(world, "other")
        assert (failed.state, failed.exit_code) == (JobState.FAILED, 7)
        assert "exit code" not in failed.reason  # the code says it
        over = ended(world, "over")
        assert over.state is JobState.TIMEOUT
        assert over.start_time is not None and over.finish_time is not None
        assert over.finish_time - over.start_time < 600.0

    def test_an_unknown_job_is_not_on_record(self, world: World) -> None:
        assert not world.adapter.recall({"never/was": world.adapter.snapshot().time})

    def test_an_unknown_node_is_refused_and_leaves_nothing(self, world: World) -> None:
        with pytest.raises(AdapterError) as caught:
            world.adapter.apply(Submit("k", world.job("a", 0.0), ("no-such-node",)))
        assert not caught.value.transient
        assert "no-such-node" in str(caught.value)
        assert world.adapter.snapshot().jobs == ()

    def test_any_key_comes_back(self, world: World, nodes: tuple[str, ...]) -> None:
        for key in self.keys:
            world.adapter.apply(Submit(key, world.job("a", 0.0), nodes[:1]))
        assert {ended(world, key).state for key in self.keys} == {JobState.COMPLETED}

    def test_jobs_outlive_the_adapter(self, world: World, nodes: tuple[str, ...]) -> None:
        start = Submit("k", world.job("a", 0.5, exit_code=3), nodes[:1])
        world.adapter.apply(start)
        world.restart()
        world.adapter.apply(start)
        assert ended(world, "k").exit_code == 3
        world.restart()
        assert ended(world, "k").exit_code == 3
        assert world.runs("a") in (1, None)

    def test_closing_ends_no_job_and_releases_the_cluster(self, world: World, nodes: tuple[str, ...]) -> None:
        world.adapter.apply(Submit("long", world.job("a", 600.0), nodes[:1]))
        world.adapter.apply(Submit("short", world.job("b", 0.5, exit_code=3), nodes[1:2]))
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

    def test_a_job_that_is_submitted_ahead_begins_where_it_is_submitted(
        self, world: World, nodes: tuple[str, ...]
    ) -> None:
        if not world.adapter.capabilities.ahead_s:
            pytest.skip(f"the adapter {world.adapter.name} submits no jobs ahead")
        before, after, never = world.job("a", 1.0), world.job("b", 0.2), world.job("c", 0.2)
        first = Submit("flow/a", before, nodes[:1], followed=True)
        second = SubmitAhead("flow/b", after, (("flow/a", before),))
        for action in (first, second, second, SubmitAhead("flow/c", never)):
            world.adapter.apply(action)
        snapshot = until(world, lambda snapshot: view(snapshot, "flow/a").state.ended)
        for waits in (view(snapshot, key) for key in ("flow/b", "flow/c")):
            assert (waits.state, waits.restartable, waits.ahead, waits.nodes) == (JobState.PENDING, True, True, ())
        world.restart()
        world.adapter.apply(Cancel("flow/c"))
        world.adapter.apply(second)
        start = Submit("flow/b", after, nodes[1:2])
        world.adapter.apply(start)
        world.adapter.apply(start)
        done = ended(world, "flow/b")
        world.adapter.apply(second)
        assert (done.state, done.nodes, done.ahead) == (JobState.COMPLETED, nodes[1:2], False)
        assert view(world.adapter.snapshot(), "flow/c").state is JobState.CANCELLED
        assert (world.runs("a"), world.runs("b"), world.runs("c")) == (1, 1, 0)

    # Jobs that are handed over.

    @pytest.fixture
    def placing(self, world: World, nodes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the nodes, or skip where no jobs are handed over."""
        if not world.adapter.capabilities.offers:
            pytest.skip(f"the adapter {world.adapter.name} has no HandOver")
        world.adapter.snapshot()
        world.adapter.keep_holding(world.adapter.snapshot().time + HEARTBEAT_S)
        return nodes

    def test_a_held_job_starts_by_itself_at_its_deadline(self, world: World, placing: tuple[str, ...]) -> None:
        """Its record may be late and is never wrong, where there is one."""
        key = world.hand_over("a", 0.2, 3)
        first = world.adapter.snapshot()
        seen = [first]
        while not view(seen[-1], key).state.ended and len(seen) < PATIENCE:
            world.adapter.keep_holding(seen[-1].time + HEARTBEAT_S)
            world.step()
            seen.append(world.adapter.snapshot())
        done = view(seen[-1], key)
        assert done.submit_time is not None and done.start_time is not None
        due = done.submit_time + 3 - world.adapter.capabilities.resolution_s
        for look in (view(snapshot, key) for snapshot in seen if snapshot.time < due):
            assert look.offered and look.restartable and look.state is JobState.PENDING
        assert done.start_time >= due
        assert (done.state, done.pinned_since, world.runs("a")) == (JobState.COMPLETED, None, 1)
        if world.adapter.recall({key: first.time}) is None:
            return  # no record is kept here
        for _ in range(PATIENCE):
            found = world.adapter.recall({key: first.time})
            assert found is not None
            if key in found and found[key].state.ended:
                break
            assert key not in found or found[key].state is JobState.UNKNOWN
            world.step()
        assert found is not None
        assert (found[key].state, found[key].nodes) == (done.state, done.nodes)

    def test_looking_prolongs_no_hold(self, world: World, placing: tuple[str, ...]) -> None:
        """A dry run looks, and so does a daemon whose cycles fail."""
        key = world.hand_over("a", 0.2, 3)
        world.adapter.keep_holding(world.adapter.snapshot().time + 1)
        for _ in range(PATIENCE):
            seen = view(world.adapter.refresh([key]), key)
            if seen.state.ended:
                break
            world.adapter.preview(Place(key, seen.job, placing[:1]))
            world.adapter.preview(Release(key, "a dry run"))
            world.step()
        assert (seen.state, world.runs("a")) == (JobState.COMPLETED, 1)

    def test_what_is_placed_or_released_starts_once_also_if_we_die_after_it(
        self, world: World, placing: tuple[str, ...]
    ) -> None:
        """A placed job starts on its nodes, and a release ends a hold for good."""
        placed, released = world.hand_over("a", 0.2, LONG_S), world.hand_over("b", 0.2, LONG_S)
        place = Place(placed, view(world.adapter.snapshot(), placed).job, placing[1:2])
        release = Release(released, "there is nothing to choose")
        for action in (place, release):
            world.adapter.apply(action)
            world.adapter.apply(action)
            shown = view(world.adapter.snapshot(), action.key)
            assert action is place or not shown.offered or shown.state is not JobState.PENDING
            world.restart()
            world.adapter.snapshot()
            world.adapter.apply(action)
        done = ended(world, placed)
        world.adapter.apply(place)
        assert done.submit_time is not None and done.start_time is not None
        assert done.start_time < done.submit_time + LONG_S
        assert (done.state, done.nodes) == (JobState.COMPLETED, placing[1:2])
        assert ended(world, released).state is JobState.COMPLETED
        assert (world.runs("a"), world.runs("b")) == (1, 1)

    def test_a_job_that_is_not_held_runs_once(self, world: World, placing: tuple[str, ...]) -> None:
        key = world.hand_over("a", 0.2, 0)
        for _ in range(PATIENCE):
            seen = view(world.adapter.snapshot(), key)
            if seen.state is not JobState.PENDING:
                break
            if seen.restartable and not seen.waits:
                with suppress(AdapterError):  # it may have begun elsewhere
                    world.adapter.apply(Place(key, seen.job, placing[1:2]))
            world.step()
        assert (ended(world, key).state, world.runs("a")) == (JobState.COMPLETED, 1)

    @pytest.mark.parametrize("does", [Mind.HOLD, Mind.BEGIN_LATER, Mind.TAKE_BACK, Mind.CANCEL])
    def test_what_a_user_has_changed_is_the_users(self, world: World, placing: tuple[str, ...], does: Mind) -> None:
        key = world.hand_over("a", 0.2, LONG_S)
        place = Place(key, view(world.adapter.snapshot(), key).job, placing[:1])
        world.user(key, does)
        before = [job for job in world.adapter.refresh([key]).jobs if job.key == key]
        if does is not Mind.CANCEL:
            with pytest.raises(AdapterError, match=key) as caught:
                world.adapter.apply(place)
            assert not caught.value.transient
            assert not before[0].offered or before[0].waits
        for _ in range(6):
            world.step()
            after = [job for job in world.adapter.snapshot().jobs if job.key == key]
            assert [job.state for job in after] == [job.state for job in before]
            assert not any(job.pinned_since for job in after)
        assert world.runs("a") == 0

    def test_a_job_that_starts_while_we_look_away_is_left_alone(self, world: World, placing: tuple[str, ...]) -> None:
        key = world.hand_over("a", 600.0, 2)
        asked = view(world.adapter.snapshot(), key).job
        begun = view(until(world, lambda snapshot: view(snapshot, key).state is JobState.RUNNING), key)
        world.adapter.apply(Place(key, asked, placing[-1:]))
        world.adapter.apply(Release(key))
        world.step()
        assert view(world.adapter.snapshot(), key) == begun
        world.user(key, Mind.CANCEL)
        ended(world, key)

    def test_a_pin_that_a_requeue_left_on_a_bad_node_is_undone(self, world: World, placing: tuple[str, ...]) -> None:
        if not world.adapter.capabilities.pins_stay:
            pytest.skip(f"no pin of the adapter {world.adapter.name} outlives a start")
        key = world.hand_over("a", 2.5, LONG_S)
        world.adapter.apply(Place(key, view(world.adapter.snapshot(), key).job, placing[:1]))
        until(world, lambda snapshot: view(snapshot, key).state is JobState.RUNNING)
        world.drain(placing[0])
        world.user(key, Mind.REQUEUE)
        until(world, lambda snapshot: view(snapshot, key).pinned_since is not None)
        world.restart()
        world.adapter.snapshot()
        world.adapter.apply(Release(key))
        world.adapter.apply(Release(key))
        assert view(world.adapter.snapshot(), key).pinned_since is None
        assert ended(world, key).nodes[0] in placing[1:]
        world.drain(placing[0], drained=False)
        assert world.runs("a") == 2

    def test_a_lost_answer_is_no_second_start(self, world: World, placing: tuple[str, ...]) -> None:
        key = world.hand_over("a", 0.2, LONG_S)
        place = Place(key, view(world.adapter.snapshot(), key).job, placing[:1])
        submit = Submit("flow/b", world.job("b", 0.2), placing[1:2])
        for action in (place, submit):
            world.lose()
            with pytest.raises(AdapterError) as caught:
                world.adapter.apply(action)
            assert caught.value.transient
            world.adapter.apply(action)
        assert ended(world, key).nodes == placing[:1] and ended(world, "flow/b").nodes == placing[1:2]
        assert world.runs("a") == 1 and world.runs("b") in (1, None)

    def test_a_manager_that_is_away_is_no_empty_cluster(self, world: World, placing: tuple[str, ...]) -> None:
        key = world.hand_over("a", 0.2, LONG_S)
        world.adapter.snapshot()
        with world.away():
            for ask in (world.adapter.snapshot, lambda: world.adapter.refresh([key])):
                with pytest.raises(AdapterError):
                    ask()
        assert view(world.adapter.snapshot(), key).offered

    def test_a_job_of_our_own_never_takes_the_key_of_a_users(self, world: World, placing: tuple[str, ...]) -> None:
        key = world.hand_over("a", 0.2, LONG_S)
        job = view(world.adapter.snapshot(), key).job
        with pytest.raises(AdapterError, match=key):
            world.adapter.apply(Submit(key, job, placing[:1]))
        with pytest.raises(AdapterError, match="flow/b"):
            world.adapter.apply(Place("flow/b", job, placing[:1]))
        assert view(world.adapter.snapshot(), key).offered and world.runs("a") == 0
