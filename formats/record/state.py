"""The state file of a record: what the daemon knew when it began, as one archive.

Rule: it has the files that the daemon read when it started, and nothing else; it is its owner's only.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from ...simulate.errors import ConfigError
from ..documents.atomic_write import write_whole

ENDING = "-state.zip"
#: Most bytes of all files together; a record of a daemon that knew more begins without its state.
MOST_BYTES = 2**28


def write_state(folder: Path, time: float, files: Mapping[str, bytes]) -> str:
    """Write the files and return the name of the archive. O(bytes). Raises OSError.

    Args:
        folder: of the record.
        time: when the daemon began, epoch seconds.
        files: content by name.
    """
    name = f"{int(time)}{ENDING}"
    with io.BytesIO() as content, zipfile.ZipFile(content, "w") as archive:
        for file, text in files.items():
            archive.writestr(zipfile.ZipInfo(file), text, zipfile.ZIP_DEFLATED)
        archive.close()
        return write_whole(folder / name, content.getvalue()).name


def read_state(path: Path) -> dict[str, bytes]:
    """Return the files of an archive. O(bytes). Raises ConfigError if it is missing, damaged or too large."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise ConfigError(str(path), "", "its files are too large", f"{MOST_BYTES:,} bytes")
            return {member.filename: archive.read(member) for member in members}
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ConfigError(str(path), "", f"the state at the begin of the record cannot be read: {error}") from None
