"""Trust in files and folders, and the creation of our own.

Rule: trusted is what belongs to this user or to root, what no other user can write, and what lies in such folders up to
the root of the file system. A folder that others can write may stand above it if it is sticky, as /tmp is: there no
user can rename or remove an entry of another user. What is opened is no symbolic link. Links among the folders above
are followed where they belong to this user or to root. What is made has mode 0700 (folders) or 0600 (files), whatever
the umask.

What a user asks for, such as a picture or the output of a job, may lie in a folder that others can write, such as that
of a project. There nothing is believed and no link is followed: see `make_own_folder`, `open_own_file`, `destination`.

A path is checked from the root downwards. In a folder that was found trusted only this user and root can exchange what
was checked, so nothing changes between the check and the use.

Every room may import this module. It imports the standard library only.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from io import BufferedWriter

StrPath = str | os.PathLike[str]
MOST_LINKS = 40
#: Endings of the files that SQLite keeps next to a database.
COMPANIONS = ("-wal", "-shm", "-journal")


class UntrustedError(PermissionError):
    """Another user controls a file or folder; `strerror` names it, its owner and mode, and what to do."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(errno.EACCES, f"{path} is not trusted: {problem}", path)


def problem_of(error: OSError, path: StrPath) -> str:
    """Return what an error of the operating system says, without the name of the file where a message has it already.

    Args:
        error: the error.
        path: the file that the message names.
    """
    return (error.strerror or str(error)).removeprefix(f"{os.fspath(path)} is ")


def message_of(error: OSError) -> str:
    """Return an error of the operating system as a message that names the file once, if there is one."""
    return str(error) if error.filename is None else f"{error.filename}: {problem_of(error, error.filename)}"


def check_folder(path: StrPath, *, sticky: bool = False) -> str:
    """Return the path of a trusted folder, without links.

    Args:
        path: the folder.
        sticky: it may be one that others can write if it is sticky.

    Raises:
        OSError: not trusted, or missing.
    """
    return _folder(path, make=False, sticky=sticky)


def make_folder(path: StrPath, *, sticky: bool = False) -> str:
    """Make a folder and those above it where they are missing; return its path without links.

    Args:
        path: the folder.
        sticky: it may be one that others can write if it is sticky.

    Raises:
        OSError: not trusted, or it cannot be made.
    """
    return _folder(path, make=True, sticky=sticky)


def open_file(path: StrPath, flags: int = os.O_RDONLY) -> int:
    """Open a trusted regular file and return its descriptor. An empty one that may be created here gets mode 0600.

    Args:
        path: the file; the folder that it lies in may be sticky.
        flags: of open(2), without O_TRUNC, which would come before the check.

    Raises:
        OSError: not trusted, a link, no regular file, or it cannot be opened.
    """
    folder, name = os.path.split(_absolute(path))
    return _open(os.path.join(_walk(folder), name), flags)


