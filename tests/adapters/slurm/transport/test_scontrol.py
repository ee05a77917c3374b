"""The cores of a job that has begun, as `scontrol --details show job` prints them (Slurm 22.05)."""

from __future__ import annotations

import pytest

from pilotfish.adapters.slurm.transport.scontrol import allocation

BEFORE = "JobId=7 JobName=x\n   JobState=RUNNING Reason=None\n   NumNodes=2 NumCPUs=4\n   JOB_GRES=(null)\n"


@pytest.mark.parametrize(
    ("lines", "cores"),
    [
        (["Nodes=n[1-2] CPU_IDs=2-3 Mem=0 GRES="], {"n1": (2, 3), "n2": (2, 3)}),
        (["Nodes=n1 CPU_IDs=0,2-3 Mem=512 GRES=", "Nodes=n4 CPU_IDs=1 Mem=512 GRES="], {"n1": (0, 2, 3), "n4": (1,)}),
        (["Nodes=n1 CPU_IDs=0 Mem=0 GRES=", "Nodes=n[1- CPU_IDs=1 Mem=0 GRES="], {"n1": (0,)}),
        (["Nodes=n[1-99999999] CPU_IDs=1 Mem=0 GRES="], {}),
        (["Nodes=n1 CPU_IDs=3-1 Mem=0 GRES="], {}),
        (["Nodes=n1 CPU_I"], {}),
        ([], {}),
    ],
)
def test_cores_are_read_node_by_node(lines: list[str], cores: dict[str, tuple[int, ...]]) -> None:
    allocated = allocation(BEFORE + "".join(f"     {line}\n" for line in lines))
    assert (allocated.cores, allocated.resized) == (cores, False)
