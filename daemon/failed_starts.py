"""The wait before the service starts again after starts that failed.

Rule: each start in a row that fails doubles the time until the next one, up to MOST_S. A start that a person asks for
does not wait: nor does one after the configuration file changed. Nothing here imports what makes a start expensive.

systemd keeps the count in memory, as a descriptor of the unit, until the unit is stopped. A file would not do: the
folder of the socket vanishes with the service, and the state directory may be what is full.
Source: systemd.service(5), FileDescriptorStoreMax and Restart; sd_pid_notify_with_fds(3); sd_listen_fds(3).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from ..formats.text import clean, count
from ..simulate.errors import PilotfishError
from .systemd import notify

#: Seconds after which systemd starts a failed service again: RestartSec of the unit.
RESTART_S = 10.0
#: Longest time between the starts of a service that cannot start, seconds.
MOST_S = 600.0
#: Seconds that a start may take after the wait: TimeoutStartSec of the unit.
START_S = 300.0
#: Seconds between two looks at the configuration file.
_LOOK_S = 1.0
#: Name of the descriptor, its first number, and most characters of a reason.
_NAME, _FIRST, _MOST_CHARACTERS = "failed-starts", 3, 300
#: Signals that stop the service, and those that end a wait.
_STOP = (signal.SIGTERM, signal.SIGINT)
_SIGNALS = (*_STOP, signal.SIGHUP)
#: Where a process finds its unit.
CGROUPS = Path("/proc/self/cgroup")


def wait_s(failed: int) -> float:
    """Return how long the service itself waits after so many failed starts, seconds; systemd waits RESTART_S first."""
    return max(0.0, min(RESTART_S * 2.0 ** min(failed - 1, 30), MOST_S) - RESTART_S)


class FailedStarts:
    """The starts of this unit that failed in a row.

    As a context manager it covers a start: an exception becomes the reason that the next wait reports, and an end
    without one, as after a signal to stop, clears the count. Without systemd it does nothing.
    """

    def __init__(self) -> None:
        self._file = _passed_on()
        if self._file is None:
            file = os.memfd_create(_NAME, os.MFD_CLOEXEC)
            if notify("FDSTORE=1", f"FDNAME={_NAME}", descriptors=[file]):
                self._file = file
            else:
                os.close(file)

    def wait(self, config: Path) -> bool:
        """Count this start as failed until `clear`, and wait if earlier ones failed; return False to stop instead.

        Args:
            config: the file whose change ends the wait. SIGHUP ends it, too.
        """
        state = self._read()
        failed = int(state.get("failed", 0))
        restarts = _restarts() if failed else None
        if restarts is not None and restarts <= int(state.get("restarts", 0)):
            failed = 0  # systemd did not start it by itself: a person did
        version = state.get("config")
        self._write(state | {"failed": failed + 1, "restarts": restarts or 0, "config": _version(config)})
        if (pause_s := wait_s(failed)) and _version(config) == version:
            return self._wait(pause_s, config, version, failed, clean(str(state.get("reason", ""))))
        return True

    def _wait(self, pause_s: float, config: Path, version: list[int], failed: int, reason: str) -> bool:
        until, moment = time.monotonic() + pause_s, time.strftime("%H:%M:%S", time.localtime(time.time() + pause_s))
        status = f"{count(failed, 'start')} failed; the next is at {moment}, or now after systemctl restart"
        extension = int((pause_s + START_S) * 10**6)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            notify(f"STATUS={status}{': ' if reason else ''}{reason}", f"EXTEND_TIMEOUT_USEC={extension}")
            while (left_s := until - time.monotonic()) > 0 and _version(config) == version:
                event = signal.sigtimedwait(_SIGNALS, min(left_s, _LOOK_S))
                if event and event.si_signo in _STOP:
                    notify("STOPPING=1")
                    self.clear()
                    return False
                if event:
                    break
            return True
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def clear(self) -> None:
        """Note that the service runs, or that it was stopped."""
        self._write({})

    def __enter__(self) -> FailedStarts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:
            self.clear()
        elif isinstance(error, Exception) and (state := self._read()):
            reason = str(error) if isinstance(error, PilotfishError | OSError) else f"{kind and kind.__name__}: {error}"
            reason = clean(reason)[:_MOST_CHARACTERS]
            self._write(state | {"reason": reason})
            notify(f"STATUS=it cannot start: {reason}")

    def _read(self) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            if self._file is not None:
                state = json.loads(os.pread(self._file, 2**16, 0))
                return state if isinstance(state, dict) else {}
        return {}

    def _write(self, state: dict[str, Any]) -> None:
        if self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, json.dumps(state).encode(), 0)


def _passed_on() -> int | None:
    """Return the descriptor that systemd kept from the start before, and hide it from the programs that we start."""
    process, names = (os.environ.pop(f"LISTEN_{name}", "") for name in ("PID", "FDNAMES"))
    os.environ.pop("LISTEN_FDS", None)
    if process != str(os.getpid()) or _NAME not in names.split(":"):
        return None
    file = _FIRST + names.split(":").index(_NAME)
    with suppress(OSError):
        os.set_inheritable(file, False)
        return file
    return None


def _restarts() -> int | None:
    """Return how many times in a row systemd started this unit by itself; None: unknown."""
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        unit = re.search(r"^\d+:(?:name=systemd)?:.*/([^/\n]+\.service)", CGROUPS.read_text(), re.M)
        if unit:
            argv = ["systemctl", "show", "--value", "--property=NRestarts", unit[1]]
            return int(subprocess.run(argv, capture_output=True, text=True, timeout=5.0, check=True).stdout)
    return None


def _version(path: Path) -> list[int]:
    """Return what differs once a file was changed."""
    with suppress(OSError):
        status = path.stat()
        return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]
    return []
