"""How a job ended: its state, exit code, signal and one sentence, and the writing down of it.

Rule: an exit code is the process's own or None, never a guess; it is not given up for a full disk. Standard
library only: the keeper uses it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from .records import END, EVENTS, write_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RETRY_S = 1.0


def outcome(status: int, stop: tuple[str, str] | None, said: str, over_memory: bool) -> dict[str, Any]:
    """Return state, exit_code (128 + signal as a shell has it), signal and reason ("" where the code says it all).

    Args:
        status: as wait(2) gave it.
        stop: the state and the reason of whoever ended it on purpose.
        said: what went wrong before the job's first instruction.
        over_memory: a process of it was killed for its memory limit.
    """
    code = os.waitstatus_to_exitcode(status)
    number, code = (-code, 128 - code) if code < 0 else (None, code)
    if stop:
        state, reason = stop
    elif said:
        state, reason = "failed", said
    elif number is not None:
        state, reason = "failed", f"ended by {_name(number)}"
    else:
        state, reason = "failed" if code else "completed", ""
    if state == "failed" and over_memory:
        reason += f"{'; ' if reason else ''}a process was killed: over the job's memory limit"
    return {"state": state, "exit_code": code, "signal": number, "reason": reason}


def unknown_outcome(state: str, reason: str) -> dict[str, Any]:
    """Return the outcome of a job whose exit code nobody knows, or that never began."""
    return {"state": state, "exit_code": None, "signal": None, "reason": reason}


def write_end(
    directory: str,
    result: dict[str, Any],
    start_time: float | None,
    finish_time: float,
    usage: dict[str, float],
) -> bool:
    """Write end.json and wake the adapter; a full disk is waited for. False where the directory is gone."""
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


def killed_for_memory(groups: list[str]) -> bool:
    """Return whether the kernel killed a process in one of these control groups (cgroup v2, v1)."""
    for group in groups:
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError), open(os.path.join(group, name)) as file:
                if any(
                    words[0] == "oom_kill" and words[1] != "0" for line in file if (words := line.split())
                ):
                    return True
    return False


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
