"""What a policy keeps between plans: one object sees each snapshot, makes each plan's policy, and survives a kill."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pilotfish.daemon.planning.guarded_planner import simulate_plan
from pilotfish.daemon.planning.kept_policy import SAVE_S
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.snapshot import Snapshot
from pilotfish.simulate.planning.mapping_policies import POLICIES
from pilotfish.simulate.planning.queue_mapping import QueueMapping
from pilotfish.simulate.queue_policies.interface import Decision, QueuePolicy, QueueView, Start, Wake
from pilotfish.simulate.queue_policies.kept import Kept


class Late:
    """Starts jobs from a time on."""

    def __init__(self, begin: float) -> None:
        self.begin = begin

    def decide(self, now: QueueView) -> Iterator[Decision]:
        """Start what waits, or wait."""
        if now.time < self.begin:
            yield Wake(self.begin)
        else:
            yield from [Start(job) for job in now.waiting]


class AfterHours(Kept):
    """Lets jobs start `wait_s` seconds after the first snapshot that it ever saw."""

    wait_s = 20.0

    def __init__(self) -> None:
        self.first: float | None = None
        self.seen = list[float]()

    def policy(self, seed: int, now: float, cluster: Cluster) -> QueuePolicy:
        """Return the policy of a plan."""
        assert self.first is not None, "it saw the snapshot of the plan"
        return Late(self.first + self.wait_s - now)

    def observe(self, snapshot: Snapshot) -> None:
        """Note the time."""
        self.seen.append(snapshot.time)
        self.first = snapshot.time if self.first is None else self.first

    def state(self) -> dict[str, Any]:
        """Return what must survive."""
        return {"first": self.first}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on."""
        self.first = state.get("first")


@pytest.fixture(autouse=True)
def registered() -> None:
    """Two policies of these, known to the planner."""
    for name in ("after", "later"):
        POLICIES[name] = QueueMapping(name, lambda seed: Late(0.0), keep=AfterHours)


def uses(bench: Any, policy: str) -> None:
    """Configure the policy, as the service does at its start and at a reload."""
    planner = bench.cycle.planner
    planner.make_plan = simulate_plan
    planner.use(dataclasses.replace(planner.options, policy=policy))


@pytest.mark.parametrize("killed_after", [0, 1, 7, 19])
def test_a_kill_changes_nothing(bench: Any, kit: Any, killed_after: int) -> None:
    uses(bench, "after")
    begin = bench.manager.time
    bench.submit(kit.job("a", seconds=2.0, walltime=9.0))
    if killed_after:
        bench.run(killed_after)
        bench.restart()
        uses(bench, "after")
    bench.run(int(AfterHours.wait_s) - killed_after + 3)
    (view,) = bench.manager.views.values()
    assert begin + AfterHours.wait_s <= view.start_time <= begin + AfterHours.wait_s + 2.0


def test_it_sees_each_snapshot_once_and_a_reload_of_the_same_policy_keeps_it(bench: Any) -> None:
    uses(bench, "after")
    kept, begin = bench.cycle.planner.kept.kept, bench.manager.time
    bench.run(3)
    uses(bench, "after")
    assert bench.cycle.planner.kept.kept is kept
    assert kept.seen == [begin, begin + 1.0, begin + 2.0]


def test_another_policy_goes_on_from_its_state_and_one_that_keeps_nothing_ends_it(bench: Any) -> None:
    uses(bench, "after")
    begin = bench.manager.time
    bench.run(3)
    uses(bench, "later")
    bench.run(1)
    assert bench.cycle.planner.kept.kept.first == begin
    uses(bench, "mom")
    assert bench.cycle.planner.kept.kept is None


def test_the_journal_is_not_written_in_each_cycle_for_it(bench: Any) -> None:
    uses(bench, "after")
    writes, save = list[float](), bench.journal.save
    bench.cycle.tracker.write_ahead._journal.save = lambda *args, unsaved, **more: [
        writes.extend([bench.manager.time] if unsaved.kept else []),
        save(*args, unsaved=unsaved, **more),
    ]
    bench.run(int(2 * SAVE_S))
    assert len(writes) == 2
