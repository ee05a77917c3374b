"""An adapter that has read many states of the queue shows the last one as a new adapter does, and its caches do not
grow with their number."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.placement.future_occupancy import START_S
from pilotfish.adapters.slurm.placement.limits import Limits, Qos, UsageCap
from pilotfish.adapters.slurm.placement.partitions import CoreSharing, Partition, SlurmReservation
from pilotfish.adapters.slurm.records import SlurmJob, SlurmNode
from pilotfish.adapters.slurm.site_state import AGES
from pilotfish.adapters.slurm.submission import comment_for
from pilotfish.adapters.slurm.transport.scontrol import ControllerSettings
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Place, Release, Submit
from pilotfish.simulate.model.snapshot import JobState, NodeState, Snapshot
from tests.growth import held_by

NAMES = [f"n{number}" for number in range(20)]  # more than are looked at one by one
CLUSTER = Cluster("c", tuple(Node(name, NodeType("t", 4, 4e9, 1e10)) for name in NAMES[:18]), oversubscription=2)
OURS = "wf/a"
OWN = Job("a", Profile((ThreadGroup(1, 60.0),)), command=("true",))
OUTAGE = AdapterError("Slurm does not answer", transient=True, kind="unreachable")
#: Possible values of a job, by field.
POOLS: dict[str, Sequence[object]] = {
    "reason": ("BeginTime", "Priority", "Resources", "None", "Dependency", "JobHeldUser"),
    "part": (False, False, False, True),
    "uid": (5, 6, os.getuid()),
    "account": ("a", "b"),
    "qos": ("normal", "high", "handed"),
    "partition": ("main", "shared", "main,shared", "alone"),
    "nodes": (1, 1, 2, 3, 6),
    "cpus": (1, 2, 3, 5),
    "threads": (0, 1, 2, 4),
    "memory": (0.0, 1e9, 2.5e9),
    "time_limit": (60.0, 600.0, None),
    "start": (None, None, 40.0, 300.0),
    "wanted": ((), (), (), ("n1",), ("n2", "n3"), ("n18",)),
    "planned": ((), ("n4",), ("n5", "n6")),
    "special": ("", "", "", "licenses"),
    "dependency": ("", "", "", "afterok:3"),
    "features": ("", "", "ssd", "ssd&big", "ssd|big", "[rack1|rack2]"),
    "reservation": ("", "", "", "maint"),
    "shares": ("", "", "YES", "NO"),
    "priority": (0, 1, 2, 3),
    "restarts": (0, 0, 0, 1),
    "name": (OURS, OURS, "a"),
    "comment": ("pilotfish:hold=600", "pilotfish:hold=600", "pilotfish:hold=20", "pilotfish", "", comment_for(OURS)),
}  # fmt: skip
QUICK = ("add", "add", "change", "change", "begin", "finish", "drop", "pin", "unpin", "node", "node", "forget")
SLOW = ("partition", "reservation", "limits", "settings", "excluded", "vanish", "outage", "submit", "place", "release")
LOOKS = ("look", "look", "tick", "tick", "wait", "back", "again", "again", "whole", "late", "soon")


@dataclass
class Slurm:
    """A transport: what Slurm would answer now, and what it answered last."""

    seconds: float = 1000.0
    ahead: float = 5000.0
    queue: dict[int, SlurmJob] = field(default_factory=dict)
    machines: dict[str, SlurmNode] = field(default_factory=dict)
    parts: dict[str, Partition] = field(default_factory=dict)
    kept: list[SlurmReservation] = field(default_factory=list)
    caps: Limits = field(default_factory=Limits)
    options: ControllerSettings = field(default_factory=ControllerSettings)
    unwanted: dict[int, tuple[str, ...]] = field(default_factory=dict)
    away: str = ""
    afresh: bool = False  #: equal records are different objects
    told: dict[int, SlurmJob] = field(default_factory=dict)
    told_nodes: list[SlurmNode] = field(default_factory=list)
    news: bool = True  #: whether an answer has changed since this was last set
    number: int = 0
    notes: Sequence[str] = ()

    def _tells(self, what: str) -> None:
        if self.away == what:
            self.away = ""
            raise OUTAGE

    def jobs(self, ids: Iterable[int] = ()) -> list[SlurmJob]:
        numbers = list(ids)
        self._tells("jobs")
        answer = [copy(job) if self.afresh else job for job in self.queue.values() if not numbers or job.id in numbers]
        earlier = {number: job for number, job in self.told.items() if numbers and number not in numbers}
        before, self.told = self.told, earlier | {job.id: job for job in answer}
        self.news = self.news or not numbers or before != self.told
        return answer

    def nodes(self) -> list[SlurmNode]:
        self._tells("nodes")
        self.told_nodes = [copy(node) if self.afresh else node for node in self.machines.values()]
        return self.told_nodes

    def partitions(self) -> dict[str, Partition]:
        self._tells("partitions")
        return dict(self.parts)

    def reservations(self) -> list[SlurmReservation]:
        self._tells("reservations")
        return list(self.kept)

    def limits(self) -> Limits:
        self._tells("limits")
        return self.caps

    def settings(self) -> ControllerSettings:
        self._tells("settings")
        return self.options

    def excluded(self) -> dict[int, tuple[str, ...]]:
        self._tells("excluded")
        return dict(self.unwanted)

    def time(self) -> float:
        return self.seconds + self.ahead

    def update(self, number: int, fields: Mapping[str, str]) -> None:
        names = fields.get("ReqNodeList")
        changed = {} if names is None else {"wanted": tuple(filter(None, names.split(",")))}
        begin = {"begin": self.time()} if "StartTime" in fields else {}
        self.queue[number] = replace(self.queue[number], **changed, **begin)

    def submit(self, argv: Sequence[str]) -> int:
        self.number += 1
        new = SlurmJob(self.number, JobState.PENDING, uid=os.getuid(), partition="main", name=OURS)
        new = replace(new, comment=comment_for(OURS))
        self.queue[self.number] = new
        return self.number


class Pair:
    """One adapter that lives through everything, and a new one for each snapshot."""

    def __init__(self, random: Random) -> None:
        self.random, self.slurm = random, Slurm()
        slurm = self.slurm
        slurm.machines = {name: self._node(name) for name in NAMES}
        slurm.parts = {name: self._partition(name) for name in ("main", "shared", "alone")}
        self.old = self._adapter(slurm)

    def _adapter(self, slurm: object) -> SlurmAdapter:
        selection = SlurmSelection(qos=frozenset({"handed"}))
        return SlurmAdapter(CLUSTER, slurm, selection, clock=lambda: self.slurm.seconds)

    def fresh(self) -> tuple[SlurmAdapter, Snapshot]:
        """Return an adapter that reads only the last answers, with the state of the old one: its clock, the site, since
        when jobs wait, what it submitted and what it let go."""
        slurm, old = self.slurm, self.old
        transport = SimpleNamespace(
            jobs=lambda ids=(): list(slurm.told.values()), nodes=lambda: slurm.told_nodes, time=slurm.time, notes=(),
            updates=[],
        )  # fmt: skip
        transport.update = lambda number, fields: transport.updates.append((number, dict(fields)))
        fresh = self._adapter(transport)
        fresh._clock, fresh._submitted = old._clock, dict(old._submitted)
        fresh.changes._begins._first = dict(old.changes._begins._first)
        fresh._site_reader = SimpleNamespace(site=old._site_reader.site, refresh=lambda *_: None)
        fresh._evaluated.cache.since = dict(old._evaluated.cache.since)
        snapshot = fresh.snapshot()
        fresh._evaluated.cache.since = dict(old._evaluated.cache.since)
        return fresh, snapshot

    def compare(self, shown: Snapshot) -> SlurmAdapter:
        fresh, expected = self.fresh()
        assert shown.node_states == expected.node_states and shown.time == expected.time
        views, expected_views = ({view.key: view for view in picture.jobs} for picture in (shown, expected))
        assert list(views) == list(expected_views)
        for key, view in expected_views.items():
            assert views[key] == view
        return fresh

    def look(self) -> SlurmAdapter | None:
        self.slurm.afresh = self.random.random() < 0.3
        try:
            snapshot = self.old.snapshot()
        except AdapterError:
            return None
        self.slurm.news = False
        return self.compare(snapshot)

    def again(self, keys: Iterable[str] = ()) -> SlurmAdapter | None:
        """Read some jobs again, right after the last read."""
        numbers = [*self.slurm.told, *self.slurm.queue]
        chosen_keys = list(keys) or [f"slurm/{self.random.choice(numbers)}" for _ in range(3) if numbers] or ["slurm/1"]
        try:
            snapshot = self.old.refresh(chosen_keys)
        except AdapterError:
            return None
        return self.compare(snapshot)

    def _another(self, seconds: float) -> None:
        """Read an unchanged queue again: the eligibility is reused, but not for long."""
        self.slurm.queue, self.slurm.away = dict(self.slurm.told), ""
        before = self.old.snapshot()
        self.slurm.seconds += seconds
        snapshot = self.old.refresh([f"slurm/{number}" for number in self.slurm.told][:3])
        if seconds > START_S:
            self.compare(snapshot)
        else:
            assert snapshot == replace(before, time=before.time + seconds, version=snapshot.version)
            self.look()

    def do(self, what: str) -> None:
        slurm, pick = self.slurm, self.random.choice
        waiting = [job for job in slurm.queue.values() if job.state is JobState.PENDING]
        running = [job for job in slurm.queue.values() if job.state is JobState.RUNNING]
        if what == "add":
            slurm.number += 1
            slurm.queue[slurm.number] = self._job(slurm.number)
        elif what == "change" and slurm.queue:
            job = pick(list(slurm.queue.values()))
            name = pick([*POOLS, "begin"])
            value = self._begin() if name == "begin" else self._said(name)
            slurm.queue[job.id] = replace(job, **{name: value})
        elif what == "begin" and waiting:
            job, now = pick(waiting), slurm.time()
            where = job.wanted if len(job.wanted) == job.nodes else tuple(self.random.sample(NAMES, job.nodes))
            ends = {"start": now, "end": now + (job.time_limit or 9000.0)}
            slurm.queue[job.id] = replace(job, state=JobState.RUNNING, reason="None", placed=where, **ends)
        elif what == "finish" and running:
            job = pick(running)
            slurm.queue[job.id] = replace(job, state=JobState.COMPLETED, end=slurm.time(), exit_code=0)
        elif what == "drop" and slurm.queue:
            del slurm.queue[pick(list(slurm.queue))]
        elif what == "pin" and waiting:
            job = pick(waiting)
            where = tuple(self.random.sample(NAMES, job.nodes))
            slurm.queue[job.id] = replace(job, wanted=where, pinned=7.0)
        elif what == "unpin" and waiting:
            job = pick(waiting)
            slurm.queue[job.id] = replace(job, wanted=(), pinned=None)
        elif what == "node":
            name = pick(NAMES)
            slurm.machines[name] = self._node(name)
        elif what == "vanish" and slurm.machines:
            del slurm.machines[pick(list(slurm.machines))]
        elif what == "partition":
            name = pick(("main", "shared", "alone"))
            slurm.parts[name] = self._partition(name)
        elif what == "reservation":
            start = slurm.time() + pick((-50.0, 50.0, 500.0))
            names = frozenset(self.random.sample(NAMES, 4))
            slurm.kept = pick(([], [SlurmReservation("maint", start, start + 300.0, names)]))
        elif what == "limits":
            unit = pick(("jobs", "cpu", "node", "cpu minutes left", "minutes"))
            qos = Qos({unit: UsageCap(pick((1.0, 3.0, 40.0)))}, {"cpu": UsageCap(pick((2.0, 9.0)))}, {5: {}, 6: {}}, {})
            slurm.caps = Limits({pick(("normal", "high", "handed")): qos})
        elif what == "settings":
            slurm.options = ControllerSettings(pick((5.0, 30.0)), pick((True, False)))
        elif what == "excluded" and slurm.queue:
            slurm.unwanted = {pick(list(slurm.queue)): tuple(self.random.sample(NAMES, 2))}
        elif what == "outage":
            slurm.away = pick(("jobs", "nodes", *AGES))
        elif what == "submit":
            with suppress(AdapterError):
                self.old.apply(Submit(OURS, OWN, ("n1",)))
        elif what == "forget":
            self.old.forget(OURS)
        elif what in ("place", "release"):
            self.touch(what)

    def touch(self, what: str) -> None:
        """Place or release a job by both adapters: they answer and write the same."""
        slurm, fresh = self.slurm, self.look()
        pending = [job for job in slurm.told.values() if job.state is JobState.PENDING]
        if fresh is None or not pending:
            return
        job = self.random.choice(pending)
        key, where = f"slurm/{job.id}", tuple(self.random.sample(NAMES, job.nodes))
        action = Release(key) if what == "release" else Place(key, Job(str(job.id), OWN.profile), where)
        errors, before = [], slurm.queue.get(job.id)
        for adapter in (fresh, self.old):
            try:
                adapter.apply(action)
                errors.append("")
            except AdapterError as error:
                errors.append(str(error))
        assert errors[0] == errors[1]
        was_written = bool(fresh.transport.updates)  # type: ignore[attr-defined]
        assert was_written == (slurm.queue.get(job.id) is not before)
        if self.random.random() < 0.5:
            self.again([key])

    def time(self, what: str) -> None:
        """Read the queue, at once or after some time."""
        slurm = self.slurm
        if what in ("late", "late", "soon"):
            if self.look():
                self._another(2.0 if what == "soon" else START_S + 1.0)
            return
        if what == "again":
            self.again()
            return
        if what == "whole":
            self.again([OURS])
            return
        slurm.seconds += {"look": 0.0, "tick": self.random.choice((1.0, 7.0, 20.0)), "wait": 90.0, "back": 301.0}[what]
        if what == "back":
            slurm.ahead -= 301.0 + self.random.choice((5.0, 60.0, 900.0))
        self.look()

    def _job(self, number: int) -> SlurmJob:
        fields = {name: self._said(name) for name in POOLS}
        submit = self.slurm.time() - 10.0
        return SlurmJob(id=number, state=JobState.PENDING, submit=submit, begin=self._begin(), **fields)

    def _said(self, name: str) -> object:
        value = self.random.choice(POOLS[name])
        return self.slurm.time() + value if name == "start" and isinstance(value, float) else value

    def _begin(self) -> float | None:
        after = self.random.choice((None, -20.0, 5.0, 15.0, 200.0, 580.0))
        return None if after is None else self.slurm.time() + after

    def _node(self, name: str) -> SlurmNode:
        pick = self.random.choice
        return SlurmNode(
            name, pick((NodeState.UP, NodeState.UP, NodeState.DOWN, NodeState.DRAINED)), pick((4, 4, 2)), 4e9,
            frozenset(pick(((), ("ssd",), ("ssd", "big")))),
            frozenset(pick((("main", "shared"), ("main",), ("alone",)))),
            "", pick((None, 4, 3, 0)), pick((None, 4e9, 1e9)),
        )  # fmt: skip

    def _partition(self, name: str) -> Partition:
        pick = self.random.choice
        sharing = pick(tuple(CoreSharing))
        return Partition(
            name, pick((True, True, False)), frozenset(NAMES), max_time=pick((None, 300.0)), max_nodes=pick((None, 2)),
            node_cpus=pick((None, 2)), sharing=sharing, rows=2 if sharing is CoreSharing.FORCE else 1, tier=pick((1, 2)),
            qos=pick(("", "high")),
        )  # fmt: skip


@settings(max_examples=100, deadline=None)
@example(590, [(True, 1), (True, 3), (True, 1)])  # a wide job is first seen to be held when it is read alone
@given(st.integers(0, 2**32), st.lists(st.tuples(st.booleans(), st.integers(1, 3)), max_size=25))
def test_a_long_running_adapter_shows_what_a_new_one_shows(seed: int, rounds: list[tuple[bool, int]]) -> None:
    pair = Pair(Random(seed))
    for _ in range(4):
        pair.do("add")
    pair.look()
    for quick, times in rounds:
        for _ in range(times):
            pair.do(pair.random.choice(QUICK if quick else SLOW))
        pair.time(pair.random.choice(LOOKS))


def test_a_job_waits_again_after_the_clock_is_set_back() -> None:
    pair = Pair(Random(1))
    begin = pair.slurm.time() + 50.0
    job = SlurmJob(1, JobState.PENDING, "BeginTime", partition="main", priority=1, begin=begin, comment="pilotfish")
    pair.slurm.queue[1] = job
    waits = [view.waits for view in pair.old.snapshot().jobs if view.key == "slurm/1"]
    pair.slurm.seconds += 60.0
    pair.old.snapshot()
    pair.slurm.seconds += 301.0
    pair.slurm.ahead -= 350.0
    assert [view.waits for view in pair.old.snapshot().jobs if view.key == "slurm/1"] == waits != [""]


def test_partitions_read_before_a_failure_are_used() -> None:
    pair = Pair(Random(1))
    pair.slurm.parts = {"alone": Partition("alone", sharing=CoreSharing.EXCLUSIVE)}
    pair.slurm.queue[1] = SlurmJob(1, JobState.RUNNING, partition="alone", placed=("n1",))
    pair.old.snapshot()  # nothing is ours, so that partitions are not asked for
    pair.slurm.queue[2] = SlurmJob(2, JobState.PENDING, partition="alone", priority=1, comment="pilotfish")
    pair.slurm.away = "settings"  # which is read after them
    with pytest.raises(AdapterError):
        pair.old.snapshot()
    apart_of = {view.key: view.job.apart for view in pair.old.snapshot().jobs}
    assert apart_of["slurm/1"] == "alone 1"


def test_a_forgotten_submission_leaves_the_snapshot() -> None:
    pair = Pair(Random(1))
    pair.old.apply(Submit(OURS, OWN, ("n1",)))
    (before,) = (view for view in pair.old.snapshot().jobs if view.key == OURS)
    pair.old.forget(OURS)
    for look in (pair.old.snapshot, lambda: pair.old.refresh(["slurm/1"])):
        (after,) = (view for view in look().jobs if view.key == OURS)
        assert before.job.command == OWN.command and after.job.command is None


def test_a_job_is_not_placed_on_old_eligibility() -> None:
    """It would end before the reservation by the old time, and after its begin by the new one."""
    pair = Pair(Random(1))
    now = pair.slurm.time()
    pair.slurm.machines = {"n1": SlurmNode("n1", NodeState.UP, 4, 4e9, partitions=frozenset({"main"}))}
    pair.slurm.parts = {"main": Partition("main", nodes=frozenset({"n1"}))}
    pair.slurm.kept = [SlurmReservation("maint", now + 100.0, now + 900.0, frozenset({"n1"}))]
    pair.slurm.queue[1] = SlurmJob(
        1, JobState.PENDING, "Resources", partition="main", submit=now, time_limit=60.0, priority=1, comment="pilotfish"
    )
    (view,) = pair.old.snapshot().jobs
    assert view.waits == ""
    pair.slurm.seconds += 60.0
    with pytest.raises(AdapterError, match="maint"):
        pair.old.apply(Place(view.key, view.job, ("n1",)))


def test_unchanged_node_lists_stay_the_same_objects() -> None:
    """Otherwise each later snapshot would compare them node by node."""
    pair = Pair(Random(1))
    pair.slurm.machines = {
        name: SlurmNode(name, NodeState.UP, 4, 4e9, partitions=frozenset({"main"})) for name in NAMES
    }
    pair.slurm.parts = {"main": Partition("main", nodes=frozenset(NAMES))}
    now = pair.slurm.time()
    times = {"submit": now, "begin": now + 600.0, "comment": "pilotfish:hold=600"}
    pair.slurm.queue[1] = SlurmJob(1, JobState.PENDING, partition="main", **times)
    (before,) = pair.old.snapshot().jobs
    pair.slurm.machines["n19"] = replace(pair.slurm.machines["n19"], features=frozenset({"new"}))
    pair.slurm.queue[2] = replace(pair.slurm.queue[1], id=2)
    pair.slurm.seconds += 20.0
    after = pair.old.snapshot().jobs
    assert before.job.allowed and all(view.job.allowed is before.job.allowed for view in after)


@pytest.mark.long
def test_caches_do_not_grow_with_the_number_of_snapshots() -> None:
    """New jobs, shapes, users, partitions, node lists, names and kinds of nodes all the time, limits on and off."""
    pair = Pair(Random(1))
    slurm = pair.slurm

    def most(first: int, last: int) -> int:
        """Return the largest number of values held on the way."""
        largest = 0
        for number in range(first, last):
            _something_else(slurm, number)
            snapshot = pair.old.snapshot()
            pair.old.refresh([view.key for view in snapshot.jobs][:2])
            largest = max(largest, held_by(pair.old) if number % 10 == 0 else 0)
        return largest

    most(0, 30)
    early = most(30, 130)
    most(130, 900)
    assert most(900, 1000) < 1.1 * early


def _something_else(slurm: Slurm, number: int) -> None:
    """Return a state of the queue that shares only the names of some nodes with those before."""
    slurm.seconds += 5.0
    name, node_names = f"p{number % 40}", [*NAMES[:6], f"cloud{number}"]
    kind = frozenset({f"f{number}"})
    slurm.machines = {
        node: SlurmNode(node, NodeState.UP, 4, 4e9, kind, frozenset({name, "main"}), idle=4 - number % 3)
        for node in node_names
    }
    slurm.options = ControllerSettings(5.0, number % 200 < 60)
    slurm.queue = {}
    for i in range(6):
        job = SlurmJob(
            10 * number + i, JobState.PENDING, uid=10 * number + i, account=f"a{number}", qos="normal", cpus=1,
            partition=f"main,x{number}", memory=1e3 * number + i, time_limit=60.0 + number, priority=i + 1,
            comment="pilotfish", submit=slurm.time(), features="" if i else f"f{number}",
        )  # fmt: skip
        slurm.queue[job.id] = (
            job if i < 4 else replace(job, state=JobState.RUNNING, placed=(node_names[i], node_names[-1]))
        )
