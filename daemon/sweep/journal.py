"""The journal of a sweep: a line for each run that is done, so that a sweep goes on where it was.

Rule: what is added outlives this process at once, and the machine after SYNC_S or when the journal is left; what a
crash left of the last line is dropped, and a line that is none is as if it were not there: its run is done again. One
sweep at a time writes to it.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from ...simulate.errors import ConfigError

SCHEMA = "pilotfish/sweep-journal/v1"
#: Seconds that a power cut may take from it: to wait for the disk after each run costs more than a short run.
SYNC_S = 0.1
_HEADER = json.dumps({"schema": SCHEMA}).encode() + b"\n"
Numbers = dict[str, Any]


def read_journal(path: Path) -> dict[str, Numbers]:
    """Identity -> numbers of the runs that are done; none where there is no journal. Raises ConfigError, OSError."""
    return _parsed(path, path.read_bytes())[0] if path.exists() else {}


class Journal:
    """The journal, open: a context; `done` is what it holds.

    Raises:
        ConfigError: it is something else, or another sweep writes to it.
        OSError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._synced = -math.inf
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644), "a+b")
        try:
            self.done = self._held(path, self._file)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._sync()

    def add(self, found: Mapping[str, Numbers]) -> None:
        """Keep what became of runs. Raises OSError."""
        self._write(*(_line({"run": identity, "numbers": numbers}) for identity, numbers in found.items()))
        self.done |= found

    def _held(self, path: Path, file: IO[bytes]) -> dict[str, Numbers]:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(str(path), "", "another sweep is writing to it", "one at a time") from None
        file.seek(0)
        done, whole = _parsed(path, file.read())
        file.truncate(whole)
        if not whole:
            self._write(_HEADER)
        return done

    def _write(self, *lines: bytes) -> None:
        self._file.write(b"".join(lines))
        self._file.flush()
        if time.monotonic() >= self._synced + SYNC_S:
            self._sync()

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _parsed(path: Path, data: bytes) -> tuple[dict[str, Numbers], int]:
    """What the lines say, and how many bytes they are, without what is left of a last one."""
    whole = data.rfind(b"\n") + 1
    if data[: len(_HEADER)] != _HEADER[: len(data)]:
        raise ConfigError(str(path), "line 1", "this is no journal of a sweep", f"a file that begins with {SCHEMA}")
    done = {}
    for line in data[len(_HEADER) : whole].splitlines():
        try:
            record = json.loads(line)
            done[str(record["run"])] = dict(record["numbers"])
        except (ValueError, TypeError, KeyError):
            continue
    return done, whole
