"""Power saving on a real Slurm: idle nodes go to sleep and wake for a job, or before it, as a policy decides."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_world import eventually
from slurm_daemon import SlurmDaemon
from slurm_site import SlurmSite

pytestmark = pytest.mark.xdist_group("site 5")


@pytest.fixture
def made(site: SlurmSite, tmp_path: Path) -> Iterator[Callable[..., SlurmDaemon]]:
    """A function that makes a daemon with some keys of its configuration changed; only two nodes take jobs."""
    site.run("scontrol", "update", "NodeName=n[3-8]", "State=DRAIN", "Reason=test")
    with ExitStack() as stack:

        def make(**changes: Any) -> SlurmDaemon:
            daemon = stack.enter_context(closing(SlurmDaemon(tmp_path, site.nodes, site.cpus)))
            daemon.config.write_text(yaml.safe_dump(yaml.safe_load(daemon.config.read_text()) | changes))
            return daemon

        yield make


def states(site: SlurmSite) -> dict[str, str]:
    lines = site.run("sinfo", "--noheader", "--Node", "--partition=main", "--format=%N %t").splitlines()
    return dict(line.split() for line in lines)


def test_idle_nodes_power_down_and_wake_for_a_job(site: SlurmSite, made: Callable[..., SlurmDaemon]) -> None:
    daemon = made(power={"save": True, "idle_seconds": 1.0, "spare_nodes": 0})
    daemon.start()
    eventually(lambda: states(site)["n1"] == states(site)["n2"] == "idle~", "both idle nodes to sleep")
    assert set(list(states(site).values())[2:]) == {"drain"}
    job = site.submit("sleep 0.2", "--begin=now+600", "--comment=pilotfish:hold=600")
    eventually(lambda: site.jobs()[job][0] == "COMPLETED", "a job on a node that slept")
    assert site.jobs()[job][1] in ("n1", "n2") and daemon.placed(job) == (site.jobs()[job][1],)
    assert "powered off: n[1-2]" in daemon.log.read_text() and daemon.stop(signal.SIGTERM) == 0


def test_a_policy_keeps_half_of_the_nodes_off_and_wakes_them_for_a_wide_job(
    site: SlurmSite, made: Callable[..., SlurmDaemon]
) -> None:
    daemon = made(policy="easy+proportional:rho=0.5,period=2")
    daemon.start()
    eventually(lambda: states(site)["n2"] == "idle~", "a node to sleep")
    small, wide = ([f"--nodes={nodes}", f"--ntasks={nodes * site.cpus}", "--time=1"] for nodes in (1, 2))
    handed = ["--begin=now+600", "--comment=pilotfish:hold=600"]
    jobs = [site.submit("sleep 0.5", *small, *handed) for _ in range(2)]
    eventually(lambda: all(site.jobs()[job][0] == "COMPLETED" for job in jobs), "two jobs, one after the other")
    assert {site.jobs()[job][1] for job in jobs} == {"n1"} and states(site)["n2"] == "idle~"
    job = site.submit("sleep 0.2", *wide, *handed)
    eventually(lambda: site.jobs()[job][0] == "COMPLETED", "a job on a node that slept and one that did not")
    eventually(lambda: states(site)["n2"] == "idle~", "the node to sleep again")
    assert states(site)["n1"] == "idle" and set(list(states(site).values())[2:]) == {"drain"}
    assert daemon.stop(signal.SIGTERM) == 0


def test_a_node_is_powered_on_before_a_job_needs_it_also_after_a_restart(
    site: SlurmSite, made: Callable[..., SlurmDaemon]
) -> None:
    daemon = made(policy="easy+inertial:v_ub=5,period=2")
    daemon.start()
    eventually(lambda: states(site)["n1"] == states(site)["n2"] == "idle~", "both idle nodes to sleep")
    daemon.stop(signal.SIGKILL)
    daemon.start()
    asked = ["--nodes=1", f"--ntasks={site.cpus}", "--time=1", "--begin=now+600", "--comment=pilotfish:hold=600"]
    jobs = [site.submit("sleep 15", *asked) for _ in range(3)]
    eventually(lambda: "powered on: n" in daemon.log.read_text(), "a node to be powered on")
    eventually(lambda: all(site.jobs()[job][0] == "COMPLETED" for job in jobs), "all jobs")
    assert {site.jobs()[job][1] for job in jobs} == {"n1", "n2"} and daemon.stop(signal.SIGTERM) == 0


def test_a_dry_run_prints_what_it_would_switch(site: SlurmSite, made: Callable[..., SlurmDaemon]) -> None:
    daemon = made(policy="easy+opportunistic:t_idle=2")
    daemon.start("--dry-run", "--show-commands")
    command = "  scontrol update 'NodeName=n[1-2]' State=POWER_DOWN\n"
    eventually(lambda: daemon.out.read_text().endswith(f"power off n[1-2]\n{command}"), "the line and its command")
    assert states(site)["n1"] == states(site)["n2"] == "idle" and daemon.stop(signal.SIGTERM) == 0
