"""What jobs used, learned from Slurm's books: CPU time and memory as Slurm gathered them, later where accounting is
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

from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.job import Profile

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
    """One that asks for the books as soon as it may; Slurm looks at the memory of its jobs every second."""
    options = ["--acctg-freq=task=1"]
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus, submit_options=options)) as made:
        config = yaml.safe_load(made.config.read_text()) | {"books": {"delay_seconds": 1, "every_seconds": 1}}
        made.config.write_text(yaml.safe_dump(config))
        (tmp_path / "burn.py").write_text(BURN)
        made.start()
        yield made


def run(daemon: SlurmDaemon, seconds: float) -> str:
    """Have the daemon run a job that takes so much CPU time, to its end; returns its key."""
    job = {"command": ["python3", str(daemon.folder / "burn.py"), str(seconds)]}
    flow = {"schema": "pilotfish/workflow/v1", "name": "burning", "jobs": {"burn": job}}
    path = daemon.folder / "burning.yaml"
    path.write_text(yaml.safe_dump(flow))
    done = pilotfish("submit", path, "--socket", daemon.socket, "--wait")
    assert done.returncode == 0, done.stderr
    return f"{done.stdout.strip()}/burn"


def learned(daemon: SlurmDaemon, seconds: float, runs: int = 1) -> Profile:
    """What the daemon has learned of such jobs, once it is from so many runs."""

    def look() -> Profile | None:
        with closing(ProfileStore(daemon.folder / "profiles.sqlite")) as store:
            profile = store.get(f"cmd: burn.py {seconds}")
        return profile if profile is not None and profile.provenance.runs >= runs else None

    return eventually(look, "a profile from the books")


def test_a_job_that_burns_is_learned_from_the_books_and_then_foretold(daemon: SlurmDaemon) -> None:
    run(daemon, 3.0)
    profile = learned(daemon, 3.0)
    (group,) = profile.groups
    assert group.count == 1 and 3.0 <= group.demand < 4.0, profile
    assert 64 << 20 <= profile.memory < 256 << 20
    about = profile.provenance
    assert (about.source, about.runs, profile.measured_on) == ("measured", 1, "t") and about.date and about.interval
    assert about.note.startswith("measured by slurm accounting")
    assert (group.bandwidth, profile.ipc, profile.power_watts) == (0.0, None, None), "the books do not tell"
    again = daemon.ask("explain", job=run(daemon, 3.0)) or {}
    (chosen,) = [record for record in again["story"] if record["kind"] == "chosen"]
    assert chosen["data"]["run_time"] == pytest.approx(group.isolated_time)
    assert learned(daemon, 3.0, runs=2).groups[0].demand < 4.0
    assert "Traceback" not in daemon.log.read_text() and daemon.stop(signal.SIGTERM) == 0


def test_while_accounting_is_away_nothing_is_forgotten_also_over_a_restart(
    site: SlurmSite, daemon: SlurmDaemon
) -> None:
    site.signal("slurmdbd", signal.SIGKILL)
    for seconds in (1.0, 1.5):
        run(daemon, seconds)
    eventually(lambda: "cannot be read from the accounting" in daemon.log.read_text(), "a word about it")
    assert daemon.stop(signal.SIGTERM) == 0
    daemon.start()
    run(daemon, 2.0)
    site.start_accounting()
    for seconds in (1.0, 1.5, 2.0):
        assert seconds <= learned(daemon, seconds).groups[0].demand < seconds + 1.0
    assert "Traceback" not in daemon.log.read_text() and daemon.stop(signal.SIGTERM) == 0
