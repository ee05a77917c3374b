"""A scheduler that was written for Batsim decides next to a real OAR: first come, first served, without backfilling."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from oar_cluster import USERS, OarCluster
from oar_daemon import OarDaemon, work
from oar_mounts import group
from oar_site import QUEUE, Shim
from real_world import eventually

from pilotfish.adapters.oar.placement_file import END, HEADER

pytestmark = pytest.mark.xdist_group(group(1))
FCFS = Path(__file__).parents[2] / "adapters" / "batsim" / "fcfs_component.py"


def test_a_component_decides_for_oar(oar: OarCluster, users_shim: Shim) -> None:
    """On one node of two cores the third job, which would fit next to the first, waits for the second."""
    oar.run("oarnodesetting", "-s", "Absent", "--sql", f"network_address <> '{oar.nodes[0]}'")
    kept = f"alive {int(time.time()) + 110}\nkeep queue {QUEUE} 600"  # until the daemon keeps them
    users_shim.file.write_text(f"{HEADER}\n{kept}\n{END}\n")
    jobs = work(oar, "component")
    for cores, seconds in ((1, 3), (2, 0.5), (1, 0.5)):
        jobs.add(seconds, "-l", f"/core={cores},walltime=0:02:00", user=USERS[1])
    with closing(OarDaemon("component", oar, users_shim)) as daemon:
        socket, config = daemon.folder / "edc", daemon.folder / "pilotfish.yaml"
        settings = yaml.safe_load(config.read_text()) | {"policy": f"batsim:ipc://{socket}"}
        config.write_text(yaml.safe_dump(settings))
        component = subprocess.Popen([sys.executable, FCFS, f"ipc://{socket}"])
        try:
            eventually(socket.exists, "the component's socket")
            socket.chmod(0o777)
            daemon.start()
            jobs.wait()
            jobs.each_ran_once()
            assert all(daemon.placed(job) == oar.nodes[:1] for job in jobs.jobs)
            assert daemon.stop(signal.SIGTERM) == 0 and "failed" not in daemon.log.read_text()
            assert component.wait(30) == 0  # the session has ended
        finally:
            component.kill()
    starts = [jobs.runs()[job][0] for job in jobs.jobs]
    assert starts == sorted(starts)
