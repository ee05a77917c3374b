"""Restore a service from a backup, or from the copy of a journal that an upgrade left.

Rule: everything is checked before anything is changed. What is replaced stays in a folder `before-restore-TIME` of the
state. At each moment there is a whole journal, the old or the new one, so a restore that was killed is made again. A
service that runs is refused: its journal is locked.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import sqlite3
import tarfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ...built_from import full_version
from ...simulate.errors import ConfigError
from ...trust import COMPANIONS, as_account, make_folder, make_own_folder, new_file, owner_of, prepare_database
from ..config import DaemonConfig
from . import journal_db
from .backup import (
    ASIDE,
    JOURNAL,
    MANIFEST,
    PROFILES,
    SCHEMA,
    STATE,
    Manifest,
    make_parents,
    remove_content,
    settle,
    sync,
    version_of,
)

#: The folder below the state with the parts that are not in their places yet.
_STAGE = ".restoring"
#: The first bytes of a database (file format of SQLite, section 1.3).
_DATABASE = b"SQLite format 3\0"
_MOST_MANIFEST = 16 * 2**20
_UNREADABLE = (tarfile.TarError, EOFError, zlib.error, OSError)


@dataclass(frozen=True, slots=True)
class Restored:
    """The outcome of a restore.

    Attributes:
        manifest: of the backup; None for the copy of a journal.
        names: names of the parts that were put in place.
        aside: the folder with what they replaced; "" if there was nothing.
    """

    manifest: Manifest | None
    names: tuple[str, ...]
    aside: str


def restore(config: DaemonConfig, file: Path, *, only_check: bool = False) -> Restored:
    """Check a backup and, unless `only_check`, put the state of a service back. O(bytes).

    Args:
        config: of the service, which must not run.
        file: the backup, or a journal.
        only_check: change nothing.

    Raises:
        ConfigError: the backup is damaged, cut short, of a newer version, or of another service; the service runs.
        OSError: a file cannot be read or written.
    """
    state = config.state.absolute()
    with file.open("rb") as source, as_account(owner_of(state)):
        _refuse_copy_of_another(file, source, config.journal.absolute())
        make_folder(state)
        stage = state / _STAGE
        make_own_folder(stage)
        try:
            remove_content(stage)
            manifest, names = _stage(file, source, stage)
            _check_journal(file, stage / JOURNAL)
            aside = "" if only_check else _put(config, stage, names)
        finally:
            with suppress(OSError):
                remove_content(stage)
                stage.rmdir()
    return Restored(manifest, tuple(names), aside)


def _refuse_copy_of_another(file: Path, source: IO[bytes], journal: Path) -> None:
    """Refuse a copy of a journal that lies next to that journal, unless it is this service's."""
    folder = file.absolute().parent
    is_copy = source.read(len(_DATABASE)) == _DATABASE and (folder / journal.name).is_file()
    source.seek(0)
    if is_copy and folder.resolve() != journal.parent.resolve():
        problem = f"it is of another service than the configuration, whose state is in {journal.parent}"
        remedy = f"state_dir: {folder} in the configuration, or PILOTFISH_STATE={folder}"
        raise ConfigError(str(file), "", problem, remedy)


def _stage(file: Path, source: IO[bytes], stage: Path) -> tuple[Manifest | None, list[str]]:
    """Write the parts of a backup into a folder, checked; return its manifest, and their names."""
    if source.read(len(_DATABASE)) == _DATABASE:
        source.seek(0)
        make_parents(stage / JOURNAL, stage)
        with new_file(stage / JOURNAL) as copy:
            shutil.copyfileobj(source, copy, 2**20)
        return None, [JOURNAL]
    source.seek(0)
    try:
        with tarfile.open(fileobj=source, mode="r|gz") as packed:
            members = iter(packed)
            manifest = _manifest(file, packed, next(members, None))
            names = list(_parts(file, packed, members, manifest, stage))
    except _UNREADABLE as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise _damaged(file, f"it is damaged, or only a part of it is there: {error}") from None
    if missing := sorted(set(manifest.files) - set(names)):
        raise _damaged(file, f"only a part of it is there: {missing[0]} is missing")
    return manifest, [name for name in names if name.startswith(STATE) or name == PROFILES]


