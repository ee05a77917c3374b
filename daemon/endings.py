"""How a job ended, in a few words: the same in stories, tables and closing lines.

Rule: nothing is said twice, and a job that was ended on purpose does not look like one that failed.
"""

from __future__ import annotations

import signal

from ..simulate.snapshot import JobState


def ending(state: str, exit_code: int | None, number: int | None, reason: str) -> str:
    """`failed: exit code 3`, `timeout: reached its walltime of 5 s`, `cancelled before it began`.

    Args:
        state: a JobState or its name.
        number: of the signal that ended it.
        reason: what the resource manager, or the queue, said.
    """
    if state == JobState.COMPLETED or (reason.startswith(str(state)) and reason):
        return reason or str(state)
    why = reason
    if state == JobState.FAILED:
        code = f"exit code {exit_code}" if exit_code and not number else ""
        why = ", ".join(part for part in (reason or _name(number), code) if part)
    return f"{state}: {why}" if why else str(state)


def mark(state: str, exit_code: int | None, number: int | None) -> str:
    """The same for a cell of a table: `exit 3`, `SIGKILL`, or the state."""
    if state == JobState.FAILED and (number or exit_code):
        return _name(number) or f"exit {exit_code}"
    return str(state)


def _name(number: int | None) -> str:
    """`SIGKILL`, or "" where there was no signal."""
    if not number:
        return ""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
