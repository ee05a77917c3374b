"""A canary on a real Slurm steps back to shadow by itself, stays there, and loses no job."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_world import eventually
from slurm_cluster import SlurmCluster
from slurm_daemon import SlurmDaemon
from slurm_work import all_ended

from pilotfish.daemon.state.forecasts import Forecaster
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.unsaved import Unsaved

pytestmark = pytest.mark.xdist_group("slurm 2")


@pytest.fixture
def daemon(slurm: SlurmCluster, tmp_path: Path) -> Iterator[SlurmDaemon]:
    with closing(SlurmDaemon(tmp_path, slurm.nodes, slurm.cpus)) as service:
        yield service


def configure(daemon: SlurmDaemon, **sections: Any) -> None:
    config = yaml.safe_load(daemon.config.read_text())
    daemon.config.write_text(yaml.safe_dump(config | sections))


def hand_over(slurm: SlurmCluster, number: int) -> list[int]:
    """Hand jobs over without a hold, each as large as a node."""
    return [slurm.submit("sleep 1", "--comment=pilotfish", f"--cpus-per-task={slurm.cpus}") for _ in range(number)]


def writes(daemon: SlurmDaemon) -> set[str]:
    reply = daemon.ask("log") or {}
    return {line["target"] for line in reply["lines"] if line["kind"] == "write"}


def test_guard_rails_step_back_to_shadow_until_a_person_steps_up(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    """The journal has forecasts that missed, so that the guard trips in the first cycle, with jobs handed over."""
    configure(daemon, handover={"share": 0.9})
    daemon.start()
    daemon.stop(signal.SIGKILL)
    with closing(Journal(daemon.config.parent / "state" / "journal.sqlite")) as journal:
        journal.save([], unsaved=Unsaved(errors=[(Forecaster("max-min", "measured"), 2.0, 5)] * 20))
    jobs = hand_over(slurm, 12)
    daemon.start()

    def stepped_back() -> Any:
        status = daemon.ask("status") or {}
        return status.get("run_mode") == "shadow" and status["handover"]["stepped_back"]

    eventually(stepped_back, "the step back")
    eventually(lambda: all_ended(slurm, jobs), "the end of all jobs")
    daemon.stop(signal.SIGKILL)
    daemon.start()
    assert stepped_back(), "it survives a kill"
    before = len(writes(daemon))
    later = hand_over(slurm, 8)
    eventually(lambda: all_ended(slurm, later), "the end of the jobs of Slurm alone")
    assert len(writes(daemon)) == before
    lines = [line for line in (daemon.ask("log") or {})["lines"] if line["kind"] == "mode"]
    assert any(line["by"] == "guard rail" and "guard rails have tripped" in line["why"] for line in lines)
    assert (daemon.ask("step_up", why="seen") or {})["ok"]
    eventually(lambda: (daemon.ask("status") or {}).get("run_mode") == "live", "live again")