def _manifest(file: Path, packed: tarfile.TarFile, member: tarfile.TarInfo | None) -> Manifest:
    if member is None or member.name != MANIFEST or not member.isfile() or member.size > _MOST_MANIFEST:
        raise _damaged(file, "it is no backup of pilotfish")
    try:
        document = json.loads(_content(packed, member).read())
        if document.pop("schema") != SCHEMA:
            raise ConfigError(str(file), "schema", "it was made by a newer pilotfish", f"{SCHEMA}, by {full_version()}")
        document["files"] = {name: (int(size), str(digest)) for name, (size, digest) in document["files"].items()}
        return Manifest(**document)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damaged(file, "its manifest cannot be read") from None


def _parts(
    file: Path, packed: tarfile.TarFile, members: Iterator[tarfile.TarInfo], manifest: Manifest, stage: Path
) -> Iterator[str]:
    """Write each part, and yield its name. Raises ConfigError for one that is not as its manifest says."""
    for member in members:
        parts = PurePosixPath(member.name).parts
        if not member.isfile() or member.name not in manifest.files or ".." in parts or parts[0] == "/":
            raise _damaged(file, f"it has {member.name!r}, which its manifest does not name")
        size, digest = manifest.files[member.name]
        target, summed = stage / member.name, hashlib.sha256()
        make_parents(target, stage)
        with new_file(target) as copy:
            content = _content(packed, member)
            while block := content.read(2**20):
                summed.update(block)
                copy.write(block)
        if (target.stat().st_size, summed.hexdigest()) != (size, digest):
            raise _damaged(file, f"the checksum of {member.name} is wrong")
        yield member.name


def _content(packed: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = packed.extractfile(member)
    if content is None:
        raise tarfile.ReadError(f"{member.name} has no content")
    return content


def _damaged(file: Path, problem: str) -> ConfigError:
    return ConfigError(str(file), "", problem, "a whole file of `pilotfish backup`; nothing was changed")


def _check_journal(file: Path, journal: Path) -> None:
    """Refuse a journal that this program cannot open. Raises ConfigError."""
    if not journal.is_file():
        raise _damaged(file, "it has no journal")
    settle(journal)
    version = version_of(journal)
    if version != journal_db.VERSION and version not in journal_db.UPGRADES:
        allowed = f"version {journal_db.VERSION}, which this pilotfish reads, {full_version()}: install a newer one"
        raise ConfigError(str(file), "", f"its journal has version {version}", allowed)


def _put(config: DaemonConfig, stage: Path, names: list[str]) -> str:
    """Put the parts in their places, the journal last; return the folder with what they replaced, or ""."""
    state = config.state.absolute()
    aside = state / f"{ASIDE}restore-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"
    with ExitStack() as stack:
        sound = {path for path in (config.journal.absolute(), config.profile_store.absolute()) if _lock(path, stack)}
        for name in sorted(names, key=lambda name: (name == JOURNAL, name)):
            target = config.profile_store.absolute() if name == PROFILES else state / name.removeprefix(STATE)
            make_parents(target, state if name != PROFILES else target.parent)
            _keep(target, aside / name, aside, COMPANIONS if target not in sound else ())
            with (stage / name).open("rb") as written:
                os.fsync(written.fileno())
            os.replace(stage / name, target)
            sync(target.parent)
    return str(aside) if aside.exists() else ""


def _lock(path: Path, stack: ExitStack) -> bool:
    """Hold a database, its log taken into it; return False if that cannot be: it is damaged, or missing.

    Raises:
        ConfigError: a service uses it.
    """
    if not path.exists():
        return False
    prepare_database(path)
    try:
        database = stack.enter_context(closing(sqlite3.connect(path, isolation_level=None, timeout=0.5)))
        for statement in ("PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=DELETE", "BEGIN EXCLUSIVE", "COMMIT"):
            database.execute(statement)
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            stopped = "a service that is stopped: systemctl stop pilotfishd"
            raise ConfigError(str(path), "", "it is in use, so the service runs", stopped) from None
        return False
    return True


def _keep(target: Path, kept: Path, aside: Path, companions: Sequence[str]) -> None:
    """Give a file a second name below `aside`, and move files with these endings there. Without a file do nothing."""
    for ending in (*companions, ""):
        path = target.with_name(f"{target.name}{ending}")
        if path.is_file():
            copy = kept.with_name(f"{kept.name}{ending}")
            make_own_folder(aside)
            make_parents(copy, aside)
            os.link(path, copy)
            if ending:
                path.unlink()


def describe(outcome: Restored) -> dict[str, Any]:
    """Return what a restore did as a JSON document."""
    about = outcome.manifest
    return {
        "made": None if about is None else about.time,
        "pilotfish": None if about is None else about.pilotfish,
        "journal_version": None if about is None else about.journal_version,
        "files": list(outcome.names),
        "aside": outcome.aside or None,
    }
