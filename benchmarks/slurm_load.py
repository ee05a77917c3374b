"""Cost of the daemon for a real Slurm: requests, CPU time and memory, by the load of waiting and handed-over jobs.

Rule: counted by `sdiag` and /proc over the same time, and printed with slurmctld's CPU time without the daemon. Quiet:
all cores but one are taken by long jobs, and every job that waits needs a whole node. Busy: besides, a small job is
handed over every 2 s, and runs for 1 s on that core.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pilotfish.benchmarks.show import heading, number, table
from pilotfish.benchmarks.slurm_overhead import submit_many

from slurm_cluster import SlurmCluster  # isort: skip  (`slurm_overhead` makes these known)
from slurm_daemon import SlurmDaemon  # isort: skip
from slurm_site import SlurmSite, missing  # isort: skip
from slurm_work import hand_over  # isort: skip

#: Jobs that wait, and those of them that are handed over.
CELLS = ((0, 0), (3_000, 0), (5_000, 0), (5_000, 200), (5_000, 1_000), (3_000, 1_000), (3_000, 200))
_CALL = re.compile(r"REQUEST_(\w+)\s*\(\s*\d+\)\s*count:(\d+)")
_COUNTED = ("INFO", "UPDATE", "STATS", "PING")
_TICKS = os.sysconf("SC_CLK_TCK")
SETTLE_S, EVERY_S = 15.0, 2.0


def measure(quick: bool) -> None:
    """Print the table."""
    heading("Load on a real Slurm; targets: 6 RPCs/min and 0.5 % idle, 60 RPCs/min and 5 % quiet, 15 % busy")
    if why_not := missing():
        print(f"skipped: {why_not}")
        return
    seconds = 20.0 if quick else 60.0
    rows = []
    with _site() as site:
        for waiting, handed_over in CELLS[:1] if quick else CELLS:
            _fill(site, waiting, handed_over)
            before = _spent(site.pid("slurmctld"))
            time.sleep(seconds / 4)
            alone = (_spent(site.pid("slurmctld")) - before) / (seconds / 4)
            for activity in ("quiet", "busy"):
                for by, url in (("commands", ""), ("REST", site.rest_url)):
                    cells = _measured(site, url, seconds, busy=activity == "busy")
                    rows.append([f"{waiting:,}", f"{handed_over:,}", by, activity, *cells, f"{100 * alone:.1f}"])
                    print(*rows[-1], flush=True)
    table(("waiting", "handed over", "by", "what", "RPCs/min", "daemon %", "MiB", "slurmctld %", "alone %"), rows)
    print("%: of a core; the daemon's with the commands that it runs. alone: slurmctld without the daemon, quiet.")


@contextmanager
def _site() -> Iterator[SlurmSite]:
    with tempfile.TemporaryDirectory(prefix="bench-load-", ignore_cleanup_errors=True) as name:
        site, before = SlurmSite(Path(name) / "slurm"), dict(os.environ)
        try:
            site.up()
            os.environ |= site.environment
            for node in range(1, site.nodes + 1):
                cpus = site.cpus - (node == site.nodes)
                site.submit("sleep 36000", f"--nodelist=n{node}", f"--cpus-per-task={cpus}", "--time=10:00:00")
            site.until(lambda: not site.run("squeue", "--noheader", "--states=pending"), "the nodes to be taken")
            yield site
        finally:
            site.down()
            os.environ.clear()
            os.environ |= before


def _fill(site: SlurmCluster, waiting: int, handed_over: int) -> None:
    """Submit or cancel jobs until so many wait, so many of them handed over; all need a whole node."""
    jobs_of: dict[str, list[str]] = {"none": [], "pilotfish:hold=7200": []}
    for line in site.run("squeue", "--noheader", "--states=pending", "--format=%A %k").splitlines():
        jobs_of.setdefault(line.split()[1], []).append(line.split()[0])
    for (comment, jobs), target in zip(
        jobs_of.items(), (waiting - handed_over, handed_over, *[0] * len(jobs_of)), strict=False
    ):
        for first in range(target, len(jobs), 500):  # also what a busy time has left
            site.run("scancel", *jobs[first : first + 500])
        begin = ["--begin=now+7200"] if comment != "none" else []
        options = f"--comment={comment}", f"--cpus-per-task={site.cpus}", *begin
        for first in range(len(jobs), target, 100):
            submit_many(site, min(100, target - first), *options)


def _measured(site: SlurmSite, url: str, seconds: float, *, busy: bool) -> list[str]:
    """Return RPCs per minute, the daemon's CPU time and memory, and slurmctld's CPU time."""

    def go_on(until: float) -> None:
        while time.monotonic() < until:
            if busy:
                hand_over(site, "sleep 1", "--time=1")
            time.sleep(EVERY_S)

    options = {"rest_url": url} if url else {}
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SlurmDaemon(Path(folder), site.nodes, site.cpus, **options)) as daemon,
    ):
        daemon.config.write_text(daemon.config.read_text().replace("cycle_seconds: 0.5", "cycle_seconds: 1.0"))
        daemon.start()
        assert daemon.process is not None
        go_on(time.monotonic() + SETTLE_S)
        daemon_pid, controller_pid = daemon.process.pid, site.pid("slurmctld")
        before, began = (_calls(site), _spent(daemon_pid), _spent(controller_pid)), time.monotonic()
        go_on(began + seconds)
        after, duration = (_calls(site) - 1, _spent(daemon_pid), _spent(controller_pid)), time.monotonic() - began
        calls, spent, controller = (late - early for late, early in zip(after, before, strict=True))
        memory = int(Path(f"/proc/{daemon_pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024
    shares = f"{100 * spent / duration:.2f}", f"{memory:.0f}", f"{100 * controller / duration:.1f}"
    return [number(60 * calls / duration), *shares]


def _calls(site: SlurmCluster) -> int:
    """Return how many reads and updates the controller has counted, also of this."""
    calls = _CALL.findall(site.run("sdiag").partition("by user")[0])
    return sum(int(call_count) for name, call_count in calls if any(word in name for word in _COUNTED))


def _spent(pid: int) -> float:
    """Return the CPU time of a process and of its children that have ended, seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS
