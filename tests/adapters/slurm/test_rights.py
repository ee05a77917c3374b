"""Refused changes: changes to other users' jobs are tried once a minute, with one clear error; late ones are no
error, and jobs that Slurm does not show any more are said to be gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.handed_over.job_writer import FOREIGN_S
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.records import SlurmJob, SlurmNode
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job
from pilotfish.simulate.model.plan import Action, Place, Release
from pilotfish.simulate.model.snapshot import JobState, NodeState

CLUSTER = Cluster("c", (Node("n1", NodeType("t", 4, 4 * 2.0**30, 1e10)),))
REFUSAL = AdapterError("scontrol: Invalid user id for job 1", kind="refused", stderr_tail="Invalid user id for job 1\n")

ANSWERS = {
    "partition": "PartitionName=p State=UP MaxNodes=UNLIMITED Nodes=n1",
    "config": "SchedulerType = sched/backfill",
    "flags=assoc,qos": "Current Association Manager state\n",
}


class Strict(CommandTransport):
    """A Slurm that refuses changes to other users' jobs, with the message of 22.05."""

    def __init__(self) -> None:
        super().__init__(lambda argv: ANSWERS.get(argv[-1], ""))
        self.updates: list[int] = []
        self.lenient, self.says = False, REFUSAL

    def jobs(self, ids: Iterable[int] = ()) -> list[SlurmJob]:
        fields = {"submit": 0.0, "begin": 600.0, "comment": "pilotfish:hold=600", "partition": "p", "uid": 10**6}
        return [SlurmJob(id, JobState.PENDING, **fields) for id in (1, 2) if not ids or id in ids]

    def nodes(self) -> list[SlurmNode]:
        return [SlurmNode("n1", NodeState.UP, 4, 4 * 2.0**30, partitions=frozenset({"p"}))]

    def time(self) -> float:
        return 1.0

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        self.updates.append(job)
        if not self.lenient:
            raise self.says


def test_a_general_refusal_is_tested_again_after_a_minute() -> None:
    now = [0.0]
    slurm = Strict()
    adapter = SlurmAdapter(CLUSTER, slurm, SlurmSelection(), clock=lambda: now[0])
    starts = [Place(f"slurm/{number}", Job(str(number), DEFAULT_PROFILE), ("n1",)) for number in (1, 2)]

    def refusal(start: Place) -> str:
        with pytest.raises(AdapterError) as caught:
            adapter.apply(start)
        assert caught.value.kind == "rights" and not caught.value.transient
        return str(caught.value)

    for _ in range(8):  # a snapshot reads one thing of what changes rarely
        adapter.snapshot()
    messages = {refusal(start) for start in starts * 3}
    assert len(messages) == 1 and "must be an operator" in messages.pop() and slurm.updates == [1]
    now[0] += FOREIGN_S + 1
    refusal(starts[1])
    refusal(starts[0])
    assert slurm.updates == [1, 2]
    slurm.lenient = True
    now[0] += FOREIGN_S + 1
    for start in starts:
        adapter.apply(start)
    assert slurm.updates == [1, 2, 1, 2]


@pytest.mark.parametrize(
    "said",
    [
        "Job is no longer pending execution for job 1",
        "Job has already finished for job 1",
        "Job/step already completing or completed for job 1",
        "Invalid job id specified for job 1",
    ],
)
def test_a_late_change_is_no_error(said: str) -> None:
    """Slurm, or the user, was faster: the next read of the queue shows it."""
    slurm = Strict()
    slurm.says = AdapterError(f"scontrol: {said}", kind="refused", exit_code=1, stderr_tail=f"{said}\n")
    adapter = SlurmAdapter(CLUSTER, slurm, SlurmSelection(), clock=lambda: 0.0)
    for _ in range(8):
        adapter.snapshot()
    adapter.apply(Place("slurm/1", Job("1", DEFAULT_PROFILE), ("n1",)))
    assert slurm.updates == [1]


@pytest.mark.parametrize(
    "action",
    [Place("slurm/1", Job("1", DEFAULT_PROFILE), ("n1",)), Release("slurm/1")],
    ids=lambda each: type(each).__name__,
)
def test_a_job_that_is_gone_at_the_second_look_is_read_again_before_it_is_changed(action: Action) -> None:
    """As where `squeue` shows an empty queue, or slurmctld has forgotten the job."""
    slurm = Strict()
    shows = slurm.jobs
    adapter = SlurmAdapter(CLUSTER, slurm, SlurmSelection(), clock=lambda: 0.0)
    for _ in range(8):
        adapter.snapshot()
    slurm.jobs = lambda ids=(): []
    adapter.refresh(["slurm/1"])
    with pytest.raises(AdapterError) as caught:
        adapter.apply(action)
    assert caught.value.kind == "gone" and not slurm.updates
    slurm.jobs, slurm.lenient = shows, True
    adapter.apply(Place("slurm/1", Job("1", DEFAULT_PROFILE), ("n1",)))
    assert slurm.updates == [1]
