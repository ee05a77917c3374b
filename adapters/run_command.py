"""Runs a resource manager's command: one at a time, with a time limit.

Rule: a command that failed or timed out may have changed nothing, or may still do so later; a caller that changes
something reads before it tries again. A command that ran out of time is killed. A setuid program cannot be killed; it
is left alone and not waited for.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .base import AdapterError

#: Commands that could not be killed, to be reaped when they have ended.
_left: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True, slots=True)
class EndedCommand:
    """The end of a command. Its standard output is bytes, because a user's text may be in any encoding."""

    exit_code: int
    stdout: bytes
    stderr: str


def run_command(
    argv: Sequence[str], timeout_s: float, environment: Mapping[str, str], needs: str, folder: Path | None = None
) -> EndedCommand:
    """Run a command without a stdin, and return how it ended.

    Args:
        argv: The command.
        timeout_s: Time limit, seconds.
        environment: All of its environment.
        needs: What a person is told to install where there is no such command.
        folder: Its working directory; None: ours.

    Raises:
        AdapterError: It could not be run (`missing`, `spawn`), or did not end in time (`timeout`).
    """
    _left[:] = [process for process in _left if process.poll() is None]
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
        )
    except FileNotFoundError:
        raise AdapterError(f"{argv[0]} is not on the PATH; {needs}", kind="missing", argv=argv) from None
    except OSError as error:
        raise AdapterError(f"{argv[0]}: {error.strerror}", transient=True, kind="spawn", argv=argv) from None
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _abandon(process)
        why = f"{argv[0]} did not answer within {timeout_s:g} s"
        raise AdapterError(why, transient=True, kind="timeout", argv=argv) from None
    except BaseException:
        _abandon(process)
        raise
    return EndedCommand(process.returncode, stdout, stderr.decode(errors="replace"))


def _abandon(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    with suppress(PermissionError):
        process.kill()
        process.wait()
        return
    _left.append(process)
