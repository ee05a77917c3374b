"""Records: small JSON files that are there whole or not at all.

Rule: whoever reads one gets what somebody wrote, or is told that it is unreadable; also after a kill, a full
disk or a power cut. Standard library only: the keeper uses it too.
"""

from __future__ import annotations

import contextlib
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` costs each keeper milliseconds
    from typing import Any

SPEC, BEGIN, END = "spec.json", "begin.json", "end.json"
CANCEL, CONTROL, LOCK, EVENTS, PROBLEM = "cancel", "control", "lock", "events", "keeper.err"
PACE = "pace"  #: in the state directory, for all keepers
MAX_END_BYTES = 4096  #: room reserved for end.json before a job begins


def read_record(directory: str, name: str) -> dict[str, Any] | None:
    """Return the JSON object in `directory`/`name`, None where there is no such file.

    Raises:
        ValueError: the file is there and cannot be read, or is not one JSON object.
    """
    try:
        with open(os.path.join(directory, name), "rb") as file:
            record = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} is unreadable: {error}") from error
    if not isinstance(record, dict):
        raise ValueError(f"{name} is unreadable: not a JSON object")
    return record


def reserve_end(directory: str) -> None:
    """Take the room for end.json now, so that a disk that fills up later does not swallow an exit code.

    Raises:
        OSError: there is no room.
    """
    fd = os.open(_draft(directory, END), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(fd, 0, MAX_END_BYTES)
    finally:
        os.close(fd)


def write_record(directory: str, name: str, record: dict[str, Any], *, once: bool = False) -> None:
    """Write a record and make it durable; the caller holds the job's lock.

    Args:
        once: raise FileExistsError rather than replace an earlier one.

    Raises:
        OSError: nothing was written.
    """
    path, draft = os.path.join(directory, name), _draft(directory, name)
    try:
        _fill(draft, json.dumps(record).encode())
        if once:
            os.link(draft, path)
            os.unlink(draft)
        else:
            os.replace(draft, path)
    except OSError:
        if name != END:  # whose draft is the room that was reserved for it
            with contextlib.suppress(OSError):
                os.unlink(draft)
        raise
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _draft(directory: str, name: str) -> str:
    return os.path.join(directory, f".{name}.new")


def _fill(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        done = 0
        while done < len(data):
            done += os.write(fd, data[done:])
        os.ftruncate(fd, len(data))
        os.fsync(fd)
    finally:
        os.close(fd)
