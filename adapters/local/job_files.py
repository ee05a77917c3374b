"""Records: small JSON files that are there whole or not at all.

Rule: a reader gets what was written or an error, even after a kill, a full disk or a power cut. A directory that was
removed while its job ran is restored under the lock inside it, and only with what is missing; a job that has ended is
left alone. Standard library only, because the keeper imports this.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `typing` costs each keeper milliseconds
    from collections.abc import Iterable, Iterator
    from typing import Any

SPEC, BEGIN, END = "spec.json", "begin.json", "end.json"
CANCEL, CONTROL, LOCK, EVENTS, PROBLEM = "cancel", "control", "lock", "events", "keeper.err"
PACE = "pace"  #: in the state directory, shared by all keepers
WRITTEN = -1.0  #: in place of the size of an output
MTIME_S = 0.005  #: by which the time of a write may be too early
MAX_SIZES = 20  #: files of a job
MAX_END_BYTES = 4096  #: space reserved for end.json before a job begins


@contextlib.contextmanager
def opened(path: str, flags: int) -> Iterator[int]:
    """Open a file by the flags of open(2), and close it in the end; one that is created is its owner's only."""
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def open_output(path: str) -> int:
    """Open a job's file for appending, which its owner alone can read if it is new; return its descriptor.

    Raises:
        OSError: It is a link, no regular file, or another user's.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOCTTY | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(fd)
        raise PermissionError(errno.EACCES, f"it belongs to user {status.st_uid}, or is not a regular file")
    os.set_blocking(fd, True)
    return fd


def read_record(directory: str, name: str) -> dict[str, Any] | None:
    """Return the JSON object in `directory`/`name`, or None without a file. Raises ValueError if it is unreadable."""
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
    """Reserve space for end.json, so that a full disk does not lose the exit code. Raises OSError without space."""
    with opened(_draft(directory, END), os.O_WRONLY | os.O_CREAT) as fd:
        os.posix_fallocate(fd, 0, MAX_END_BYTES)


def file_sizes(files: Iterable[tuple[str, str]], directory: str, since: float = 0.0) -> dict[str, float]:
    """Return the bytes of the first regular files among these, at most `MAX_SIZES`, by their keys.

    Args:
        files: key and name of each file.
        directory: for relative names.
        since: leave out those that were last written before, epoch seconds.
    """
    sizes: dict[str, float] = {}
    for key, name in files:
        with contextlib.suppress(OSError, ValueError):
            about = os.stat(os.path.join(directory, name))
            if stat.S_ISREG(about.st_mode) and about.st_mtime >= since and len(sizes) < MAX_SIZES:
                sizes[key] = float(about.st_size)
    return sizes


def inputs_of_run(before: dict[str, float], sizes_after: dict[str, float]) -> dict[str, float]:
    """Return the sizes of the files that a run read; those that it made or changed in size are `WRITTEN`.

    Args:
        before: sizes before it began.
        sizes_after: sizes after its end, of the files that were written meanwhile.
    """
    return before | {key: WRITTEN for key, size in sizes_after.items() if before.get(key) != size}


def write_record(directory: str, name: str, record: dict[str, Any], *, once: bool = False) -> None:
    """Write a record durably; the caller holds the job's lock.

    Args:
        directory: The job's directory.
        name: File name of the record.
        record: JSON object.
        once: Raise FileExistsError rather than replace an earlier record.

    Raises:
        OSError: Nothing was written.
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
        if name != END:  # the draft of end.json is the space reserved for it
            with contextlib.suppress(OSError):
                os.unlink(draft)
        raise
    with opened(directory, os.O_RDONLY | os.O_DIRECTORY) as fd:
        os.fsync(fd)


def restore_directory(directory: str, lock: int, spec: dict[str, Any], begin: dict[str, Any]) -> int | None:
    """Create the job's directory and records again where they are missing.

    Args:
        directory: The job's directory.
        lock: The job's lock, held.
        spec: Content of spec.json.
        begin: Content of begin.json.

    Returns:
        The lock that is held now, a new one if the old one was removed too; None if this job cannot or must not be
        recorded at the moment.
    """
    try:
        existing = read_record(directory, BEGIN)
    except ValueError:
        return lock
    if existing is not None:
        return lock if existing == begin else None
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        new_lock = _lock_in(directory, lock)
    except OSError:
        return None
    try:
        if os.path.exists(os.path.join(directory, END)):
            raise FileExistsError
        write_record(directory, SPEC, spec)
        write_record(directory, BEGIN, begin, once=True)
        reserve_end(directory)
    except OSError:
        if new_lock != lock:
            os.close(new_lock)
        return None
    return new_lock


def _lock_in(directory: str, lock: int) -> int:
    """Take the lock in the directory, unless it is `lock` itself. Raises OSError if another process holds it."""
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


def _draft(directory: str, name: str) -> str:
    return os.path.join(directory, f".{name}.new")


def _fill(path: str, data: bytes) -> None:
    with opened(path, os.O_WRONLY | os.O_CREAT) as fd:
        offset = 0
        while offset < len(data):
            offset += os.write(fd, data[offset:])
        os.ftruncate(fd, len(data))
        os.fsync(fd)
