"""How a job ended: its state, exit code, signal and reason, and the record of it.

Rule: an exit code is the process's own or None, never a guess, and a full disk does not lose it. Standard library
only, because the keeper imports this.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from .job_files import END, EVENTS, write_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RETRY_S = 1.0


def outcome(status: int, stop: tuple[str, str] | None, launch_error: str, over_memory: bool) -> dict[str, Any]:
    """Return state, exit_code (128 + signal, as a shell has it), signal and reason ("": the exit code is enough).

    Args:
        status: Status of wait(2).
        stop: State and reason if pilotfish ended the job.
        launch_error: What went wrong before the job's first instruction.
        over_memory: Whether the kernel killed a process of the job for its memory limit.
    """
    code = os.waitstatus_to_exitcode(status)
    number, code = (-code, 128 - code) if code < 0 else (None, code)
    if stop:
        state, reason = stop
    elif launch_error:
        state, reason = "failed", launch_error
    elif number is not None:
        state, reason = "failed", f"ended by {_name(number)}"
    else:
        state, reason = "failed" if code else "completed", ""
    if state == "failed" and over_memory:
        reason += f"{'; ' if reason else ''}a process was killed: over the job's memory limit"
    return {"state": state, "exit_code": code, "signal": number, "reason": reason}


def unknown_outcome(state: str, reason: str) -> dict[str, Any]:
    """Return the outcome of a job that has no known exit code or never began."""
    return {"state": state, "exit_code": None, "signal": None, "reason": reason}


def write_end(
    directory: str, result: dict[str, Any], start_time: float | None, finish_time: float, usage: dict[str, float]
) -> bool:
    """Write end.json and wake the adapter; wait while the disk is full. Return False if the directory is gone."""
    times = {"start_time": start_time, "finish_time": finish_time}
    while True:
        try:
            write_record(directory, END, result | times | {"usage": sorted(usage.items())})
            break
        except FileNotFoundError:
            return False
        except OSError:
            time.sleep(RETRY_S)
    with contextlib.suppress(OSError):
        fd = os.open(os.path.join(directory, "..", "..", EVENTS), os.O_WRONLY | os.O_NONBLOCK)
        os.write(fd, b"e")
    return True


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
