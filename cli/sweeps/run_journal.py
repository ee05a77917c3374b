"""The journal of finished runs, so that an interrupted command goes on where it stopped.

Rule: a line of the journal survives this process at once, and a crash of the machine after SYNC_S; an incomplete last
line is dropped, and on a full disk the lines before it are kept. One command at a time writes a journal. The first line
says what the runs belong to; a journal of other inputs is refused. Each line has a checksum: one that is not as it was
written is ignored, and its run is done again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...simulate.errors import ConfigError, PilotfishError
from ...trust import make_folders, open_own_file

#: Seconds of results that a crash of the machine may lose: syncing after each run costs more than a short run.
SYNC_S = 0.1
#: Characters of an input in an error.
_LONGEST_VALUE = 60
Numbers = dict[str, Any]


@dataclass(frozen=True, slots=True)
class JournalKind:
    """The command and the inputs that the runs of a journal belong to.

    Args:
        name: of the command.
        inputs: name -> plain value of what all runs share, such as "--generations" -> 24; {"sha256": ...} stands for
            the content of files. Empty: the identities of the runs cover it.
    """

    name: str
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def schema(self) -> str:
        """Return the name and version of the format."""
        return f"pilotfish/{self.name}-journal/v1"

    @property
    def header(self) -> bytes:
        """Return the first line of the journal."""
        shared = {"inputs": self.inputs} if self.inputs else {}
        return json.dumps({"schema": self.schema, **shared}).encode() + b"\n"

    def refusal(self, path: Path, data: bytes) -> ConfigError:
        """Return the error about a file with another first line."""
        try:
            first = json.loads(data.partition(b"\n")[0])
        except (ValueError, RecursionError):
            first = None
        if not isinstance(first, dict) or first.get("schema") != self.schema or not self.inputs:
            problem, allowed = f"not a journal of a {self.name}", f"a file that begins with {self.schema}"
            return ConfigError(str(path), "line 1", problem, allowed)
        earlier, now = first.get("inputs"), json.loads(json.dumps(self.inputs))
        if not isinstance(earlier, dict):
            earlier = {}
        names = [name for name in {**now, **earlier} if now.get(name) != earlier.get(name)]
        differences = "; ".join(_difference(name, earlier, now) for name in names)
        problem = f"its runs have other inputs: {differences}"
        return ConfigError(str(path), "line 1", problem, "the same inputs, or a new file")


def _difference(name: str, earlier: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return how an input of the runs differs from that of the command, in words."""
    values = earlier.get(name), now.get(name)
    if any(isinstance(value, dict) for value in values):
        return f"{name} has changed" if None not in values else f"{name} is in one of them only"
    return "{} {} there, {} here".format(name, *map(_in_words, values))


def _in_words(value: Any) -> str:
    if value is None:
        return "not given"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


SWEEP = JournalKind("sweep")


def read_journal(path: Path, kind: JournalKind = SWEEP) -> dict[str, Numbers]:
    """Return identity -> numbers of the finished runs; empty without a journal. Raises ConfigError, OSError."""
    return _parsed(path, path.read_bytes(), kind)[0] if path.exists() else {}


class RunJournalError(PilotfishError):
    """The journal cannot be written."""

    def __init__(self, path: Path, error: OSError) -> None:
        hint = "what ended before is kept, and the same command goes on once it can be written"
        super().__init__(f"{path}: cannot be written: {error.strerror} ({hint})")


class RunJournal(AbstractContextManager["RunJournal"]):
    """The open journal: a context. `done` holds the finished runs.

    Raises:
        ConfigError: not a journal, one of other inputs, or another command writes to it.
        RunJournalError: it cannot be written.
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path, kind: JournalKind = SWEEP) -> None:
        make_folders(path.parent)
        self._path, self._synced = path, -math.inf
        self._file = os.fdopen(open_own_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), "a+b", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.seek(0)
            self.done, line_bytes = _parsed(path, self._file.read(), kind)
            self._file.truncate(line_bytes)
            if not line_bytes:
                self._write(kind.header)
        except BaseException as error:
            self._file.close()
            if isinstance(error, BlockingIOError):
                raise ConfigError(str(path), "", f"another {kind.name} is writing to it", "one at a time") from None
            raise

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        with self._file, suppress(RunJournalError) if kind else nullcontext():
            self._sync()

    def add(self, found: Mapping[str, Numbers]) -> None:
        """Record the numbers of runs by identity. Raises RunJournalError; what fits is kept."""
        self._write(b"".join(_line(identity, numbers) for identity, numbers in found.items()))
        self.done |= found

    def _write(self, lines: bytes) -> None:
        file, written = self._file.fileno(), 0
        begin = os.fstat(file).st_size
        try:
            while written < len(lines):
                written += os.write(file, lines[written:])
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(file, begin + lines.rfind(b"\n", 0, written) + 1)
            raise RunJournalError(self._path, error) from None
        if time.monotonic() >= self._synced + SYNC_S:
            self._sync()

    def _sync(self) -> None:
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise RunJournalError(self._path, error) from None
        self._synced = time.monotonic()


def _parsed(path: Path, data: bytes, kind: JournalKind) -> tuple[dict[str, Numbers], int]:
    """Return the finished runs, and the number of bytes of whole lines."""
    line_bytes, header = data.rfind(b"\n") + 1, kind.header
    if data[: len(header)] != header[: len(data)]:
        raise kind.refusal(path, data)
    finished = {}
    for line in data[len(header) : line_bytes].splitlines():
        try:
            record = json.loads(line)
            identity, numbers = str(record["run"]), dict(record["numbers"])
            if line + b"\n" == _line(identity, numbers):
                finished[identity] = numbers
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return finished, line_bytes


def _line(identity: str, numbers: Numbers) -> bytes:
    """Return the line of a run."""
    record = json.dumps({"run": identity, "numbers": numbers}, separators=(",", ":")).encode()
    return b'%s,"sum":"%s"}\n' % (record[:-1], hashlib.sha256(record).hexdigest()[:16].encode())