def _open(real: str, flags: int) -> int:
    try:
        fd = os.open(real, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _link(real) if error.errno == errno.ELOOP else error from None
    try:
        status = os.fstat(fd)
        _check_file(status, real)
        if flags & os.O_CREAT and not status.st_size:
            _tighten(fd, status)
    except BaseException:
        os.close(fd)
        raise
    return fd


def check_file(path: StrPath) -> None:
    """Refuse a file that is not trusted. Raises OSError."""
    os.close(open_file(path))


def prepare_database(path: StrPath) -> None:
    """Make a SQLite file and its folder where they are missing; refuse one that is not trusted.

    SQLite gives the files next to a database the mode of the database. An existing file is not opened here, because
    closing it would release the locks that this process holds on it.

    Args:
        path: the file; it and the files next to it get mode 0600 if they are this user's.

    Raises:
        OSError: the folder, the file, or one that SQLite keeps next to it is not trusted.
    """
    folder, name = os.path.split(_absolute(path))
    real = os.path.join(make_folder(folder), name)
    if os.access(os.path.dirname(real), os.W_OK):
        with suppress(FileExistsError):
            fd = os.open(real, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            os.fchmod(fd, 0o600)
            os.close(fd)
    for file in (real, *(real + ending for ending in COMPANIONS)):
        with suppress(FileNotFoundError):
            status = os.lstat(file)
            _check_file(status, file)
            _tighten(file, status)


def make_folders(path: StrPath) -> None:
    """Make a folder and those above it where they are missing, mode 0700; check nothing. Raises OSError."""
    at = os.fspath(path).rstrip("/") or "/"
    if not os.path.isdir(at):
        make_folders(os.path.dirname(at) or ".")
        try:
            os.mkdir(at, 0o700)
            os.chmod(at, 0o700)
        except FileExistsError:
            if not os.path.isdir(at):  # another process was not merely faster
                raise


def make_own_folder(path: StrPath) -> None:
    """Make a folder that is this user's, or accept one, in a folder that others may write.

    Args:
        path: the folder; no link.

    Raises:
        OSError: it belongs to another user, or others can write to it.
    """
    at = _absolute(path).rstrip("/")
    make_folders(os.path.dirname(at))
    status = _status(at, make=True)
    if stat.S_ISLNK(status.st_mode):
        raise _link(at)
    _check_owner(status, at)
    _check_writers(status, at, sticky=False)


def open_own_file(path: StrPath, flags: int) -> int:
    """Open a regular file of this user or root in a folder that others may write; make it with mode 0600.

    Args:
        path: the file; no link.
        flags: of open(2), without O_TRUNC, which would come before the check.

    Raises:
        OSError: it is not this user's, or it cannot be opened.
    """
    return _open(_absolute(path), flags)


@contextmanager
def new_file(path: StrPath) -> Iterator[BufferedWriter]:
    """Open a file of this user for writing, empty, with mode 0600 if it is new. Raises OSError with the path."""
    with os.fdopen(open_own_file(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
        try:
            file.truncate()
            yield file
            file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, error.filename or os.fspath(path)) from None


def destination(path: StrPath) -> tuple[str, bool]:
    """Return where to write a file, and whether a pipe, device or folder is there, which is not replaced.

    A link in a trusted folder is followed. Elsewhere the link itself is replaced.

    Args:
        path: the file, which need not exist.

    Raises:
        OSError: what exists is a pipe or device of another user.
    """
    at = _absolute(path)
    for _ in range(MOST_LINKS):
        try:
            status = os.lstat(at)
        except FileNotFoundError:
            return at, False
        if not stat.S_ISLNK(status.st_mode):
            direct = not stat.S_ISREG(status.st_mode)
            if direct and not stat.S_ISDIR(status.st_mode):
                _check_owner(status, at)
            return at, direct
        try:
            folder = _walk(os.path.dirname(at))
            _check_writers(os.lstat(folder), folder, sticky=False)
            _check_owner(status, at)
        except UntrustedError:
            return at, False
        target = os.path.join(folder, os.readlink(at))
        if folder.startswith("/proc/") and not os.path.lexists(target):  # an open pipe, as of /dev/stdout, has no path
            return at, True
        at = target
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


@contextmanager
def as_account(user: str) -> Iterator[None]:
    """Let root judge and read files as another account would; any other user stays who it is. Holds for all threads.

    Args:
        user: name of the account; root stays root if it is "" or not known.
    """
    import grp  # noqa: F401 - judging needs it, and the account may not be able to read where Python is
    import pwd

    try:
        entry = pwd.getpwnam(user) if user and os.geteuid() == 0 else None
    except KeyError:
        entry = None
    if entry is None or entry.pw_uid == 0:
        yield
        return
    group, groups = os.getegid(), os.getgroups()
    with suppress(PermissionError):  # a user namespace may forbid it
        os.initgroups(user, entry.pw_gid)
    try:
        os.setegid(entry.pw_gid)
        os.seteuid(entry.pw_uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        with suppress(PermissionError):
            os.setgroups(groups)


def owner_of(path: StrPath) -> str:
    """Return the name of the user to whom a file or folder belongs, "" if that is not known."""
    import pwd

    try:
        return pwd.getpwuid(os.stat(path).st_uid).pw_name
    except (OSError, KeyError):
        return ""


@contextmanager
def private_umask() -> Iterator[None]:
    """Let what other libraries make be this user's alone. It holds for all threads of the process."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _absolute(path: StrPath) -> str:
    name = os.fspath(path)
    return name if os.path.isabs(name) else os.path.join(os.getcwd(), name)


def _folder(path: StrPath, *, make: bool, sticky: bool = False) -> str:
    real = _walk(_absolute(path), make=make, follow=False)
    status = os.lstat(real)
    _check_owner(status, real)
    _check_writers(status, real, sticky=sticky)
    return real


def _walk(path: str, *, make: bool = False, follow: bool = True) -> str:
    """Check every folder of a path, sticky or not; return the path without links.

    Args:
        path: absolute; the last part is a folder, too.
        make: make folders that are missing.
        follow: the last one may be a link.
    """
    at, status, links, todo = "/", os.lstat("/"), 0, _parts(path)
    _check_owner(status, at, above=True)
    _check_writers(status, at, sticky=True)
    while todo:
        part = todo.pop()
        if part == "..":
            at = os.path.dirname(at)
            continue
        entry = os.path.join(at, part)
        status = _status(entry, make=make)
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if not (todo or follow):
                raise _link(entry)
            _check_owner(status, entry, above=True)
            target = os.readlink(entry)
            at = "/" if target.startswith("/") else at
            todo += _parts(target)
            continue
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), entry)
        _check_owner(status, entry, above=True)
        _check_writers(status, entry, sticky=True)
        at = entry
    return at


def _parts(path: str) -> list[str]:
    """Return the parts of a path, the last one first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _status(folder: str, *, make: bool) -> os.stat_result:
    try:
        return os.lstat(folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
        os.chmod(folder, 0o700)  # the umask may have taken bits, and a folder with setgid given one
    return os.lstat(folder)


def _check_file(status: os.stat_result, path: str) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise _link(path)
    if not stat.S_ISREG(status.st_mode):
        raise UntrustedError(path, "it is not a regular file")
    _check_owner(status, path)
    _check_writers(status, path, sticky=False)
    if status.st_nlink > 1 and _others_can_write(os.lstat(os.path.dirname(path)), os.path.dirname(path)):
        raise UntrustedError(path, "it has a second name, and others can write to its folder")


def _owned(status: os.stat_result) -> bool:
    return status.st_uid in {os.geteuid(), 0}


def _check_owner(status: os.stat_result, path: str, *, above: bool = False) -> None:
    """Refuse what belongs to another user than this one and root; `above`: it is only passed through."""
    if not _owned(status) and not (above and status.st_uid in _unknown_owners()):
        mode = stat.S_IMODE(status.st_mode)
        raise UntrustedError(
            path, f"it belongs to {_user(status.st_uid)}, mode {mode:04o} (allowed: {_user(os.geteuid())} or root)"
        )


def _check_writers(status: os.stat_result, path: str, *, sticky: bool) -> None:
    """Refuse what others can write; `sticky`: a sticky folder is allowed."""
    if _others_can_write(status, path) and not (sticky and status.st_mode & stat.S_ISVTX):
        mode = stat.S_IMODE(status.st_mode)
        raise UntrustedError(
            path, f"it belongs to {_user(status.st_uid)}, mode {mode:04o}: others can write to it (chmod go-w {path})"
        )


def _others_can_write(status: os.stat_result, path: str) -> bool:
    """Return whether the mode lets others write; a group with this user as its only member is not counted.

    Many systems give each user such a group, and the umask 002. A user whose primary group it is is a member, too.
    """
    if status.st_mode & stat.S_IWOTH:
        return True
    if not status.st_mode & stat.S_IWGRP:
        return False
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(status.st_gid)
        acl = "system.posix_acl_access" in os.listxattr(path, follow_symlinks=False)  # may let further users write
    except (KeyError, OSError):
        return True
    private = user.pw_uid != 0 and (user.pw_gid, user.pw_name) == (group.gr_gid, group.gr_name)
    alone = {user.pw_name}.issuperset(group.gr_mem) and _primary_of(group.gr_gid) <= {user.pw_uid}
    return acl or not private or not alone


@cache
def _primary_of(gid: int) -> frozenset[int]:
    """Return the uids of the accounts whose primary group this is."""
    import pwd

    return frozenset(user.pw_uid for user in pwd.getpwall() if user.pw_gid == gid)


def _tighten(file: int | str, status: os.stat_result) -> None:
    """Give a file of this user's mode 0600."""
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) != 0o600:
        os.chmod(file, 0o600)


def _link(path: str) -> UntrustedError:
    return UntrustedError(path, "it is a symbolic link (name what it points to)")


def _user(uid: int) -> str:
    import pwd

    try:
        return f"user {pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return f"user {uid}"


@cache
def _unknown_owners() -> frozenset[int]:
    """Return the uid under which a user namespace shows root's folders of the host, where it does not know root.

    Strangers' folders look the same there. Only folders above a trusted one may belong to it.
    """
    try:
        with open("/proc/self/uid_map") as file:
            id_ranges = [tuple(map(int, line.split())) for line in file]
        with open("/proc/sys/kernel/overflowuid") as file:
            overflow = int(file.read())
    except (OSError, ValueError):
        return frozenset()
    root_known = any(outside <= 0 < outside + count for _, outside, count in id_ranges)
    used = any(inside <= overflow < inside + count for inside, _, count in id_ranges)
    return frozenset() if root_known or used else frozenset({overflow})
