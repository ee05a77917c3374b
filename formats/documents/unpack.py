"""Unpack gzip files, in bounded memory.

Rule: a small file does not become a large one unless the user asks for it. The unpacked content may be LARGEST_RATIO
times as large as the file, or SMALL bytes. The environment variable PILOTFISH_UNPACK_LIMIT, a size such as 4GiB,
replaces it.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ...simulate.errors import ConfigError
from .files import LARGEST_FILE
from .open_input import open_input
from .quantities import parse_size

#: First bytes of a gzip file.
GZIP = b"\x1f\x8b"
#: Traces are 4 to 20 times as large as their gzip files.
LARGEST_RATIO, SMALL = 100, 16 * 2**20
LIMIT = "PILOTFISH_UNPACK_LIMIT"


def unpacked(data: bytes, source: str, most: int = LARGEST_FILE) -> bytes:
    """Return the bytes that gzip packed; other bytes are returned as they are.

    Args:
        data: the content of the file.
        source: the file's name, for messages.
        most: the largest size after unpacking, bytes, whatever the user set.

    Raises:
        ConfigError: the data is damaged (with the line that can still be read), or unpacks to more than that.
    """
    if not data.startswith(GZIP):
        return data
    largest = most
    most = min(most, _limit() or max(SMALL, LARGEST_RATIO * len(data)))
    pieces, size = list[bytes](), 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while size <= most and (piece := file.read(2**20)):
                pieces.append(piece)
                size += len(piece)
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(source, io.BytesIO(data), error) from None
    if size > most:
        raise _too_large(source, most, largest)
    return b"".join(pieces)


def unpacked_pieces(path: Path, most: int, size: int) -> Iterator[bytes]:
    """Yield the content of a file in pieces, which is never in memory as a whole; gzip is unpacked.

    Args:
        path: the file.
        most: the largest content, bytes, whatever the user set.
        size: of a piece, bytes.

    Raises:
        ConfigError: the file cannot be read, is empty, is damaged, or its content is larger than that.
    """
    source, total, is_blank = str(path), 0, True
    try:
        with open_input(path) as file:
            is_packed = file.peek(2).startswith(GZIP)
            packed = os.fstat(file.fileno()).st_size
            limit = min(most, _limit() or max(SMALL, LARGEST_RATIO * packed)) if is_packed else most
            with gzip.GzipFile(fileobj=file) if is_packed else file as content:
                while piece := content.read(size):
                    total += len(piece)
                    if total > limit:
                        raise _too_large(source, limit, most)
                    is_blank = is_blank and not piece.strip()
                    yield piece
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        with open_input(path) as file:
            raise _damaged(source, file, error) from None
    except (OSError, ValueError) as error:
        raise ConfigError(source, "", f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if is_blank:
        raise ConfigError(source, "line 1", "the file is empty")


def _damaged(source: str, file: BinaryIO, error: Exception) -> ConfigError:
    """Return an error that names the last line that can be unpacked; O(bytes)."""
    line = 1
    with suppress(OSError, EOFError, zlib.error), gzip.GzipFile(fileobj=file) as content:
        while piece := content.read1():
            line += piece.count(b"\n")
    return ConfigError(source, f"line {line}", f"cannot be unpacked: {error}", "a complete gzip file")


def _too_large(source: str, limit: int, largest: int) -> ConfigError:
    allowed = f"at most {limit // 2**20} MiB; {LIMIT}=SIZE allows more, up to {largest // 2**20} MiB"
    return ConfigError(source, "", "too large, unpacked", allowed)


def _limit() -> int | None:
    """Return the limit that the user set, bytes. Raises ConfigError."""
    if not (text := os.environ.get(LIMIT)):
        return None
    try:
        return int(parse_size(text))
    except ConfigError as error:
        raise ConfigError(LIMIT, "", error.problem, error.allowed) from None
