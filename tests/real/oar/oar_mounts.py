"""OAR's folders as one process and its children see them, so that several OARs run on one machine.

Rule: OAR's programs know one configuration, one folder of schedulers and one home, by their paths. A process that may
mount has copies of its own there, with users of its own, and no other process sees what it changes. Where it may not,
all tests of OAR are one group, which has the machine's folders for itself.
Source: mount_namespaces(7), setns(2).
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

CLONE_FS, CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x200, 0x20000, 0x1000, 0x4000, 0x40000
FOLDERS = ("/etc", "/usr/lib/oar", "/var/lib/oar")


@lru_cache(1)
def possible() -> bool:
    """Whether this process may have mounts of its own."""
    if os.geteuid() != 0 or not all(map(os.path.isdir, FOLDERS)):
        return False
    try:
        mount = ["unshare", "--mount", "mount", "--bind", "/etc", "/etc"]
        return subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def group(number: int) -> str:
    """The group of tests that one process runs one after the other."""
    return f"oar {number}" if possible() else "oar"


@contextmanager
def copied_folders(path: Path) -> Iterator[None]:
    """Let this thread, and what it starts, see copies of the folders, which are below `path`."""
    libc = ctypes.CDLL(None, use_errno=True)
    path.mkdir()
    with open("/proc/thread-self/ns/mnt") as before:
        _check(libc.unshare(CLONE_NEWNS))
        try:
            _check(libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None))
            for folder in FOLDERS:
                copy = path / folder.strip("/").replace("/", "-")
                subprocess.run(["cp", "-a", folder, copy], check=True)
                _check(libc.mount(os.fsencode(copy), os.fsencode(folder), None, ctypes.c_ulong(MS_BIND), None))
            yield
        finally:
            here = os.getcwd()
            _check(libc.unshare(CLONE_FS))  # a thread that shares its folder with others may not change its mounts
            _check(libc.setns(before.fileno(), CLONE_NEWNS))
            os.chdir(here)


def _check(answer: int) -> None:
    if answer:
        raise OSError(number := ctypes.get_errno(), os.strerror(number))
