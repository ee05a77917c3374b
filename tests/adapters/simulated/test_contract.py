"""The simulated adapter keeps the contract, on its virtual clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from adapter_contract import AdapterContract, Mind

from pilotfish.adapters import registry
from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Cancel, Submit
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState
from tests.support.played_adapter import Answer, HandOverAdapter
from tests.support.played_manager import SimulatedManager

SMALL = NodeType("small", 2, 1e9, 1e10)
CLUSTER = Cluster("lab", (Node("a", SMALL), Node("b", SMALL)), oversubscription=4.0)


class VirtualWorld:
    """See World in adapter_contract; a job's command contains its exit code."""

    def __init__(self) -> None:
        self.adapter = SimulatedAdapter(
            CLUSTER,
            start_time=1.7e9,
            exit_code=lambda job: int((job.command or ("0",))[-1]),
        )

    def job(self, id: str, seconds: float, exit_code: int = 0, walltime: float | None = None) -> Job:
        profile = Profile((ThreadGroup(1, max(seconds, 1e-3)),))
        return Job(id, profile, walltime=walltime, command=("exit", str(exit_code)))

    def step(self) -> None:
        self.adapter.advance(0.1)

    def restart(self) -> None:
        """Do nothing: jobs are kept in memory."""

    def runs(self, id: str) -> int | None:
        return None

    def only(self) -> JobView:
        """Return the only job."""
        (view,) = self.adapter.snapshot().jobs
        return view


@pytest.fixture
def world() -> VirtualWorld:
    return VirtualWorld()


class PlayedWorld(VirtualWorld):
    """The same with users who hand jobs over."""

    def __init__(self) -> None:
        code = lambda job: int((job.command or ("0",))[-1])  # noqa: E731
        self.manager = SimulatedManager(CLUSTER, start_time=1.7e9, exit_code=code, late_s=2.0)
        self.lost = False
        self.restart()

    def restart(self) -> None:
        self.adapter = HandOverAdapter(self.manager, self._answer)

    def _answer(self, change: bool) -> Answer:
        lost, self.lost = self.lost and change, self.lost and not change
        return Answer.LOST if lost else Answer.GIVEN

    def step(self) -> None:
        self.manager.advance(0.5)

    def runs(self, id: str) -> int:
        return sum(record.starts for record in self.manager.jobs.values() if record.job.id == id)

    def hand_over(self, id: str, seconds: float, hold_s: int) -> str:
        return f"played/{self.manager.submit(self.job(id, seconds), hold_s=hold_s or None)}"

    def user(self, key: str, does: Mind) -> None:
        number, change = int(key.partition("/")[2]), self.manager.change
        {
            Mind.CANCEL: lambda: self.manager.cancel(number),
            Mind.HOLD: lambda: change(number, user_held=True),
            Mind.BEGIN_LATER: lambda: change(number, begin=self.manager.time + 900.0),
            Mind.TAKE_BACK: lambda: change(number, comment="mine"),
            Mind.REQUEUE: lambda: self.manager.requeue(number),
        }[does]()

    def drain(self, node: str, *, drained: bool = True) -> None:
        self.manager.set_node(node, NodeState.DRAINED if drained else NodeState.UP)

    @contextmanager
    def away(self) -> Iterator[None]:
        self.manager.away = True
        yield
        self.manager.away = False

    def lose(self) -> None:
        self.lost = True


class TestHandOverContract(AdapterContract):
    """Run beside a played resource manager."""

    @pytest.fixture
    def world(self) -> PlayedWorld:
        return PlayedWorld()


class TestSimulatedContract(AdapterContract):
    """Run without processes; `restart` changes nothing."""


def test_time_passes_only_in_wait_and_advance(world: VirtualWorld) -> None:
    first = world.adapter.snapshot().time
    assert world.adapter.snapshot().time == first == 1.7e9
    assert world.adapter.wait(2.5) is False
    assert world.adapter.snapshot().time == first + 2.5


def test_a_wait_stops_at_the_end_of_a_job_and_not_before(world: VirtualWorld) -> None:
    world.adapter.apply(Submit("short", world.job("s", 10.0), ("a",)))
    world.adapter.apply(Submit("long", world.job("l", 20.0), ("b",)))
    assert world.adapter.wait(9.0) is False
    assert world.adapter.wait(1e9) is True
    assert world.adapter.time == pytest.approx(1.7e9 + 10.0, abs=1e-5)
    assert world.adapter.wait(float("inf")) is True
    assert world.adapter.time == pytest.approx(1.7e9 + 20.0, abs=1e-5)
    assert world.adapter.wait(float("inf")) is False
    assert world.adapter.time == pytest.approx(1.7e9 + 20.0, abs=1e-5)


