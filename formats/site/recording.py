"""The folder into which a site is recorded: it holds nothing else, is this user's, and is marked until it is complete.

Rule: `recording.json` is written first, and says `complete: false` until all files are there: a recording that was
killed is never read as a site with less in it. A file has its name only when it is whole.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...simulate.errors import ConfigError
from ...trust import make_own_folder, open_own_file
from ..documents.atomic_write import write_whole
from ..documents.document_errors import found
from ..documents.files import is_file, read_bytes

MARK = "recording.json"
SCHEMA = "pilotfish/recording/v1"
#: Bytes from which a file is packed.
LARGE = 2**20
_ALLOWED = "the file that `pilotfish site record` wrote"


@dataclass(slots=True)
class SiteRecording:
    """A recording in progress.

    Args:
        folder: where it is written.
        about: what `recording.json` says of it, besides what is missing.
        missing: name of a file -> why it is not there.
        sizes: name of a written file -> bytes before packing.
    """

    folder: Path
    about: Mapping[str, Any]
    missing: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def begin(self) -> None:
        """Make the folder and mark it. Raises ConfigError, see `check_vacant`, or OSError if it cannot be made."""
        check_vacant(self.folder)
        make_own_folder(self.folder)
        self._mark(is_complete=False)

    def write(self, name: str, text: str | bytes) -> None:
        """Write a file, packed if it is large."""
        data = text.encode(errors="surrogateescape") if isinstance(text, str) else text
        write_whole(self.folder / (f"{name}.gz" if len(data) >= LARGE else name), data)
        self.sizes[name] = len(data)

    def stream(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write a packed file whose content comes in pieces; if they end with an error, it is not there."""
        path, size = self.folder / f"{name}.gz", 0
        draft = path.with_name(f"{path.name}.part")
        descriptor = open_own_file(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            try:
                with (
                    os.fdopen(descriptor, "wb") as file,
                    gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed,
                ):
                    for piece in pieces:
                        packed.write(piece)
                        size += len(piece)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from None
            os.replace(draft, path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        self.sizes[name] = size

    def finish(self) -> None:
        """Mark the recording as complete."""
        self._mark(is_complete=True)

    def _mark(self, *, is_complete: bool) -> None:
        content = {"schema": SCHEMA, "complete": is_complete, **self.about, "missing": self.missing}
        write_whole(self.folder / MARK, json.dumps(content, indent=1) + "\n")


def check_vacant(folder: Path) -> None:
    """Check that a site can be written into a folder without replacing anything.

    Besides a new or an empty folder that is one with a mark alone, as a recording leaves it that Slurm did not answer.

    Raises:
        ConfigError: it is not a folder, or it holds other files.
    """
    if folder.exists() and (not folder.is_dir() or any(path.name != MARK for path in folder.iterdir())):
        problem = "it is not empty" if folder.is_dir() else "it is not a folder"
        raise ConfigError(str(folder), "", problem, "a new or an empty folder")


def missing_files(folder: Path) -> dict[str, str]:
    """Return name -> why the recorder did not write it; {} for a folder that was made by hand.

    Raises:
        ConfigError: the recording was not finished, or its mark cannot be read.
    """
    path = folder / MARK
    if not is_file(path):
        return {}
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        raise ConfigError(str(path), "", "not JSON", _ALLOWED) from None
    reasons = content.get("missing", {}) if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(reasons, dict):
        raise ConfigError(str(path), "", found(content), _ALLOWED)
    if content.get("complete") is not True:
        raise ConfigError(str(folder), "", f"the recording was not finished ({MARK})", "a new recording")
    return {name: str(reason) for name, reason in reasons.items()}
