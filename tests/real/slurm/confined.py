"""Run a command with the restrictions of a unit, as far as they can be had without systemd.

As a module it gives the prefix of such a command (`prefix`); as a program, run by the system's Python inside of
bubblewrap's mounts, it keeps the system calls and the address families that the unit allows, and becomes the command.
Not imitated: MemoryMax, TasksMax and devices by control group, ProtectProc, kernel tunables in /proc and /sys.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

#: The interpreter that has Debian's module seccomp.
PYTHON = "/usr/bin/python3"
#: What PrivateTmp and ProtectHome hide.
HIDDEN = ("/tmp", "/home", "/root")
#: CLONE_NEW*: the flags of `clone` that make a namespace.
NAMESPACES = 0x7E020080


def missing() -> str:
    """What is not here for it; empty: nothing."""
    tools = [tool for tool in ("bwrap", "systemd-analyze", "prlimit") if shutil.which(tool) is None]
    if not tools and subprocess.run([PYTHON, "-c", "import seccomp"], capture_output=True).returncode:
        tools = ["python3-seccomp"]
    if not tools and subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], capture_output=True).returncode:
        tools = ["the right to mount"]
    return ", ".join(tools)


def settings(unit: Path) -> dict[str, list[str]]:
    """The values of each setting of a unit, in order."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def prefix(unit: Path, user: str, *, writes: Path, reads: Iterable[Path]) -> list[str]:
    """The beginning of a command that runs as a user under a unit's restrictions.

    Args:
        unit: the file of the unit.
        user: who runs the command, with a group of that name.
        writes: the directory that stands for those that systemd makes for the service.
        reads: directories below /tmp that the command needs.
    """
    said = settings(unit)
    assert said["ProtectSystem"] == ["strict"] and said["CapabilityBoundingSet"] == [""]
    assert {said[name][0] for name in ("PrivateTmp", "PrivateDevices", "ProtectHome", "NoNewPrivileges")} == {"yes"}
    # What is needed in a hidden directory is shown again: an interpreter in a home directory, the test's own folder.
    needed = [Path(sys.base_prefix), Path(__file__).resolve().parents[3], *reads]
    above = {parent for path in (*needed, writes) for parent in path.parents if len(parent.parts) > 1}
    hidden = sorted(path for path in above if f"/{path.parts[1]}" in HIDDEN and len(path.parts) > 2)
    shown = [word for path in hidden for word in ("--perms", "0755", "--dir", str(path))]
    shown += [word for path in needed for word in ("--ro-bind", str(path), str(path))]
    return [
        "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--bind", "/dev/shm", "/dev/shm", "--tmpfs", "/var/tmp",
        *(word for path in HIDDEN for word in ("--tmpfs", path)),
        "--ro-bind-try", "/run", "/run", *shown, "--bind", str(writes), str(writes),
        "prlimit", f"--nofile={said['LimitNOFILE'][0]}", "--core=0",
        PYTHON, __file__, str(unit), user,
    ]  # fmt: skip


def calls(names: str) -> set[str]:
    """The system calls of systemd's sets, as systemd-analyze lists them."""
    found: set[str] = set()
    for name in names.split():
        if not name.startswith("@"):
            found.add(name)
            continue
        shown = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True)
        inner = [line.strip() for line in shown.stdout.splitlines()[1:] if line.strip()[:1] not in ("#", "")]
        found |= calls(" ".join(inner))
    return found


def confine(unit: Path, user: str) -> None:
    """Become a user, and give up all system calls and address families that a unit does not allow."""
    import seccomp

    said, allowed = settings(unit), set[str]()
    for names in said["SystemCallFilter"]:
        allowed = allowed - calls(names[1:]) if names.startswith("~") else allowed | calls(names)
    kept = seccomp.SyscallFilter(seccomp.ERRNO(getattr(errno, said["SystemCallErrorNumber"][0])))
    if said["RestrictNamespaces"] == ["yes"]:  # as systemd does: clone3 "is unknown", so that clone is tried
        allowed -= {"unshare", "setns"}
        kept.add_rule(seccomp.ALLOW, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, NAMESPACES, 0))
        kept.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    for name in sorted(allowed - {"socket", "clone", "clone3"}):
        try:
            kept.add_rule(seccomp.ALLOW, name)
        except (RuntimeError, ValueError):
            continue  # a call of another processor
    for family in said["RestrictAddressFamilies"][0].split():
        kept.add_rule(seccomp.ALLOW, "socket", seccomp.Arg(0, seccomp.EQ, int(getattr(socket, family))))
    os.umask(int(said["UMask"][0], 8))
    number = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(number.pw_gid)
    os.setuid(number.pw_uid)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with bubblewrap, also as another user
    kept.load()  # and no new privileges


if __name__ == "__main__":
    confine(Path(sys.argv[1]), sys.argv[2])
    os.execvp(sys.argv[3], sys.argv[3:])
