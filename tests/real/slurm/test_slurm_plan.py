"""`pilotfish plan --adapter slurm`, `pilotfish cluster --adapter slurm`: a look at a real queue, and nothing more."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_world import pilotfish
from slurm_site import SlurmSite

from pilotfish.adapters.slurm.handed_over.pin_record import Pin, PinRecord

pytestmark = pytest.mark.xdist_group("site 2")
HOLD = ("--begin=now+600", "--comment=pilotfish:hold=600")


def test_slurm_then_does_what_was_printed(site: SlurmSite) -> None:
    jobs = [site.submit("sleep 2", *HOLD, "--cpus-per-task=3") for _ in range(3)]
    later = site.submit("true", "--begin=now+600", "--comment=pilotfish")
    before = site.show(jobs[0])
    done = pilotfish("plan", "--adapter", "slurm", "--policy", "mom", "--show-commands")
    assert done.returncode == 0, done.stderr
    assert "queue of slurm: 4 jobs handed over, 3 would start now, 8 nodes, policy mom" in done.stdout
    assert f"slurm/{later} waits: its user wants it to begin later" in done.stdout
    assert "GB/s assumed" in done.stderr
    assert site.show(jobs[0]) == before
    commands = [line for line in done.stdout.splitlines() if line.startswith("scontrol")]
    assert len(commands) == 3
    for line in commands:
        site.run(*shlex.split(line))
    site.until(lambda: all(site.jobs()[job][0] == "COMPLETED" for job in jobs), "the jobs")
    placed = {word.split("=")[1] for line in commands for word in line.split() if word.startswith("ReqNodeList=")}
    assert {site.jobs()[job][1] for job in jobs} == placed and len(placed) == 3


def test_the_same_by_a_configuration_and_for_programs(site: SlurmSite, tmp_path: Path) -> None:
    printed = pilotfish("cluster", "--adapter", "slurm")
    cluster = yaml.safe_load(printed.stdout)
    assert cluster["nodes"] == [{"names": "n[1-8]", "type": "c4-4GiB"}], printed.stderr
    cluster["nodes"][0]["names"] = "n[7-8]"
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(cluster))
    config = {
        "schema": "pilotfish/daemon/v1", "cluster": "cluster.yaml", "policy": "let", "state_dir": "state",
        "profiles": str(tmp_path / "profiles.sqlite"),
        "adapter": {"name": "slurm", "options": {"partitions": ["half"]}},
    }  # fmt: skip
    (tmp_path / "pilotfish.yaml").write_text(yaml.safe_dump(config))
    job, foreign = site.submit("sleep 1", *HOLD), site.submit("sleep 1", "--begin=now+600")
    told = pilotfish("plan", "--config", tmp_path / "pilotfish.yaml", "--json")
    assert told.returncode == 0, told.stderr
    seen = json.loads(told.stdout)
    assert [start["job"] for start in seen["starts"]] == [f"slurm/{job}"] and seen["plan"]["policy"] == "let"
    assert seen["starts"][0]["nodes"][0] in ("n7", "n8") and f"slurm/{foreign}" not in told.stdout
    assert not (tmp_path / "state").exists() and not (tmp_path / "profiles.sqlite").exists()
    pinned = site.submit("sleep 1", "--hold", "--nodelist=n8", "--partition=half")
    record = PinRecord(tmp_path / "state" / "slurm")
    record.add(pinned, Pin(site.uid("games"), ("n8",), int(time.time()) - 600))
    told = pilotfish("plan", "--config", tmp_path / "pilotfish.yaml", "--json")
    assert f"scontrol update JobId={pinned} ReqNodeList=" in json.loads(told.stdout)["commands"], told.stdout
    assert site.show(pinned)["ReqNodeList"] == "n8" and PinRecord(tmp_path / "state" / "slurm").jobs() == {pinned}


def test_an_empty_queue_and_a_controller_that_is_down_are_reported(
    site: SlurmSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done = pilotfish("plan", "--adapter", "slurm")
    assert done.returncode == 0 and "No waiting job is handed over" in done.stdout
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none"))
    done = pilotfish("plan", "--adapter", "slurm")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and done.stderr.startswith("pilotfish: error: sinfo")


def test_a_queue_is_planned_as_if_its_partition_were_handed_over(site: SlurmSite, tmp_path: Path) -> None:
    """The plan, its commands and its waits are those of a service that is configured so, on the same queue."""
    blocker = site.submit("sleep 600", "--partition=half", "--nodes=4", "--exclusive")
    site.until(lambda: site.jobs()[blocker][0] == "RUNNING", "the job on the nodes of `half`")
    jobs = [site.submit("sleep 1", "--partition=half", "--begin=now+600", "--comment=mine") for _ in range(2)]
    jobs += [site.submit("sleep 1", "--partition=half", "--nodes=2") for _ in range(2)]

    reasons = ["BeginTime", "BeginTime", "Resources", "Priority"]
    site.until(lambda: [site.show(job)["Reason"] for job in jobs] == reasons, "Slurm's reasons, which are compared")

    def ours() -> list[list[str | None]]:
        """What pilotfish may write, and when each job may begin."""
        return [[site.show(job).get(name) for name in ("ReqNodeList", "Comment", "EligibleTime")] for job in jobs]

    before = ours()
    whole = pilotfish("plan", "--adapter", "slurm")
    assert "0 jobs handed over" in whole.stdout and "--as-if-handed-over all" in whole.stdout
    (tmp_path / "cluster.yaml").write_text(pilotfish("cluster", "--adapter", "slurm").stdout)
    config = {
        "schema": "pilotfish/daemon/v1", "cluster": "cluster.yaml", "state_dir": "state",
        "profiles": str(tmp_path / "profiles.sqlite"),
        "adapter": {"name": "slurm", "options": {"partitions": ["half"]}},
    }  # fmt: skip
    (tmp_path / "pilotfish.yaml").write_text(yaml.safe_dump(config))

    def plan(*options: object) -> dict[str, Any]:
        printed = pilotfish("plan", *options, "--json")
        assert printed.returncode == 0, printed.stderr
        return json.loads(printed.stdout)

    def looks() -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return a plan of each kind, unless Slurm changed its own plan of the queue between the two looks around them."""
        looked = ("--adapter", "slurm", "--as-if-handed-over", "half")
        first, configured, last = plan(*looked), plan("--config", tmp_path / "pilotfish.yaml"), plan(*looked)
        return (first, configured) if first["waits"] == last["waits"] else None

    as_if, configured = next(pair for pair in (looks() for _ in range(5)) if pair)
    assert as_if["handed_over"] == len(jobs) and as_if["as_if_handed_over"] == ["half"]
    for name in ("handed_over", "starts", "commands", "waits", "rejected"):
        assert as_if[name] == configured[name], name
    assert ours() == before
    every = json.loads(pilotfish("plan", "--adapter", "slurm", "--as-if-handed-over", "all", "--json").stdout)
    assert every["handed_over"] == len(jobs) and set(every["as_if_handed_over"]) > {"half"}
    wrong = pilotfish("plan", "--adapter", "slurm", "--as-if-handed-over", "halv")
    assert wrong.returncode != 0 and "did you mean 'half'?" in " ".join(wrong.stderr.split())
    site.run("scancel", *map(str, (blocker, *jobs)))
