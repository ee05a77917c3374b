"""The daemon and the reaper with the restrictions of their units, beside a real Slurm."""

from __future__ import annotations

import pwd
import subprocess
from contextlib import closing
from pathlib import Path

import confined
import psutil
import pytest
from real_world import COMMAND, PATIENCE_S, eventually, users_cache
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


def privileges(service: psutil.Process) -> None:
    """All that the service may do and all that it listens at: an ordinary user, one Unix socket."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{service.pid}/status").read_text().splitlines())
    assert {name: int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == dict.fromkeys(
        ("CapInh", "CapPrm", "CapEff", "CapAmb"), 0
    )
    assert (status["NoNewPrivs"], status["Seccomp"], status["Groups"].split()) == ("1", "2", [])
    operator = pwd.getpwnam(OPERATOR)
    assert {*service.uids()} == {operator.pw_uid} and {*service.gids()} == {operator.pw_gid}
    bound = [each.laddr for each in service.net_connections("all") if each.status in ("LISTEN", "NONE") and each.laddr]
    assert len(bound) == 1 and isinstance(bound[0], str)


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
            return confined.prefix(UNITS / unit, OPERATOR, writes=folder, reads=(site.path, users_cache(OPERATOR)))

        daemon.prefix = shut_in("pilotfishd.service")
        tried = [*daemon.prefix, COMMAND[0] if len(COMMAND) > 1 else "/usr/bin/python3", "-c", FORBIDDEN]
        done = subprocess.run(tried, capture_output=True, text=True, env=daemon.environment)
        assert done.returncode == 0, done.stderr + done.stdout
        cold = daemon.environment | {"PILOTFISH_CACHE": str(folder / "cache")}  # as ExecStartPre, with a smaller kernel
        done = subprocess.run([*daemon.prefix, *COMMAND, "warm", "-k", "swf.parser"], capture_output=True, env=cold)
        assert done.returncode == 0 and [*(folder / "cache").rglob("*.o")], done.stderr
        daemon.start()
        jobs = [site.submit("sleep 0.3", "--begin=now+600", "--comment=pilotfish:hold=600") for _ in range(6)]
        eventually(lambda: all(site.jobs()[job][0] == "COMPLETED" for job in jobs), "the jobs")
        said = daemon.log.read_text()
        assert "Traceback" not in said and "Operation not permitted" not in said
        assert daemon.process is not None
        (inside,) = psutil.Process(daemon.process.pid).children()
        privileges(inside)
        inside.terminate()
        assert daemon.process.wait(PATIENCE_S) == 0
        argv = [*shut_in("pilotfish-reap.service"), *COMMAND, "reap", "--config", str(daemon.config)]
        done = subprocess.run(argv, capture_output=True, text=True, env=daemon.environment, cwd="/")
        assert (done.returncode, done.stderr) == (0, "")