def test_a_late_neighbour_slows_a_job_from_then_on(world: VirtualWorld) -> None:
    first, second = (Job(name, Profile((ThreadGroup(2, 10.0),))) for name in "xy")
    world.adapter.apply(Submit("x", first, ("a",)))
    world.adapter.advance(4.0)
    world.adapter.apply(Submit("y", second, ("a",)))
    world.adapter.advance(100.0)
    ends = {view.key: view.finish_time - 1.7e9 for view in world.adapter.snapshot().jobs}
    assert ends == pytest.approx({"x": 4.0 + 12.0, "y": 20.0}, abs=1e-5)


def test_a_cancel_gives_the_cores_back(world: VirtualWorld) -> None:
    first, second = (Job(name, Profile((ThreadGroup(2, 10.0),))) for name in "xy")
    world.adapter.apply(Submit("x", first, ("a",)))
    world.adapter.apply(Submit("y", second, ("a",)))
    world.adapter.advance(4.0)
    world.adapter.apply(Cancel("y"))
    world.adapter.advance(100.0)
    views = {view.key: view for view in world.adapter.snapshot().jobs}
    assert views["y"].state is JobState.CANCELLED and views["y"].exit_code == 143
    assert views["x"].finish_time == pytest.approx(1.7e9 + 12.0, abs=1e-5)


def test_a_walltime_ends_a_job_on_the_second_and_frees_its_neighbour(world: VirtualWorld) -> None:
    world.adapter.apply(Submit("late", Job("l", Profile((ThreadGroup(2, 50.0),)), walltime=4.0), ("a",)))
    world.adapter.apply(Submit("fine", Job("f", Profile((ThreadGroup(2, 10.0),)), walltime=60.0), ("a",)))
    assert world.adapter.wait(1e6) is True
    assert world.adapter.time == pytest.approx(1.7e9 + 4.0, abs=1e-5)
    assert world.adapter.wait(1e6) is True
    late, fine = world.adapter.snapshot().jobs
    assert (late.state, late.signal, late.usage) == (JobState.TIMEOUT, 15, ())
    assert fine.state is JobState.COMPLETED
    assert fine.finish_time == pytest.approx(1.7e9 + 12.0, abs=1e-5)


def test_usage_is_the_true_demand() -> None:
    truth = Profile((ThreadGroup(2, 3.0),))
    adapter = SimulatedAdapter(CLUSTER, truth=lambda job: truth)
    adapter.apply(Submit("x", Job("x", Profile((ThreadGroup(1, 1.0),))), ("a",)))
    adapter.advance(100.0)
    (view,) = adapter.snapshot().jobs
    assert view.finish_time == pytest.approx(3.0)
    assert dict(view.usage) == {"cpu_seconds": 6.0, "threads": 2.0}


def test_only_ended_jobs_are_forgotten(world: VirtualWorld) -> None:
    world.adapter.apply(Submit("k", world.job("a", 1.0), ("a",)))
    with pytest.raises(AdapterError, match="has not ended"):
        world.adapter.forget("k")
    world.adapter.wait(10.0)
    world.adapter.forget("k")
    world.adapter.forget("k")
    assert world.adapter.snapshot().jobs == ()


def test_the_wrong_number_of_nodes_is_refused(world: VirtualWorld) -> None:
    for nodes in (("a", "b"), (), ("a", "a")):
        with pytest.raises(AdapterError) as caught:
            world.adapter.apply(Submit("k", world.job("a", 1.0), nodes))
        assert not caught.value.transient
    assert world.adapter.snapshot().jobs == ()


def test_it_is_created_by_name() -> None:
    assert registry.create("simulated", CLUSTER).snapshot().time == 0.0
    assert registry.create("simulated", CLUSTER, start_time=5).snapshot().time == 5.0
    with pytest.raises(ConfigError, match="unknown option; did you mean 'start_time'"):
        registry.create("simulated", CLUSTER, starttime=5)
    for wrong in ("5", True, float("nan")):
        with pytest.raises(ConfigError, match="start_time: found"):
            registry.create("simulated", CLUSTER, start_time=wrong)
