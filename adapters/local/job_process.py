"""The process of a job: its last steps before the job's first instruction, and the record of how it ended.

Rule: every failure before the first instruction is reported to the keeper in one sentence, with a shell's exit code:
127 if the command does not exist, 126 if it cannot be run. An exit code is the process's own or None, never a guess,
and a full disk does not lose it. Standard library only, because the keeper imports this.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from .job_files import END, EVENTS, open_output, write_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

RETRY_S = 1.0


def become_job(spec: dict[str, Any], gate: int, error_pipe: int) -> NoReturn:
    """Wait at the gate and become the job.

    Args:
        spec: The job's spec.json.
        gate: Pipe; one byte opens the gate, its end means that the job never began.
        error_pipe: Pipe, closed on exec, for the sentence about what went wrong.
    """
    code, doing = 126, "cannot read its spec"
    try:
        if not os.read(gate, 1):
            os._exit(0)
        os.setsid()
        signal.set_wakeup_fd(-1)
        for signal_number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(signal_number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        command, cpus = spec["job"]["command"], spec["cpus"]
        doing = "cannot be pinned to CPUs " + ",".join(map(str, cpus))
        os.sched_setaffinity(0, cpus)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, stream in ((1, "stdout"), (2, "stderr")):
            doing = f"cannot write its {stream} to {spec[stream]}"
            os.dup2(open_output(spec[stream]), number)
        doing = f"cannot enter its directory {spec['directory']}"
        os.chdir(spec["directory"])
        if (umask := spec["job"].get("umask")) is not None:
            os.umask(umask)
        doing, code = f"cannot run {command[0]}", 127
        inherited = {} if spec.get("whole") else dict(os.environ)
        os.execvpe(command[0], command, inherited | dict(spec["environment"]))
    except OSError as error:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            code = 126
        _report(error_pipe, f"{doing}: {error.strerror}")
    except BaseException as error:
        code = 126
        _report(error_pipe, f"{doing}: {error!r}")
    os._exit(code)


def _report(error_pipe: int, sentence: str) -> None:
    os.write(error_pipe, sentence.encode(errors="replace")[:500])


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
