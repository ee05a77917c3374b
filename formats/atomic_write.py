"""Writing files, whole or not at all.

Rule: under its name there is what was there before or all of what is new; a name that ends in .gz is packed, the same
bytes each time. Several files are replaced when all of them are written. What is no regular file (a pipe, a device) is
written straight.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

_MODE = 0o644


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write text as UTF-8, or bytes, and return `path`. O(bytes). Raises OSError with the path."""
    write_together({path: content})
    return path


def write_together(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files; where one of them fails, all are as before. O(bytes). Raises OSError with its path."""
    drafts = dict[Path, str]()
    path = Path()
    try:
        for path, content in contents.items():
            if path.exists() and not path.is_file():
                path.write_bytes(_packed(path, content))
            else:
                drafts[path] = _draft(path.resolve(), _packed(path, content))
        for path, draft in [*drafts.items()]:
            os.replace(draft, path.resolve())
            del drafts[path]
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        for draft in drafts.values():
            os.unlink(draft)


def _packed(path: Path, content: str | bytes) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return gzip.compress(data, 6, mtime=0) if path.suffix == ".gz" else data


def _draft(path: Path, data: bytes) -> str:
    """The name of a file beside `path` that holds the data, and may be read as that may."""
    mode = path.stat().st_mode & 0o777 if path.exists() else _MODE
    with tempfile.NamedTemporaryFile(prefix=".pilotfish-", dir=path.parent, delete=False) as file:
        try:
            file.write(data)
            file.close()
            os.chmod(file.name, mode)
        except BaseException:
            os.unlink(file.name)
            raise
    return file.name
