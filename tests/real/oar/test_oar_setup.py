"""The printed commands of the setup and its undo, the admission rule, and the switch of the default queue, as typed."""

from __future__ import annotations

import re
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from oar_cluster import SCHEDULERS, USERS, OarCluster
from oar_daemon import OarDaemon, work
from oar_mounts import group
from oar_site import STOCK, Shim
from real_world import eventually

from pilotfish.adapters import registry

pytestmark = pytest.mark.xdist_group(group(2))
FOLDER, CONFIG = Path("/var/lib/pilotfish-oar"), Path("/etc/oar/pilotfish_sched.conf")
SMALL = ("-l", "/core=1,walltime=0:02:00")
RULE = "handed over to pilotfish"


def typed(text: str) -> str:
    """Run printed commands as root does; return what they say."""
    done = subprocess.run(["/bin/sh", "-e", "-c", text], capture_output=True, text=True, timeout=60, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rules(oar: OarCluster) -> list[str]:
    """The numbers of our admission rules."""
    return re.findall(r"^\d+$", oar.sql(f"select id from admission_rules where rule like '%{RULE}%'"), re.MULTILINE)


class Printed(Shim):
    """The shim as the printed commands install it."""

    def __init__(self, oar: OarCluster, owner: str) -> None:
        super().__init__(oar, owner)
        self.file = FOLDER / "placements"


def test_what_doctor_prints_is_typed_used_and_undone(oar: OarCluster) -> None:
    if FOLDER.exists() or CONFIG.exists():
        pytest.skip(f"SKIPPED: {FOLDER} or {CONFIG} is a site's")
    Shim(oar, "root").remove()
    stock = oar.sql("select scheduler_policy from queues where queue_name = 'default'")
    assert stock == STOCK
    try:
        typed(registry.setup("oar", USERS[0]))
        assert oar.sql("select state, scheduler_policy from queues where queue_name = 'pilotfish'") == (
            "Active|pilotfish_sched"
        )
        assert len(rules(oar)) == 1
        typed('oarnotify --remove-queue default\noarnotify --add-queue "default,2,pilotfish_sched"')
        jobs = work(oar, "printed")
        with closing(OarDaemon("printed", oar, Printed(oar, USERS[0]), projects=["grid"])) as daemon:
            daemon.start()
            eventually((FOLDER / "placements").exists, "the first heartbeat")
            by_type = jobs.add(0.1, *SMALL, "-t", "pilotfish", user=USERS[0], queue="default")
            by_project = jobs.add(0.1, *SMALL, "--project=grid", user=USERS[1], queue="default")
            jobs.add(0.1, *SMALL, user=USERS[0], queue="default")
            jobs.wait()
            for job in (by_type, by_project):
                placed = eventually(lambda job=job: daemon.placed(job), f"the choice for {job}")
                assert oar.jobs()[job] == ("Terminated", tuple(sorted(placed)))
            assert daemon.stop(signal.SIGTERM) == 0
        assert oar.sql(f"select queue_name from jobs where job_id = {by_type}") == "pilotfish"
        held = oar.submit("true", "-q", "pilotfish", "--hold", *SMALL)
        typed(registry.setup("oar", USERS[0], undo=True))
        assert not rules(oar) and not FOLDER.exists() and not CONFIG.exists()
        assert not [each for each in SCHEDULERS.iterdir() if "ilotfish" in each.name]
        both = "from queues where queue_name in ('default', 'pilotfish') order by priority"
        queues = oar.sql(f"select queue_name, priority, scheduler_policy, state {both}").split()
        assert queues == [f"default|2|{stock}|Active", f"pilotfish|5|{stock}|Active"]
        oar.run("oarresume", str(held))
        jobs.jobs.append(held)
        jobs.add(0.1, *SMALL, user=USERS[0], queue="default")
        jobs.wait()
        assert {oar.jobs()[job][0] for job in jobs.jobs} == {"Terminated"}
        typed("oarnotify --remove-queue pilotfish")
    finally:
        oar.run("oarnotify", "--remove-queue", "default", check=False)
        oar.run("oarnotify", "--add-queue", f"default,2,{stock}", check=False)
        subprocess.run(["/bin/sh", "-c", registry.setup("oar", USERS[0], undo=True)], capture_output=True, check=False)
        for number in rules(oar):
            oar.run("oaradmissionrules", "--delete", number, check=False)
