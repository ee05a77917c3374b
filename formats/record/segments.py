"""The files of a record: lines of JSON in compressed segments, bounded in size and age.

Rule: only the owner can read a record. The first line of a segment says what it is, so that each can be read alone.
Writing never fails for its caller: where the disk is full, the segment ends, and a later one begins. A segment that was
cut off is read as far as its lines are whole, and says so.

A segment is named TIME-NUMBER.jsonl.gz, by the epoch second of its begin and its number in that second.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from ...simulate.errors import ConfigError
from ...trust import make_folder, open_file
from ..text import count
from .state import ENDING as STATE_ENDING

log = logging.getLogger("pilotfish.record")
FORMAT, VERSION = "pilotfish-record", 1
ENDING = ".jsonl.gz"
#: Bytes of text, and seconds, after which a segment is followed by another one.
SEGMENT_BYTES, SEGMENT_S = 32 * 2**20, 86_400.0
#: Bytes of text, and seconds, after which lines are on disk; a process that is killed loses those since.
FLUSH_BYTES, FLUSH_S = 2**18, 60.0
#: Seconds until a segment is begun after one that could not be written.
AGAIN_S = 60.0
#: Most bytes of a line that is read.
LONGEST_LINE = 2**28
DAY_S = 86_400.0
#: zlib's way to say gzip, with the largest window.
GZIP_BITS = 31
_NAME = re.compile(r"(\d+)-(\d+)\.jsonl\.gz")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a record: at most so many bytes on disk, of at most so many days; the oldest segments go first."""

    most_bytes: int = 500_000_000
    keep_days: float = 30.0


