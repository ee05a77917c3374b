"""Power saving on a real Slurm: idle nodes go to sleep, and wake for a job that is placed on them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from real_world import eventually
from slurm_daemon import SlurmDaemon
from slurm_site import SlurmSite

pytestmark = pytest.mark.xdist_group("site 2")


@pytest.fixture
def daemon(site: SlurmSite, tmp_path: Path) -> Iterator[SlurmDaemon]:
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus)) as made:
        config = yaml.safe_load(made.config.read_text())
        config["power"] = {"save": True, "idle_seconds": 1.0, "spare_nodes": 0}
        made.config.write_text(yaml.safe_dump(config))
        yield made


def states(site: SlurmSite) -> dict[str, str]:
    lines = site.run("sinfo", "--noheader", "--Node", "--partition=main", "--format=%N %t").splitlines()
    return dict(line.split() for line in lines)


def test_idle_nodes_power_down_and_wake_for_a_job(site: SlurmSite, daemon: SlurmDaemon) -> None:
    site.run("scontrol", "update", "NodeName=n[3-8]", "State=DRAIN", "Reason=test")
    daemon.start()
    eventually(lambda: states(site)["n1"] == states(site)["n2"] == "idle~", "both idle nodes to sleep")
    assert set(list(states(site).values())[2:]) == {"drain"}
    job = site.submit("sleep 0.2", "--begin=now+600", "--comment=pilotfish:hold=600")
    eventually(lambda: site.jobs()[job][0] == "COMPLETED", "a job on a node that slept")
    assert site.jobs()[job][1] in ("n1", "n2") and daemon.placed(job) == (site.jobs()[job][1],)
    assert "powered off: n1, n2" in daemon.log.read_text() and daemon.stop(signal.SIGTERM) == 0
