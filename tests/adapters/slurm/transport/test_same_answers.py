"""A transport that has read many answers returns for the last one what a new transport returns, and no new records."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.benchmarks.slurm_records import CPUS, MEMORY_MIB, Site
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType

CHANGES: dict[str, Sequence[str]] = {
    "State": ("PENDING", "RUNNING", "COMPLETED", "SUSPENDED"),
    "NodeList": ("", "c00001", "c[00002-00003]"),
    "Reason": ("Priority", "Resources", "JobHeldUser", "BeginTime"),
    "PriorityLong": ("0", "5", "400000"),
    "Comment": ("(null)", "pilotfish:hold=600", "a\nb", "a\x1fb"),
    "StartTime": ("N/A", "2030-03-17T18:00:00"),
    "NumNodes": ("1", "2", "a few"),
    "JobID": ("100003",),
}


class Played:
    """A site whose jobs and nodes change at random; `edit` makes one change."""

    def __init__(self, seed: int) -> None:
        self.random, self.site = Random(seed), Site(12, 16, 4)

    def __call__(self, argv: Sequence[str]) -> str:
        return self.site(argv)

    def edit(self, what: str) -> None:
        jobs, nodes, pick = self.site.jobs, self.site.nodes, self.random.choice
        if what == "drop" and jobs:
            jobs.remove(pick(jobs))
        elif what == "add" and jobs:
            number = str(200_000 + self.random.randrange(10**6))
            jobs.insert(self.random.randrange(len(jobs) + 1), {**pick(jobs), "JobID": number, "JobArrayID": number})
        elif what == "change" and jobs:
            field = pick(list(CHANGES))
            pick(jobs)[field] = pick(CHANGES[field])
        elif what == "move":
            self.random.shuffle(jobs)
        elif what == "node":
            pick(nodes)["StateComplete"] = pick(("idle", "mixed", "down*", "?"))


@given(st.integers(0, 2**32), st.lists(st.sampled_from(("add", "drop", "change", "change", "move", "node", "look"))))
def test_a_history_of_answers_ends_like_the_last_one_alone(seed: int, edits: list[str]) -> None:
    played = Played(seed)
    cluster = Cluster(
        "c", tuple(Node(name, NodeType("t", CPUS, MEMORY_MIB * 2.0**20, 1e11)) for name in played.site.names)
    )
    transport = CommandTransport(played)
    seconds = [0.0]
    old = SlurmAdapter(cluster, transport, SlurmSelection(), clock=lambda: seconds[0])
    for edit in [*edits, "look"]:
        if edit != "look":
            played.edit(edit)
            continue
        fresh = CommandTransport(played)
        seconds[0] += 20.0
        new = SlurmAdapter(cluster, fresh, SlurmSelection(), clock=lambda: seconds[0])
        new._clock, new.changes._begins._first = old._clock, dict(old.changes._begins._first)
        snapshot, expected = old.snapshot(), new.snapshot()
        assert snapshot.jobs == expected.jobs and snapshot.node_states == expected.node_states
        assert snapshot.jobs.by_key == expected.jobs.by_key and snapshot.jobs.holding == expected.jobs.holding
        jobs, nodes = transport.jobs(), transport.nodes()
        assert jobs == fresh.jobs() and nodes == fresh.nodes()
        assert transport.jobs() is jobs and transport.nodes() is nodes
        assert transport.unreadable.now == fresh.unreadable.now
        assert old.snapshot().jobs is snapshot.jobs
