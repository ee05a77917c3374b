"""Write files completely or not at all.

Rule: under a file's name there is either the old content or all of the new content. Names ending in .gz are compressed,
to the same bytes each time. Several files are replaced only after all of them were written. Pipes and devices are
written directly.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

_MODE = 0o644


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write text (as UTF-8) or bytes and return `path`. O(bytes). Raises OSError with the path."""
    write_together({path: content})
    return path


def write_together(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files; if one fails, all keep their old content. O(bytes). Raises OSError with the path."""
    drafts = dict[Path, str]()
    path = Path()
    try:
        for path, content in contents.items():
            if path.exists() and not path.is_file():
                path.write_bytes(_compressed(path, content))
            else:
                drafts[path] = _draft(path.resolve(), _compressed(path, content))
        for path, draft in [*drafts.items()]:
            os.replace(draft, path.resolve())
            del drafts[path]
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        for draft in drafts.values():
            os.unlink(draft)


def _compressed(path: Path, content: str | bytes) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return gzip.compress(data, 6, mtime=0) if path.suffix == ".gz" else data


def _draft(path: Path, data: bytes) -> str:
    """Write data to a temporary file next to `path`, with the same permissions, and return its name."""
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
