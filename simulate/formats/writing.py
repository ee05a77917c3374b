"""Writing a file, whole or not at all.

Rule: under its name there is what was there before or all of what is new; a name that ends in .gz is packed, the same
bytes each time. What is no regular file (a pipe, a device) is written straight.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> Path:
    """Write UTF-8 text, and return `path`. O(bytes). Raises OSError with the path."""
    data = text.encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, 6, mtime=0)
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    return path


def _replace(path: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(data)
            file.close()
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
