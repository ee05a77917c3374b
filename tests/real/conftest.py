"""Real processes on this machine: where they keep their things, and that none of them is left behind.

Rule: these tests run one after another (they measure time), and whatever they start carries a mark in its
environment, by which it is found at the end.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
pytest.register_assert_rewrite("real_world", "installed", "pybatsim")
from installed import installed  # noqa: F401
from pybatsim import pybatsim  # noqa: F401

MARK = "PILOTFISH_TEST"
SHORT_S = 60.0  # a test within which the kernel does not give every process id
PATIENCE_S = 60.0  # on a busy machine; a test that leaves nothing waits for nothing


def last_pid() -> int:
    """Return the process id that was given last."""
    return int(Path("/proc/sys/kernel/ns_last_pid").read_text())


def marked(mark: str, first: int | None = None) -> dict[int, str]:
    """Process id -> command line of everything but this process that has `mark` in its environment.

    Args:
        mark: the value of the variable.
        first: only processes whose ids were given after this one are read, which takes less time; None: all.
    """
    found, last = {}, last_pid()
    wanted = os.fsencode(f"{MARK}={mark}\0")
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        begun_later = first is None or (first < pid <= last if first <= last else not last < pid <= first)
        if begun_later and pid != os.getpid():
            with suppress(OSError):
                with open(f"/proc/{pid}/environ", "rb") as file:  # a path of pathlib takes twice as long
                    ours = wanted in file.read()
                if ours:
                    words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                    found[pid] = words.decode(errors="replace")
    return found


@pytest.fixture(autouse=True)
def nothing_is_left(real: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the test its own state, and fail it where a process of it lives on."""
    mark, begun, first = str(tmp_path), time.monotonic(), last_pid()
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("FORCE_COLOR", "NO_COLOR", "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "PILOTFISH_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # a user's output is buffered
    monkeypatch.chdir(tmp_path)
    yield
    deadline = time.monotonic() + PATIENCE_S
    while (left := marked(mark, first if time.monotonic() < begun + SHORT_S else None)) and time.monotonic() < deadline:
        time.sleep(0.02)
    if not left:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):  # keepers obey TERM: they end their job
        for pid in marked(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        end = time.monotonic() + 3.0
        while marked(mark) and time.monotonic() < end:
            time.sleep(0.02)
    pytest.fail(f"left behind: {left}")
