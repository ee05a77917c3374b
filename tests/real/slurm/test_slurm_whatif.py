"""`whatif --adapter slurm` on a real site: starts of waiting jobs as they come true, and a maintenance; Slurm is only
read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from real_world import pilotfish
from slurm_site import SlurmSite

pytestmark = pytest.mark.xdist_group("site 5")
#: A job of the all_nodes machine for less than its limit, seconds, and how far off a start may be: a limit is a minute, and
#: passes come 30 s apart at most.
RUN_S, OFF_S = 40, 90


def starts(site: SlurmSite, *words: str) -> list[dict[str, Any]]:
    """Return the scenarios of the queue as it is now."""
    document = json.loads(pilotfish("whatif", "--adapter", "slurm", "--json", *words).stdout)
    return list(document["scenarios"])


def test_waiting_jobs_start_when_it_says_and_a_drain_delays_them(site: SlurmSite) -> None:
    all_nodes = ("--exclusive", "--partition=main", "--time=1", f"--nodes={site.nodes}")
    first = site.submit(f"sleep {RUN_S}", *all_nodes)
    site.until(lambda: site.jobs()[first][0] == "RUNNING", "the first job")
    second, held = site.submit("sleep 1", *all_nodes), site.submit("sleep 1", *all_nodes, "--hold")
    before = site.jobs()
    as_it_is, drained = starts(site, "--drain", "n1@0..3600", "--repeat", "2")
    assert {job: row[0] for job, row in site.jobs().items()}.keys() == before.keys(), "nothing was submitted"
    expected = {job["id"]: job["start"] for job in as_it_is["jobs"]}
    assert expected[str(held)] is None and expected[str(second)] is not None
    (drain,) = drained["drains"]
    assert (drain["nodes"], drain["running"]) == (1, 1)
    later = {job["id"]: job["start"] for job in drained["jobs"]}
    assert later[str(second)] >= expected[str(second)] + 3000
    site.until(lambda: site.jobs()[second][0] == "COMPLETED", "the second job")
    began = site.run("squeue", "--noheader", "--states=all", f"--jobs={second}", "--format=%S")
    actual = datetime.fromisoformat(began).replace(tzinfo=UTC).timestamp()
    assert abs(actual - expected[str(second)]) <= OFF_S
    assert site.jobs()[held][0] == "PENDING"
