"""Open what a user names as input: a file, or a pipe such as that of `<(zcat trace)`.

Rule: nothing that has no end is read, and no command waits for a program that does not write. A command that reads its
input again, as one does whose workers read it, refuses a pipe.
"""

from __future__ import annotations

import hashlib
import os
import stat
from io import BufferedReader, FileIO

from ...simulate.errors import ConfigError

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_input(path: str | os.PathLike[str], *, again: bool = False) -> BufferedReader:
    """Open a file or pipe for reading. A pipe into which no program writes is empty.

    Args:
        path: the file.
        again: the command reads it more than once.

    Raises:
        ConfigError: it is a folder or a device, or a pipe that would be read again.
        OSError: it cannot be opened, as a socket.
    """
    file = os.open(path, _FLAGS)
    try:
        mode = os.fstat(file).st_mode
        if stat.S_ISDIR(mode):
            raise ConfigError(os.fspath(path), "", "cannot be read: it is a folder", "a file")
        if stat.S_ISFIFO(mode) and again:
            problem = "it is a pipe, and this command reads it more than once"
            raise ConfigError(os.fspath(path), "", problem, "a file")
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            raise ConfigError(os.fspath(path), "", "a device, which may have no end", "a file or a pipe")
        os.set_blocking(file, True)
        return BufferedReader(FileIO(file))
    except BaseException:
        os.close(file)
        raise


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file that is read again. O(bytes). Raises ConfigError, OSError; see `open_input`."""
    with open_input(path, again=True) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