class RecordWriter:
    """Writes lines into the segments of a folder.

    Args:
        folder: of the record; made if missing.
        header: the first line of each segment, without its format and version.
        bounds: how much is kept.
        clock: epoch seconds.

    Attributes:
        fresh: the next line begins a segment, so that it must rest on no line before.
        lost: why lines are not kept at the moment; "": they are.

    Raises:
        OSError: the folder cannot be made, or others can write to it.
    """

    def __init__(self, folder: Path, header: Mapping[str, Any], bounds: Bounds, clock: Callable[[], float]) -> None:
        self._folder, self._header, self._bounds, self._clock = Path(make_folder(folder)), header, bounds, clock
        self._file: BinaryIO | None = None
        self._written = self._folder  # the segment that is being written
        self._packer = zlib.compressobj()
        self._began = self._flushed_at = 0.0
        self._bytes = self._unflushed = 0
        self._part, self._again_at = 0, 0.0
        self.fresh, self.lost = True, ""

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder

    def begin_line(self) -> bool:
        """Begin a segment if one is due; return whether the next line would be kept."""
        now = self._clock()
        if self._file is not None and (self._bytes >= SEGMENT_BYTES or now - self._began >= SEGMENT_S):
            self.close()
        if self._file is None and now >= self._again_at:
            self._open(now)
        return self._file is not None

    def write(self, line: Mapping[str, Any]) -> None:
        """Keep a line, or not: see `lost`. O(bytes).

        Args:
            line: plain values for JSON.
        """
        if self._file is None:
            return
        text = json.dumps(line, separators=(",", ":"), default=sorted).encode() + b"\n"
        now = self._clock()
        self._bytes, self._unflushed, self.fresh = self._bytes + len(text), self._unflushed + len(text), False
        try:
            self._file.write(self._packer.compress(text))
            if self._unflushed >= FLUSH_BYTES or now - self._flushed_at >= FLUSH_S:
                self._file.write(self._packer.flush(zlib.Z_SYNC_FLUSH))
                self._file.flush()
                self._unflushed, self._flushed_at = 0, now
                self._prune(now)
        except OSError as error:
            self._lose(error, now)

    def close(self) -> None:
        """End the segment; a later line begins another one."""
        file, self._file, self.fresh = self._file, None, True
        if file is None:
            return
        try:
            with file:
                file.write(self._packer.flush(zlib.Z_FINISH))
        except OSError as error:
            self._lose(error, self._clock())

    def _open(self, now: float) -> None:
        number = sum(time_of(path) == int(now) for path in _segments(self._folder))
        path = self._folder / f"{int(now)}-{number:03}{ENDING}"
        try:
            make_folder(self._folder)  # again, if it was removed
            self._file = os.fdopen(open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")
        except OSError as error:
            self._lose(error, now)
            return
        self._written = path
        self._packer = zlib.compressobj(6, zlib.DEFLATED, GZIP_BITS)
        self._began = self._flushed_at = now
        self._bytes, self._unflushed = 0, FLUSH_BYTES  # the first line is on disk at once
        self.write({"format": FORMAT, "version": VERSION, "part": self._part, **self._header})
        self._part, self.fresh = self._part + 1, True
        if self._file is None:  # a segment without its first line cannot be read
            with suppress(OSError):
                path.unlink()

    def _lose(self, error: OSError, now: float) -> None:
        if not self.lost:
            log.error("%s: the record cannot be written: %s; the daemon goes on without it", self._folder, error)
        self.lost, self._again_at, self.fresh = str(error), now + AGAIN_S, True
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def _prune(self, now: float) -> None:
        """Remove the oldest segments beyond the bounds, never the one that is being written. Raises OSError."""
        if self.lost:
            log.warning("%s: the record can be written again", self._folder)
            self.lost = ""
        paths = _segments(self._folder)
        sizes = {path: path.stat().st_size for path in paths}
        if self._written not in sizes:
            raise FileNotFoundError(f"{self._written.name} was removed while it was written")
        state_bytes = sum(path.stat().st_size for path in self._folder.glob(f"*{STATE_ENDING}"))
        total, oldest = sum(sizes.values()) + state_bytes, now - self._bounds.keep_days * DAY_S
        for path, next_path in pairwise(paths):
            if total <= self._bounds.most_bytes and time_of(next_path) >= oldest:
                break
            path.unlink()
            total -= sizes.pop(path)
        first = time_of(next(iter(sizes)))
        states = sorted(self._folder.glob(f"*{STATE_ENDING}"), key=time_of)
        for state, next_state in pairwise(states):
            if time_of(next_state) <= first:  # no segment that is kept can have begun with it
                state.unlink(missing_ok=True)


def time_of(path: Path) -> int:
    """Return the epoch second in the name of a segment or a state file; 0 without one."""
    text = path.name.partition("-")[0]
    return int(text) if text.isdecimal() else 0


def segments(folder: Path) -> list[Path]:
    """Return the segments of a record, the oldest first. Raises ConfigError if it has no segment."""
    if paths := _segments(folder):
        return paths
    problem = "it holds no segment of a record" if folder.is_dir() else "there is no such folder"
    raise ConfigError(str(folder), "", problem, f"a folder with files named TIME-NUMBER{ENDING}")


def open_segments(paths: Iterable[Path], gaps: list[str]) -> Iterator[Segment]:
    """Yield segments in turn, without those whose first line cannot be read, as a power cut may leave one.

    Args:
        paths: their files, see `segments`.
        gaps: gets one sentence for each that is left out.

    Raises:
        ConfigError: none can be read, or one is of another version.
    """
    first_error: ConfigError | None = None
    is_any_read = False
    for path in paths:
        try:
            segment = Segment.open(path)
        except ConfigError as error:
            if error.key:
                raise
            first_error = first_error or error
            gaps.append(f"{path.name}: {error.problem}")
            continue
        is_any_read = True
        yield segment
    if first_error is not None and not is_any_read:
        raise first_error


def _segments(folder: Path) -> list[Path]:
    matches = {path: _NAME.fullmatch(path.name) for path in folder.glob(f"*{ENDING}")}
    numbers = {path: (int(match[1]), int(match[2])) for path, match in matches.items() if match}
    return sorted(numbers, key=numbers.__getitem__)


@dataclass(slots=True)
class Segment:
    """A segment that is read.

    Args:
        path: its file.
        header: its first line.
        cut: why it ends before its end; "": it does not, or is not read to its end yet.
    """

    path: Path
    header: dict[str, Any]
    cut: str = ""
    _lines: Iterator[dict[str, Any]] | None = None

    @classmethod
    def open(cls, path: Path) -> Segment:
        """Open a segment, and read its first line. Raises ConfigError if that is not one of a record."""
        segment = cls(path, {})
        segment._lines = segment._read()
        header = next(segment._lines, None)
        if header is None or header.get("format") != FORMAT:
            raise ConfigError(str(path), "", segment.cut or "it is no segment of a record")
        if header.get("version") != VERSION:
            problem = f"it is a record of version {header.get('version')}"
            raise ConfigError(str(path), "version", problem, f"version {VERSION}")
        segment.header = header
        return segment

    @property
    def is_first(self) -> bool:
        """True if its run began with it."""
        return self.header.get("part") == 0

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the lines after the first one, as far as they are whole; then see `cut`."""
        assert self._lines is not None
        return self._lines

    def _read(self) -> Iterator[dict[str, Any]]:
        number = 0
        try:
            with gzip.open(self.path, "rb") as file:
                while text := file.readline(LONGEST_LINE):
                    if not text.endswith(b"\n"):
                        raise EOFError
                    number += 1
                    line = json.loads(text)
                    if not isinstance(line, dict):
                        raise ValueError("it is no object")
                    yield line
        except (ValueError, RecursionError) as error:
            self.cut = f"line {number}: {error}"
        except EOFError:
            cause = "a daemon still writes it, was killed, or had no room on the disk"
            self.cut = f"it ends in the middle, after {count(number, 'line')}: {cause}"
        except (OSError, zlib.error) as error:
            self.cut = f"after {count(number, 'line')}: {error}"
