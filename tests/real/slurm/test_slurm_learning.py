"""What jobs used, learned from Slurm's accounting: CPU time and memory as Slurm gathered them, later where accounting is
away, and nothing is forgotten."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from real_world import eventually, pilotfish
from slurm_daemon import SlurmDaemon
from slurm_site import SlurmSite
from slurm_work import hand_over

from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.job import Profile

pytestmark = pytest.mark.xdist_group("site 1")
#: takes so many seconds of CPU, however busy the machine is
BURN = """
import sys, time
held = bytearray(64 << 20)
while time.process_time() < float(sys.argv[1]):
    pass
"""


@pytest.fixture
def daemon(site: SlurmSite, tmp_path: Path) -> Iterator[SlurmDaemon]:
    """One that asks accounting as soon as it may; Slurm looks at the memory of its jobs every second."""
    options = ["--acctg-freq=task=1"]
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus, submit_options=options)) as made:
        config = yaml.safe_load(made.config.read_text()) | {"accounting": {"delay_seconds": 1, "every_seconds": 1}}
        made.config.write_text(yaml.safe_dump(config))
        (site.shared() / "burn.py").write_text(BURN)
        made.start()
        yield made


def run(site: SlurmSite, daemon: SlurmDaemon, seconds: float) -> str:
    """Have the daemon run a job that takes so much CPU time, to its end; returns its key."""
    job = {"command": ["python3", str(site.shared() / "burn.py"), str(seconds)]}
    flow = {"schema": "pilotfish/workflow/v1", "name": "burning", "jobs": {"burn": job}}
    path = daemon.folder / "burning.yaml"
    path.write_text(yaml.safe_dump(flow))
    done = pilotfish("submit", path, "--socket", daemon.socket, "--wait")
    assert done.returncode == 0, done.stderr
    return f"{done.stdout.strip()}/burn"


def learned(daemon: SlurmDaemon, name: str, runs: int = 1) -> Profile:
    """What the daemon has learned under a name, once it is from so many runs."""

    def look() -> Profile | None:
        with closing(ProfileStore(daemon.folder / "profiles.sqlite")) as store:
            profile = store.get(name)
        return profile if profile is not None and profile.provenance.runs >= runs else None

    return eventually(look, "a profile from accounting")


def state(daemon: SlurmDaemon, key: str) -> str:
    """Of a job, as the daemon tells it; "" while it does not know it."""
    return str((daemon.ask("explain", job=key) or {}).get("job", {}).get("state", ""))


def forecast_of(daemon: SlurmDaemon, key: str) -> float:
    """Return the run time that was forecast at the start of a job, seconds."""
    told = daemon.ask("explain", job=key) or {}
    (*_, chosen) = [record for record in told["story"] if record["kind"] == "chosen"]
    return float(chosen["data"]["run_time"])


def test_a_busy_job_is_learned_from_accounting_and_then_forecast(site: SlurmSite, daemon: SlurmDaemon) -> None:
    run(site, daemon, 3.0)
    profile = learned(daemon, "cmd: burn.py 3.0")
    (group,) = profile.groups
    assert group.count == 1 and 3.0 <= group.demand < 4.0, profile
    assert 64 << 20 <= profile.memory < 256 << 20
    about = profile.provenance
    assert (about.source, about.runs, profile.measured_on) == ("measured", 1, "t") and about.date and about.interval
    assert about.note.startswith("measured by slurm accounting")
    assert (group.bandwidth, profile.ipc, profile.power_watts) == (0.0, None, None), "accounting does not record them"
    assert forecast_of(daemon, run(site, daemon, 3.0)) == pytest.approx(group.isolated_time)
    assert learned(daemon, "cmd: burn.py 3.0", runs=2).groups[0].demand < 4.0
    assert daemon.stop(signal.SIGTERM) == 0


def test_users_jobs_are_learned_by_name_after_two_similar_runs(site: SlurmSite, daemon: SlurmDaemon) -> None:
    """The first are planned with what their users asked for, ten minutes."""
    line, options = f"exec python3 {site.shared()}/burn.py 2", ("--job-name=burning", "--acctg-freq=task=1")
    name = f"job: burning of research/{site.uid('games')}, 1 core"
    foreseen = []
    for number in range(3):
        job = hand_over(site, line, *options)
        eventually(lambda key=f"slurm/{job}": state(daemon, key) == "completed", "the end of a job")
        foreseen.append(forecast_of(daemon, f"slurm/{job}"))
        profile = learned(daemon, name, runs=number + 1)
        assert 2.0 <= profile.groups[0].demand < 3.0
    assert foreseen[:2] == [600.0, 600.0] and foreseen[2] < 60.0
    assert daemon.stop(signal.SIGTERM) == 0


def test_while_accounting_is_away_nothing_is_forgotten_also_over_a_restart(
    site: SlurmSite, daemon: SlurmDaemon
) -> None:
    site.signal("slurmdbd", signal.SIGKILL)
    for seconds in (1.0, 1.5):
        run(site, daemon, seconds)
    eventually(lambda: "cannot be read from the accounting" in daemon.log.read_text(), "a word about it")
    assert daemon.stop(signal.SIGTERM) == 0
    daemon.start()
    run(site, daemon, 2.0)
    site.start_accounting()
    for seconds in (1.0, 1.5, 2.0):
        assert seconds <= learned(daemon, f"cmd: burn.py {seconds}").groups[0].demand < seconds + 1.0
    assert daemon.stop(signal.SIGTERM) == 0
