"""Why jobs never start in a replay: what they ask for, against what the files of the site have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pilotfish.simulate.slurm.site import Site, SiteJob, SiteNode, SitePartition, SiteQos, SiteRules
from pilotfish.simulate.slurm.unstarted import OTHER, reasons_never_started

NODES = tuple(SiteNode(f"n{number}", cpus=4, cores=4, memory_mib=1000, features=("old",)) for number in range(2))
PART = SitePartition("main", ("n0", "n1"), max_time_min=60, deny_accounts=frozenset(("poor",)))
DOWN = SitePartition("down", ("n0",), state="DOWN")
JOB = SiteJob("1", "a", "ann", "lab", "normal", ("main",), 0.0, limit_min=10)


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (replace(JOB, partitions=("gone",)), "no file describes the partition gone"),
        (replace(JOB, qos="gone"), "no file describes the QOS gone"),
        (replace(JOB, partitions=("down",)), "their partition does not start jobs"),
        (replace(JOB, account="poor"), "their partition does not allow their account or QOS"),
        (replace(JOB, min_nodes=3), "they want more nodes than their partition has"),
        (replace(JOB, limit_min=61), "their time limit is above MaxTime of the partition"),
        (replace(JOB, constraint="new&old"), "no node of their partition has the feature new"),
        (replace(JOB, memory_per_node_mib=1001), "too few nodes of their partition have that many CPUs or GPUs"),
        (replace(JOB, constraint="new|old", limit_min=60), OTHER),
    ],
)
def test_the_reason_is_what_the_site_lacks(job: SiteJob, reason: str) -> None:
    site = Site(SiteRules(), NODES, (PART, DOWN), (SiteQos("normal"),), jobs=(JOB, job, job))
    ((text, number),) = reasons_never_started(site, np.array([False, True, True]))
    assert text.startswith(reason) and number == 2
