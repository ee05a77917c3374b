"""The words for how a job ended.

Rule: pure; a reason that the resource manager or the queue gives goes before what state, exit code and signal say.
"""

from __future__ import annotations

import signal

from ...simulate.model.snapshot import JobState

_SIGNALS = {each.value: each.name for each in signal.Signals}


def ending(state: str, exit_code: int | None, number: int | None, reason: str) -> str:
    """Return how a job ended: `failed: exit code 3`, `timeout: reached its walltime of 5 s`.

    Args:
        state: a JobState or its name.
        exit_code: of its process, if known.
        number: of the signal that ended it, if one did.
        reason: given by the resource manager or the queue.
    """
    if state == JobState.COMPLETED or (reason.startswith(str(state)) and reason):
        return reason or str(state)
    why = reason
    if state == JobState.FAILED:
        code = f"exit code {exit_code}" if exit_code and not number else ""
        why = ", ".join(part for part in (reason or _name(number), code) if part)
    return f"{state}: {why}" if why else str(state)


def mark(state: str, exit_code: int | None, number: int | None) -> str:
    """Return the same for a cell of a table: `exit 3`, `SIGKILL`, or the state. The arguments are those of `ending`."""
    if state == JobState.FAILED and (number or exit_code):
        return _name(number) or f"exit {exit_code}"
    return str(state)


def _name(number: int | None) -> str:
    """Return the name of a signal, such as `SIGKILL`; "" without one."""
    return _SIGNALS.get(number, f"signal {number}") if number else ""
