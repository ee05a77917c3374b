"""Where Slurm does not count memory, a job that asks for none needs none: Slurm shows that of its whole nodes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.placement.limits import Limits
from pilotfish.adapters.slurm.transport.scontrol import ControllerSettings, parse_settings
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.plan import Place
from tests.adapters.slurm.handed_over.test_time_min import Versioned
from tests.adapters.slurm.test_users_text import CLUSTER as THREE
from tests.adapters.slurm.test_users_text import HELD, SELECTION, SITE, transport_of
from tests.support.slurm_answers import CONFIG
from tests.support.slurm_jobs import BOTH, JOB, NODE, NOW, RUNNING

CLUSTER = Cluster("c", (Node("n0", NodeType("t", 4, 4e9, 1e10)),))
WHOLE = [replace(job, memory=4e9, asks_memory=False) for job in (JOB, RUNNING)]


@pytest.mark.parametrize("is_handed_over", [True, False], ids=["handed over", "other users' jobs alone"])
def test_the_first_snapshot_knows_and_a_change_of_the_settings_counts(*, is_handed_over: bool) -> None:
    counts, clock = [False], [0.0]
    slurm = SimpleNamespace(
        notes=(), time=lambda: NOW, jobs=lambda ids=(): [*WHOLE, replace(JOB, id=9, memory=1e9)], nodes=lambda: [NODE],
        partitions=lambda: BOTH, reservations=list, limits=Limits, excluded=dict, resized=lambda job: None,
        settings=lambda: ControllerSettings(counts_memory=counts[0]),
    )  # fmt: skip
    adapter = SlurmAdapter(CLUSTER, slurm, SlurmSelection(comment=is_handed_over), clock=lambda: clock[0])

    free, full = {"slurm/7": 0.0, "slurm/1": 0.0, "slurm/9": 1e9}, {"slurm/7": 4e9, "slurm/1": 4e9, "slurm/9": 1e9}
    for is_counted, snapshots, expected in ((False, 1, free), (True, 300, full), (False, 300, free)):
        counts[0] = is_counted
        for _ in range(snapshots):  # each reads one thing that changes rarely
            views = adapter.snapshot().jobs
            clock[0] += 5.0
        assert {job.key: job.job.memory for job in views} == expected
        assert {job.key: job.memory for job in adapter.queue().jobs} == expected


@pytest.mark.parametrize(
    ("chosen", "is_counted"),
    [("CR_CPU_MEMORY", True), ("CR_Core", False), ("CR_Core_Memory,CR_LLN", True), ("NONE", False)],
)
def test_it_is_read_from_the_controllers_settings(chosen: str, is_counted: bool) -> None:
    assert parse_settings(CONFIG.replace("CR_CPU_MEMORY", chosen)).counts_memory is is_counted
    without = "".join(line for line in CONFIG.splitlines(keepends=True) if "SelectTypeParameters" not in line)
    assert parse_settings(without).counts_memory


@pytest.mark.parametrize("chosen", ["CR_Core", "CR_Core_Memory"])
def test_such_a_job_is_placed(chosen: str) -> None:
    """It is read alone before it is placed, and must be the one that was seen."""
    row = HELD | {"MinMemory": "0", "tres-alloc": "cpu=1,mem=4096M,node=1,billing=1"}
    slurm = Versioned(f"{SITE['config']}\nSelectTypeParameters    = {chosen}\n", row)
    adapter = SlurmAdapter(THREE, transport_of("squeue", slurm, [], [0.0]), SELECTION, clock=lambda: 0.0)
    (view,) = adapter.snapshot().jobs
    assert view.job.memory == (2**32 if chosen == "CR_Core_Memory" else 0.0)
    adapter.apply(Place(view.key, view.job, ("n1",)))
    assert any("ReqNodeList=n1" in fields for _, fields in slurm.updates)
