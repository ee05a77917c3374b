"""A job's directory that was removed while the job ran, made again by its keeper.

Rule: only what is missing is written, and only under the lock that lies in the directory: whoever starts a job there
holds it, and what has an end (all that is ever forgotten) is left alone. Standard library only: the keeper uses it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

from .records import BEGIN, END, LOCK, SPEC, read_record, reserve_end, write_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def restore(directory: str, lock: int, spec: dict[str, Any], begin: dict[str, Any]) -> int | None:
    """Make the directory and its records again where they are missing.

    Args:
        lock: the job's lock, held.

    Returns:
        The lock that is held now, another one where the old one was removed too; None where this job cannot, or
        must not, be written down at the moment.
    """
    try:
        found = read_record(directory, BEGIN)
    except ValueError:
        return lock
    if found is not None:
        return lock if found == begin else None
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        held = _locked(directory, lock)
    except OSError:
        return None
    try:
        if os.path.exists(os.path.join(directory, END)):
            raise FileExistsError
        write_record(directory, SPEC, spec)
        write_record(directory, BEGIN, begin, once=True)
        reserve_end(directory)
    except OSError:
        if held != lock:
            os.close(held)
        return None
    return held


def _locked(directory: str, lock: int) -> int:
    """The lock that lies in the directory, taken. Raises OSError where somebody else has it."""
    fd = os.open(os.path.join(directory, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.path.samestat(os.fstat(fd), os.fstat(lock)):
            os.close(fd)
            return lock
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd
