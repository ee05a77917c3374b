"""The shim in front of each of OAR's own schedulers, and what a bad file means on a real OAR."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapter_contract import ended, until, view
from oar_cluster import SCHEDULERS, OarCluster
from oar_mounts import group
from oar_site import QUEUE, Shim
from oar_world import OarWorld

from pilotfish.simulate.model.plan import Place
from pilotfish.simulate.model.snapshot import JobState

pytestmark = pytest.mark.xdist_group(group(1))
STOCK = sorted(path.name for path in SCHEDULERS.glob("oar_sched_*"))


def test_these_are_the_schedulers_of_this_oar(oar: OarCluster) -> None:
    assert STOCK == [
        "oar_sched_gantt_with_timesharing",
        "oar_sched_gantt_with_timesharing_and_fairsharing",
        "oar_sched_gantt_with_timesharing_and_fairsharing_and_placeholder",
        "oar_sched_gantt_with_timesharing_and_fairsharing_and_quotas",
        "oar_sched_gantt_with_timesharing_and_placeholder",
    ]


@pytest.mark.parametrize("scheduler", STOCK or ["none"])
def test_a_scheduler_keeps_and_places_and_ignores_a_bad_file(
    oar: OarCluster, shim: Shim, tmp_path: Path, scheduler: str
) -> None:
    shim.install(scheduler)
    world = OarWorld(tmp_path, oar, shim)
    kept, placed = world.hand_over("kept", 0.1, 600), world.hand_over("placed", 0.1, 600)
    world.adapter.apply(Place(placed, view(world.adapter.snapshot(), placed).job, oar.nodes[2:3]))
    assert ended(world, placed).nodes == oar.nodes[2:3]
    waiting = view(world.adapter.snapshot(), kept)
    assert waiting.state is JobState.PENDING and waiting.offered
    message = oar.sql(f"select message from jobs where job_id = {kept.partition('/')[2]}")
    assert message.startswith("Kept by pilotfish, at most until ")
    shim.file.write_text(shim.file.read_text().replace("end\n", "place 1 2 '); delete from jobs; --\nend\n"))
    oar.run("oarnotify", "Term")
    number = int(kept.partition("/")[2])
    oar.until(lambda: oar.jobs()[number][0] == "Terminated", "the kept job")  # without a heartbeat of ours
    assert view(world.adapter.snapshot(), kept).state is JobState.COMPLETED
    assert oar.sql(f"select state from queues where queue_name = '{QUEUE}'") == "Active"
    assert "plain OAR in this pass" in (oar.path / "log" / "oar.log").read_text()


def test_more_jobs_than_a_pass_looks_at_do_not_hide_a_placed_one(oar: OarCluster, shim: Shim, tmp_path: Path) -> None:
    """OAR looks at 30 jobs of a user in a pass; kept jobs are not counted."""
    world = OarWorld(tmp_path, oar, shim)
    first = int(world.hand_over("first", 0.1, 600).partition("/")[2])
    line = ["-q", QUEUE, "-l", "/core=1,walltime=0:01:00", "--array", "40"]
    oar.submit("true", *line)
    last = f"oar/{first + 40}"
    until(world, lambda snapshot: any(job.key == last for job in snapshot.jobs))
    world.adapter.apply(Place(last, view(world.adapter.snapshot(), last).job, oar.nodes[1:2]))
    assert ended(world, last).nodes == oar.nodes[1:2]
    assert view(world.adapter.snapshot(), f"oar/{first}").state is JobState.PENDING
