"""A canary on a real Slurm: its control group is only released, the card compares, it steps back and loses no job."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_world import eventually, pilotfish
from slurm_cluster import SlurmCluster
from slurm_daemon import SlurmDaemon
from slurm_lua import LuaSlurm
from slurm_work import all_ended

from pilotfish.daemon.state.forecasts import Forecaster
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.unsaved import Unsaved

pytestmark = pytest.mark.xdist_group("slurm 2")
#: Jobs with, and without, a hold.
HALF = 8


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


def lines(daemon: SlurmDaemon, kind: str) -> list[dict[str, Any]]:
    reply = daemon.ask("log") or {}
    return [line for line in reply["lines"] if line["kind"] == kind]


def writes(daemon: SlurmDaemon) -> set[str]:
    return {line["target"] for line in lines(daemon, "write")}


def drawn(daemon: SlurmDaemon) -> dict[str, str]:
    """Return the group of each job that has one, by key."""
    return {line["target"]: line["after"]["mode"] for line in lines(daemon, "handover")}


def test_a_control_job_gets_no_write_while_it_waits_and_none_but_its_release_when_held(
    lua: LuaSlurm, tmp_path: Path
) -> None:
    """A job on all nodes keeps the others waiting until all are drawn; half of them are held by job_submit.lua."""
    with closing(SlurmDaemon(tmp_path, lua.nodes, lua.cpus)) as daemon:
        configure(daemon, handover={"share": "50%"}, guard={"enabled": False})
        daemon.start()
        eventually(lambda: (daemon.ask("status") or {}).get("seen"), "the begin of the canary")
        blocker = lua.submit("sleep 300", f"--nodes={lua.nodes}", "--exclusive")
        eventually(lambda: lua.jobs()[blocker][0] == "RUNNING", "the blocker")
        held = [lua.submit("sleep 0.1", "--comment=pilotfish", "-n1") for _ in range(HALF)]
        lua.served.unlink()  # from now on nothing is held
        plain = [lua.submit("sleep 0.1", "--comment=pilotfish", "-n1") for _ in range(HALF)]
        jobs = {f"slurm/{job}" for job in (*held, *plain)}
        eventually(lambda: drawn(daemon).keys() == jobs, "the groups")
        daemon.stop(signal.SIGKILL)
        daemon.start()
        control = {target for target, side in drawn(daemon).items() if side == "control"}
        given_back = control & {f"slurm/{job}" for job in held}
        eventually(lambda: given_back <= writes(daemon), "the releases")
        lua.run("scancel", str(blocker))
        eventually(lambda: all_ended(lua, [*held, *plain]), "the end of all jobs")
        releases = [line for line in lines(daemon, "write") if line["target"] in control]
        assert {line["target"] for line in releases} == given_back, "a control job without a hold is not written to"
        assert {(line["by"], line["action"]) for line in releases} == {("canary", "release")}
        for job in (*held, *plain):
            shown = lua.show(job)
            assert shown["JobState"] == "COMPLETED"
            assert f"slurm/{job}" not in control or shown["ReqNodeList"] == "(null)"
        assert 0 < len(control) < len(jobs) and drawn(daemon).keys() == jobs

        def compared() -> dict[str, Any]:
            document = json.loads(pilotfish("score", "--config", daemon.config, "--canary", "--json").stdout)
            return document if document["jobs"] == {"canary": len(jobs - control), "control": len(control)} else {}

        document = eventually(compared, "all jobs on the card, once the daemon has seen their ends")
        assert document["not_drawn"] == 0 and (document["hold_s"] > 0.0) == bool(given_back)
        text = pilotfish("score", "--config", daemon.config, "--canary").stdout
        assert "CONTROL" in text and "verdict" in text


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
    assert any(
        line["by"] == "guard rail" and "guard rails have tripped" in line["why"] for line in lines(daemon, "mode")
    )
    assert (daemon.ask("step_up", why="seen") or {})["ok"]
    eventually(lambda: (daemon.ask("status") or {}).get("run_mode") == "live", "live again")
