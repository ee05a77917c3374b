"""Write files completely or not at all.

Rule: under a file's name there is either the old content or all of the new content. A new file is its owner's only; an
old one keeps its mode. Names ending in .gz are compressed, to the same bytes each time. Several files are replaced only
after all of them were written. Pipes and devices are written directly. A link is followed only where it is trusted,
otherwise it is replaced (`trust.destination`).
"""

from __future__ import annotations

import gzip
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ...simulate.errors import ConfigError
from ...trust import destination, problem_of

#: How the names of files begin that become others when they are complete.
_DRAFT = ".pilotfish-"


def check_folder(folder: Path) -> None:
    """Check that a folder can be written into, or made, before the work whose results it is for.

    Raises:
        ConfigError: it cannot.
    """
    _check_place(folder, folder)


def check_file(path: Path, *, makes_folder: bool = False) -> None:
    """Check that a file can be written as `write_whole` does, before the work whose result it is for.

    Args:
        path: the file.
        makes_folder: its folder is made where it is missing.

    Raises:
        ConfigError: it cannot.
    """
    try:
        target, direct = destination(path)
        if path.is_dir():
            raise ConfigError(str(path), "", "cannot be written: it is a folder")
        if direct and not os.access(target, os.W_OK):
            raise ConfigError(str(path), "", "cannot be written: no permission to write into it")
    except NotADirectoryError:
        target, direct = str(path), False
    except OSError as error:
        raise ConfigError(str(path), "", f"cannot be written: {problem_of(error, path)}") from None
    folder = Path(target).parent
    if not direct and not makes_folder and not folder.is_dir():
        raise ConfigError(str(path), "", "cannot be written: there is no such folder")
    if not direct:
        _check_place(folder, path)


def _check_place(folder: Path, path: Path) -> None:
    """Make a file in a folder, or above it where it is missing, and remove it: root in /proc has every permission.

    Args:
        folder: the folder.
        path: what is to be written, for errors.

    Raises:
        ConfigError: no file can be made there.
    """
    nearest = folder.absolute()
    try:
        while not _exists(nearest):
            nearest = nearest.parent
        if not nearest.is_dir():
            raise ConfigError(str(path), "", f"cannot be written: {nearest} is not a folder")
        with tempfile.NamedTemporaryFile(prefix=_DRAFT, dir=nearest):
            pass
    except OSError as error:
        problem = f"cannot be written: no file can be made in {nearest}: {error.strerror}"
        raise ConfigError(str(path), "", problem) from None


def _exists(path: Path) -> bool:
    """Return whether a file, folder or link is there. Raises OSError: that cannot be known, or the name is too long."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write text (as UTF-8) or bytes and return `path`. O(bytes). Raises OSError with the path."""
    write_together({path: content})
    return path


def write_together(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files; if one fails, all keep their old content. O(bytes). Raises OSError with the path."""
    drafts = list[tuple[Path, str, str]]()
    path = Path()
    try:
        for path, content in contents.items():
            data, (target, direct) = _compressed(path, content), destination(path)
            if direct:
                _write_directly(target, data)
            else:
                drafts.append((path, _draft(target, data), target))
        while drafts:
            path, draft, target = drafts[0]
            os.replace(draft, target)
            del drafts[0]
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        for _, draft, _ in drafts:
            os.unlink(draft)


def _compressed(path: Path, content: str | bytes) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return gzip.compress(data, 6, mtime=0) if path.suffix == ".gz" else data


def _write_directly(target: str, data: bytes) -> None:
    """Write into a pipe or device; the open files of a process are links."""
    links = 0 if target.startswith("/proc/") else os.O_NOFOLLOW
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC | links), "wb") as file:
        file.write(data)


def _draft(target: str, data: bytes) -> str:
    """Write data to a temporary file next to `target`, and return its name; a file of this user keeps its mode."""
    mode = 0o600
    with suppress(FileNotFoundError):
        status = os.lstat(target)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            mode = stat.S_IMODE(status.st_mode)
    with tempfile.NamedTemporaryFile(prefix=_DRAFT, dir=os.path.dirname(target), delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.chmod(file.fileno(), mode)
        except BaseException:
            os.unlink(file.name)
            raise
    return file.name
