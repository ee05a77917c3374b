"""The daemon and the reaper with the restrictions of their units, beside a real Slurm."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path

import confined
import psutil
import pytest
from real_world import COMMAND, PATIENCE_S, eventually
from slurm_daemon import SlurmDaemon
from slurm_site import OPERATOR, SlurmSite

import pilotfish

pytestmark = pytest.mark.xdist_group("site 2")
UNITS = Path(pilotfish.__file__).parent / "systemd"
#: The numbers are mount, ptrace, unshare, setns and kexec_load.
FORBIDDEN = """
import ctypes, os, socket, sys
def fails(what, *arguments):
    try: what(*arguments)
    except OSError: return
    sys.exit(f"{what} {arguments} was allowed")
for path in ("/etc/x", "/usr/x", "/var/lib/x", "/run/x", "/root/x", "/home/../x"): fails(open, path, "w")
for family in (socket.AF_NETLINK, socket.AF_PACKET): fails(socket.socket, family, socket.SOCK_RAW)
fails(os.setuid, 0); fails(os.chroot, "/"); fails(os.listdir, "/home/x"); fails(open, "/dev/mem")
libc = ctypes.CDLL(None)
for call in (165, 101, 272, 308, 246): assert libc.syscall(call, 0, 0, 0, 0, 0) == -1, call
assert os.umask(0) == 0o077
"""


def test_the_service_works_shut_in_as_its_unit_says(site: SlurmSite, tmp_path: Path) -> None:
    if lacks := confined.missing():
        pytest.skip(f"SKIPPED, not here: {lacks}")
    folder = site.shared() / f"{tmp_path.name}-confined"
    folder.mkdir()
    with closing(SlurmDaemon(folder, site.nodes, site.cpus, OPERATOR)) as daemon:
        free = daemon.prefix
        if subprocess.run([*free, *COMMAND, "--version"], capture_output=True, cwd="/").returncode:
            pytest.skip(f"SKIPPED, the user {OPERATOR} may not read the folder in which pilotfish is installed")

        def shut_in(unit: str) -> list[str]:
            return confined.prefix(UNITS / unit, OPERATOR, writes=folder, reads=site.path)

        daemon.prefix = shut_in("pilotfishd.service")
        tried = [*daemon.prefix, COMMAND[0] if len(COMMAND) > 1 else "/usr/bin/python3", "-c", FORBIDDEN]
        done = subprocess.run(tried, capture_output=True, text=True, env=daemon.environment)
        assert done.returncode == 0, done.stderr + done.stdout
        daemon.start()
        jobs = [site.submit("sleep 0.3", "--begin=now+600", "--comment=pilotfish:hold=600") for _ in range(6)]
        eventually(lambda: all(site.jobs()[job][0] == "COMPLETED" for job in jobs), "the jobs")
        said = daemon.log.read_text()
        assert "Traceback" not in said and "Operation not permitted" not in said
        assert daemon.process is not None
        (inside,) = psutil.Process(daemon.process.pid).children()
        inside.terminate()
        assert daemon.process.wait(PATIENCE_S) == 0
        argv = [*shut_in("pilotfish-reap.service"), *COMMAND, "reap", "--config", str(daemon.config)]
        done = subprocess.run(argv, capture_output=True, text=True, env=daemon.environment, cwd="/")
        assert (done.returncode, done.stderr) == (0, "")
