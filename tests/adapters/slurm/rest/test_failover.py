"""Failover from REST to commands: reads are answered, nothing is written twice, and one line is logged."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import Activity, AdapterError, ParseError
from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.placement.limits import Limits
from pilotfish.adapters.slurm.placement.partitions import Partition, SlurmReservation
from pilotfish.adapters.slurm.records import SlurmJob, SlurmNode
from pilotfish.adapters.slurm.rest.errors import NotDone, Unauthorised
from pilotfish.adapters.slurm.rest.failover import LONGEST_GAP_S, FailoverTransport
from pilotfish.adapters.slurm.transport.sacct import UsageEntry
from pilotfish.adapters.slurm.transport.scontrol import ControllerSettings
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.plan import Cancel, PowerOff, PowerOn
from pilotfish.simulate.model.snapshot import JobState
from tests.support.clock import Clock


class Way:
    """A transport of one job that can be made to fail; `calls` are the requests."""

    def __init__(self, id: int) -> None:
        self.id, self.calls = id, list[str]()
        self.fails: AdapterError | None = None
        self.notes: Sequence[str] = (f"way {id}",)
        self.shows_all, self.queue = True, [SlurmJob(id, JobState.PENDING)]

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.fails:
            raise self.fails

    def jobs(self, ids: Collection[int] = ()) -> list[SlurmJob]:
        self._called(f"jobs {list(ids)}")
        return self.queue

    def excluded(self) -> dict[int, tuple[str, ...]]:
        self._called("excluded")
        return {self.id: ("n1",)}

    def nodes(self) -> list[SlurmNode]:
        self._called("nodes")
        return []

    def resized(self, job: int) -> bool:
        self._called(f"resized {job}")
        return False

    def time(self) -> float:
        self._called("time")
        return float(self.id)

    def activity(self) -> Activity:
        self._called("activity")
        return Activity(self.id)

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        self._called("update")

    def hidden_fields(self) -> dict[int, SlurmJob]:
        self._called("unshown")
        return {1: SlurmJob(1, JobState.PENDING, planned=("n9",), special="a number of switches")}

    def partitions(self) -> dict[str, Partition]:
        self._called("partitions")
        return {}

    def reservations(self) -> list[SlurmReservation]:
        self._called("reservations")
        return []

    def limits(self) -> Limits:
        self._called("limits")
        return Limits()

    def settings(self) -> ControllerSettings:
        self._called("settings")
        return ControllerSettings()

    def ended(self, which: Sequence[str]) -> list[SlurmJob]:
        self._called("ended")
        return []

    def usage(self, which: Sequence[str]) -> list[UsageEntry]:
        self._called("usage")
        return []

    def switch(self, nodes: Sequence[str], state: str) -> None:
        self._called("switch")

    def submit(self, argv: Sequence[str]) -> int:
        self._called("submit")
        return self.id

    def cancel(self, job: int) -> None:
        self._called("cancel")

    def close(self) -> None:
        self.calls.append("close")


def both() -> tuple[FailoverTransport, Way, Way, Clock]:
    clock, rest_side, commands = Clock(), Way(1), Way(2)
    return FailoverTransport(rest_side, commands, clock), rest_side, commands, clock


AWAY = [
    AdapterError("slow", transient=True, kind="timeout"),
    ParseError("cut off"),
    Unauthorised("expired"),
    NotDone("no server listens", kind="unreachable"),
    NotDone("no version that we read", kind="absent"),
]


@pytest.mark.parametrize("why", AWAY, ids=lambda error: error.kind)
def test_reads_use_commands_while_rest_is_down_with_one_log_line(
    why: AdapterError, caplog: pytest.LogCaptureFixture
) -> None:
    transport, rest_side, commands, clock = both()
    assert (
        transport.jobs()[0].id == 1
        and transport.excluded() == {1: ("n1",)}
        and transport.time() == 1.0
        and commands.calls == []
    )
    rest_side.fails = why
    with caplog.at_level(logging.INFO):
        tried = []
        for second in range(600):
            clock.now, before = float(second), len(rest_side.calls)
            assert transport.jobs([7])[0].id == 2
            tried += [second] * (len(rest_side.calls) - before)
        assert tried == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363, 423, 483, 543]
        assert len(caplog.messages) == 1 and str(why) in caplog.messages[0]
        rest_side.fails = None
        clock.now += LONGEST_GAP_S
        assert transport.jobs()[0].id == 1 and transport.nodes() == []
        assert caplog.messages[1:] == ["slurmrestd is usable again"]
    assert commands.calls[0] == "jobs [7]"


def test_excluded_nodes_come_from_the_transport_of_the_queue() -> None:
    transport, rest_side, _, clock = both()
    assert transport.jobs() and transport.excluded() == {1: ("n1",)}
    rest_side.fails = AWAY[0]
    assert transport.jobs() and transport.excluded() == {2: ("n1",)}
    rest_side.fails, clock.now = None, 100.0
    assert transport.jobs([1]) and transport.excluded() == {2: ("n1",)}
    assert transport.jobs() and transport.excluded() == {1: ("n1",)}


def test_hidden_fields_are_read_when_the_queue_has_changed() -> None:
    transport, rest_side, commands, _ = both()
    rest_side.shows_all = False
    (job,) = transport.jobs()
    assert (job.planned, job.special) == (("n9",), "a number of switches") and commands.calls == ["unshown"]
    assert transport.jobs() == [job] and commands.calls == ["unshown"]
    assert transport.jobs([1]) == [job] and commands.calls == ["unshown"]
    rest_side.queue = [replace(rest_side.queue[0], special="licenses"), SlurmJob(2, JobState.RUNNING)]
    first, second = transport.jobs()
    assert (first.special, second.planned) == ("licenses", ()) and commands.calls == ["unshown"] * 2
    commands.fails = AdapterError("gone", transient=True)
    rest_side.queue = [*rest_side.queue]
    with pytest.raises(AdapterError):
        transport.jobs()


def test_an_unsupported_request_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    transport, rest_side, commands, _ = both()
    rest_side.fails = NotDone("cannot write begin_time")
    for _ in range(3):
        transport.update(1, {})
        transport.nodes()
    assert rest_side.calls == commands.calls == ["update", "nodes"] * 3 and not caplog.messages


@pytest.mark.parametrize("why", AWAY, ids=lambda error: error.kind)
def test_a_write_is_repeated_only_if_it_was_surely_not_done(why: AdapterError) -> None:
    transport, rest_side, commands, _ = both()
    rest_side.fails = why
    if isinstance(why, NotDone):
        transport.update(1, {})
        assert commands.calls == ["update"]
    else:
        with pytest.raises(AdapterError) as caught:
            transport.update(1, {})
        assert caught.value is why and commands.calls == []


def test_a_refused_write_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    transport, rest_side, commands, _ = both()
    rest_side.fails = AdapterError("Invalid node name", kind="refused")
    with pytest.raises(AdapterError, match="Invalid node name"):
        transport.update(1, {})
    rest_side.fails = None
    assert transport.jobs()[0].id == 1 and commands.calls == [] and not caplog.messages


def test_our_own_jobs_accounting_and_power_use_commands() -> None:
    transport, rest_side, commands, _ = both()
    assert transport.submit(["sbatch"]) == 2 and transport.ended(["--jobs=1"]) == transport.usage(["--jobs=1"]) == []
    transport.cancel(2)
    transport.switch(["n1"], "POWER_DOWN")
    assert (
        transport.partitions() == {} and transport.reservations() == [] and transport.limits() and transport.settings()
    )
    transport.close()
    calls = ["submit", "ended", "usage", "cancel", "switch", "partitions", "reservations", "limits", "settings"]
    assert commands.calls == [*calls, "close"] and rest_side.calls == ["close"] and len(transport.notes) == 2


def test_a_preview_reads_from_both_and_writes_to_neither() -> None:
    transport, rest_side, commands, _ = both()
    rest_side.queue = [SlurmJob(1, JobState.PENDING, uid=os.getuid())]
    adapter = SlurmAdapter(Cluster("c", (Node("n1", NodeType("t", 4, 4e9, 1e10)),)), transport, SlurmSelection())
    assert adapter.preview(Cancel("slurm/1")) == ["scancel 1"] and rest_side.calls == ["jobs []"]
    assert adapter.preview(PowerOff(("n1",))) == ["scontrol update NodeName=n1 State=POWER_DOWN"]
    assert adapter.preview(PowerOn(("n1",))) == ["scontrol update NodeName=n1 State=POWER_UP"]
    assert adapter.preview(PowerOn(("n2",))) == ["# not done: power on: n2 is not a node of this cluster"]
    assert commands.calls == []


@given(st.lists(st.tuples(st.sampled_from([*AWAY, None]), st.floats(0, 100), st.sampled_from(["jobs", "update"]))))
def test_every_read_is_answered_and_every_write_is_done_once_or_raised(
    course: list[tuple[AdapterError | None, float, str]],
) -> None:
    transport, rest_side, commands, clock = both()
    for fails, gap, request in course:
        rest_side.fails = fails
        clock.now += gap
        rest_side.calls.clear()
        commands.calls.clear()
        if request == "jobs":
            assert transport.jobs()
            continue
        try:
            transport.update(1, {})
        except AdapterError as error:
            assert not isinstance(error, NotDone) and commands.calls == []
        else:
            write_count = (rest_side.calls == ["update"] and fails is None) + (commands.calls == ["update"])
            assert write_count == 1
