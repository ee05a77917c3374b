"""When a snapshot of Slurm changes by time alone, which no count shows."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.placement.limits import Limits
from pilotfish.adapters.slurm.placement.partitions import SlurmReservation
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.transport.scontrol import ControllerSettings
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from tests.support.slurm_jobs import BOTH, JOB, NODE, NOW

CLUSTER = Cluster("c", (Node("n0", NodeType("t", 4, 4e9, 1e10)),))
#: A job whose user wants it to begin later, one that is held for us, and one of another user.
LATER = replace(JOB, id=8, begin=NOW + 50.0, comment="pilotfish")
FOREIGN = replace(JOB, id=9, begin=NOW + 20.0, comment="")


def adapter_of(*jobs: SlurmJob, reserved: tuple[SlurmReservation, ...] = ()) -> SlurmAdapter:
    slurm = SimpleNamespace(
        notes=(), time=lambda: NOW, jobs=lambda ids=(): list(jobs), nodes=lambda: [NODE], partitions=lambda: BOTH,
        reservations=lambda: list(reserved), limits=Limits, settings=ControllerSettings, excluded=dict,
    )  # fmt: skip
    adapter = SlurmAdapter(CLUSTER, slurm, SlurmSelection(), clock=lambda: 0.0)
    adapter.snapshot()
    return adapter


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ((), math.inf),
        ((LATER,), NOW + 50.0),
        ((LATER, replace(LATER, id=10, begin=NOW + 30.0)), NOW + 30.0),
        ((JOB,), math.inf),  # Slurm itself starts it then, which is counted
        ((FOREIGN,), math.inf),
        ((replace(LATER, begin=NOW - 1.0),), math.inf),
        ((replace(JOB, restarts=1, begin=NOW + 9.0),), NOW + 9.0),
    ],
)
def test_a_begin_time_that_keeps_a_job_counts(jobs: tuple[SlurmJob, ...], expected: float) -> None:
    assert adapter_of(*jobs).next_change(NOW) == expected


@pytest.mark.parametrize(("start", "end", "expected"), [(5.0, 9.0, 5.0), (-5.0, 9.0, 9.0), (-9.0, math.inf, math.inf)])
def test_a_reservation_begins_and_ends(start: float, end: float, expected: float) -> None:
    reservation = SlurmReservation("maintenance", NOW + start, NOW + end, frozenset({"n0"}))
    assert adapter_of(JOB, reserved=(reservation,)).next_change(NOW) == NOW + expected
