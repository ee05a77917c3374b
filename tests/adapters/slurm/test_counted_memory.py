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
from tests.support.slurm_answers import CONFIG
from tests.support.slurm_jobs import BOTH, JOB, NODE, NOW, RUNNING

CLUSTER = Cluster("c", (Node("n0", NodeType("t", 4, 4e9, 1e10)),))
WHOLE = [replace(job, memory=4e9, asks_memory=False) for job in (JOB, RUNNING)]


def test_the_first_snapshot_knows_and_a_change_of_the_settings_counts() -> None:
    counts, clock = [False], [0.0]
    slurm = SimpleNamespace(
        notes=(), time=lambda: NOW, jobs=lambda ids=(): [*WHOLE, replace(JOB, id=9, memory=1e9)], nodes=lambda: [NODE],
        partitions=lambda: BOTH, reservations=list, limits=Limits, excluded=dict, resized=lambda job: None,
        settings=lambda: ControllerSettings(counts_memory=counts[0]),
    )  # fmt: skip
    adapter = SlurmAdapter(CLUSTER, slurm, SlurmSelection(), clock=lambda: clock[0])

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
