"""The last steps before the job: what the forked child does between the gate and the job's first instruction.

Rule: every failure here is reported to the keeper in one sentence, with a shell's exit code: 127 if the command does
not exist, 126 if it cannot be run. Standard library only, because the keeper imports this.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


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
        _default_signals()
        command, cpus = spec["job"]["command"], spec["cpus"]
        doing = "cannot be pinned to CPUs " + ",".join(map(str, cpus))
        os.sched_setaffinity(0, cpus)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, stream in ((1, "stdout"), (2, "stderr")):
            doing = f"cannot write its {stream} to {spec[stream]}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOCTTY
            os.dup2(os.open(spec[stream], flags, 0o600), number)
        doing = f"cannot enter its directory {spec['directory']}"
        os.chdir(spec["directory"])
        doing, code = f"cannot run {command[0]}", 127
        os.execvpe(command[0], command, os.environ | dict(spec["environment"]))
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


def _default_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
