"""A record with other names, for giving it away: its replay decides the same.

Rule: the record stays as it is. What becomes of each name is in a file of its own, which stays at the site.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...formats.documents.atomic_write import check_file, write_whole
from ...formats.record.segments import Segment, open_segments, segments, time_of
from ...formats.record.state import read_state, write_state
from ...simulate.errors import ConfigError
from ...trust import make_folder, open_file
from .anonymous_lines import AnonymousLines
from .anonymous_state import AnonymousState
from .other_names import OtherNames


@dataclass(slots=True)
class AnonymousRecord:
    """The outcome: a record that was written.

    Args:
        names: file of the names and what they became.
        cycles: that were written.
        gaps: why the record is not whole, one sentence each.
    """

    names: Path
    cycles: int = 0
    gaps: list[str] = field(default_factory=list)


def anonymise(folder: Path, target: Path) -> AnonymousRecord:
    """Write a record with other names. O(bytes), read twice.

    Args:
        folder: of the record.
        target: a folder that is new or empty.

    Raises:
        ConfigError: it is no record, its state is damaged, or the target has files.
        OSError: a file cannot be read or written; what was written is removed.
    """
    gaps = list[str]()
    headers = {segment.path: segment.header for segment in open_segments(segments(folder), gaps)}
    paths = [*headers]
    outcome = AnonymousRecord(target.with_name(f"{target.absolute().name}-names.json"), gaps=gaps)
    if target.is_dir() and any(target.iterdir()):
        raise ConfigError(str(target), "", "it has files already", "a new or empty folder")
    check_file(outcome.names)
    if outcome.names.exists():
        raise ConfigError(str(outcome.names), "", "it exists already", "another folder, or no such file")
    lines = AnonymousLines(OtherNames(headers[paths[0]]["adapter"]))
    state = AnonymousState(lines)
    for path in paths:
        for _ in _cycles(path, lines, []):
            pass
    states = {path.name: read_state(path) for path in _state_files(folder, headers.values())}
    for files in states.values():
        state.files(files)
    lines.names.number()
    make_folder(target)
    with ExitStack() as undo:
        for path in paths:
            undo.callback(_remove, target / path.name)
            outcome.cycles += _write_segment(path, target / path.name, lines, outcome.gaps)
        for name, files in states.items():
            undo.callback(_remove, target / name)
            write_state(target, time_of(Path(name)), state.files(files))
        write_whole(outcome.names, lines.names.mapping())
        undo.pop_all()
    return outcome


def _state_files(folder: Path, headers: Iterable[Mapping[str, Any]]) -> list[Path]:
    """Return the state files that a run begins with, in order."""
    names = {Path(header["state"]).name for header in headers if header.get("part") == 0 and header.get("state")}
    return [folder / name for name in sorted(names)]


def _cycles(path: Path, lines: AnonymousLines, gaps: list[str]) -> Iterator[str]:
    """Yield the lines of a segment with other names, the header first, as far as it is whole."""
    segment = Segment.open(path)
    yield json.dumps(lines.header(segment.header), separators=(",", ":"))
    for number, line in enumerate(segment.lines(), 1):
        try:
            yield json.dumps(lines.cycle(line), separators=(",", ":"))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            gaps.append(f"{path.name}: line {number + 1} is damaged: {type(error).__name__}")
            return
    if segment.cut:
        gaps.append(f"{path.name}: {segment.cut}")


def _write_segment(path: Path, target: Path, lines: AnonymousLines, gaps: list[str]) -> int:
    """Write a segment; return its number of cycles. Raises OSError."""
    cycles = -1
    with (
        os.fdopen(open_file(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
    ):
        for text in _cycles(path, lines, gaps):
            packed.write(text.encode() + b"\n")
            cycles += 1
    return cycles


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
