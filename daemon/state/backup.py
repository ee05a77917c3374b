"""Backups: what a service must not lose, in one compressed file with a checksum of each part.

Rule: a backup changes nothing of the service, which may run meanwhile. It is complete under its name, or absent; the
parts lie in a folder next to it until then. The configuration goes in without its secrets. The record of the service is
large and is only listed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import stat
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from ...built_from import full_version
from ...formats.record.segments import segments
from ...simulate.errors import ConfigError
from ...trust import COMPANIONS, as_account, destination, make_own_folder, new_file, owner_of, prepare_database
from ..config import DaemonConfig
from .journal_db import copy_database

SCHEMA = "pilotfish/backup/v1"
#: Names of parts in a backup. Those of the state are below STATE.
_NOBODY = {"uid": 0, "gid": 0, "uname": "", "gname": "", "mode": 0o600}
MANIFEST, STATE, PROFILES, CONFIGURATION = "manifest.json", "state/", "profiles.sqlite", "configuration/"
JOURNAL = f"{STATE}journal.sqlite"
#: Larger files, which only outputs of jobs are, are left out and named; databases never are.
MOST_BYTES = 64 * 2**20
#: Folders of the state with copies that earlier versions and restores have left.
ASIDE = "before-"
_SECRET = re.compile(r"(token|password|passwd|secret|credential)", re.IGNORECASE)
#: Keys with such a word that only say where a secret is, or how long it holds.
_NO_SECRET = re.compile(r"_(file|lifespan_s)$")
_IN_TEXT = re.compile(r"(\b(?:password|token)=)\S+|(://[^/\s:@]+:)[^@\s/]+(?=@)", re.IGNORECASE)
HIDDEN = "REMOVED"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a backup.

    Attributes:
        pilotfish: the version that made it.
        time: when it was made, epoch seconds.
        journal_version: version of the journal.
        files: bytes and SHA-256 (hexadecimal) of each part, by name.
        left_out: files that are not in it, because they are too large.
        record: bytes of each file of the service's record, which is not in it, by name.
    """

    pilotfish: str
    time: float
    journal_version: int
    files: Mapping[str, tuple[int, str]]
    left_out: tuple[str, ...]
    record: Mapping[str, int]


def write_backup(config: DaemonConfig, config_path: Path, file: Path, now: float) -> Manifest:
    """Write a backup of a service, which may run, and return what it has. O(bytes).

    Args:
        config: of the service.
        config_path: where it was read from.
        file: to write; an older backup there is replaced at the end.
        now: epoch seconds.

    Raises:
        ConfigError: the service has no journal, or it cannot be copied.
        OSError: a file cannot be read or written.
    """
    if not config.journal.exists():
        raise ConfigError(str(config.journal), "", "there is no such file", "the journal of a service that has run")
    target, direct = destination(file)
    if direct:
        raise ConfigError(str(file), "", "it is no regular file", "the name of a file to write")
    with _partial(Path(target)) as folder:
        left_out = _copy_state(config, folder)
        _copy_configuration(config, config_path, folder)
        version = version_of(folder / JOURNAL)
        record = {path.name: path.stat().st_size for path in _record(config.record_folder)}
        names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        files = {name: ((folder / name).stat().st_size, checksum(folder / name)) for name in names}
        manifest = Manifest(full_version(), now, version, files, tuple(left_out), record)
        _pack(folder, names, manifest, target)
    return manifest


def _pack(folder: Path, names: list[str], manifest: Manifest, target: str) -> None:
    """Write the archive with its manifest first, then give it its name."""
    archive = folder / "archive"
    try:
        with new_file(archive) as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as packed:
                text = json.dumps({"schema": SCHEMA, **asdict(manifest)}, indent=1).encode()
                about = tarfile.TarInfo(MANIFEST)
                about.size, about.mtime = len(text), int(manifest.time)
                packed.addfile(_plain(about), io.BytesIO(text))
                for name in names:
                    packed.add(folder / name, name, filter=_plain)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from None
    os.replace(archive, target)
    sync(Path(target).parent)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    for name, value in _NOBODY.items():  # `replace` came with Python 3.11.4, and Debian 12 has 3.11.2
        setattr(member, name, value)
    return member


@contextmanager
def _partial(target: Path) -> Iterator[Path]:
    """Yield an empty folder next to a file, and remove it; one that was left by a kill is emptied."""
    folder = target.with_name(f".{target.name}.partial")
    make_own_folder(folder)
    try:
        remove_content(folder)
        yield folder
    finally:
        with suppress(OSError):
            remove_content(folder)
            folder.rmdir()


def remove_content(folder: Path) -> None:
    """Remove what is in a folder of this user's. Raises OSError."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _copy_state(config: DaemonConfig, folder: Path) -> list[str]:
    """Copy the files of the service into a folder; return those that are too large."""
    account, left_out = owner_of(config.journal), []
    for name, path in _parts(config, account).items():
        target = folder / name
        make_parents(target, folder)
        if path.suffix == ".sqlite":
            copy_database(path, target.parent, lambda file: _open(file, account))
            settle(target)
            continue
        with _open(path, account) as source:
            if os.fstat(source.fileno()).st_size > MOST_BYTES:
                left_out.append(str(path))
                continue
            with new_file(target) as copy:
                shutil.copyfileobj(source, copy)
    return left_out


def _parts(config: DaemonConfig, account: str) -> dict[str, Path]:
    """Return the files to keep by their names in the backup, as its account sees them."""
    parts, record = dict[str, Path](), config.record_folder.absolute()
    with as_account(account):
        for path in sorted(_files(config.state.absolute(), record)):
            if not path.name.endswith((*COMPANIONS, ".lock", ".sock")):
                parts[f"{STATE}{path.relative_to(config.state.absolute())}"] = path
        store = config.profile_store.absolute()
        if store.is_file():
            parts = {name: path for name, path in parts.items() if path != store} | {PROFILES: store}
        outside = config.calibrations.absolute()
        if outside.is_dir() and not outside.is_relative_to(config.state.absolute()):
            parts |= {f"{STATE}calibrations/{path.relative_to(outside)}": path for path in _files(outside, record)}
    return parts


def _files(folder: Path, record: Path) -> Iterator[Path]:
    """Yield the regular files in a folder and those below, but of the record and of copies."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            if path != record and not entry.name.startswith(ASIDE) and entry.name != ".restoring":
                yield from _files(path, record)
        elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(ASIDE):
            yield path


def _record(folder: Path) -> list[Path]:
    return list(segments(folder)) if folder.is_dir() else []


def _open(path: Path, account: str) -> io.BufferedReader:
    """Open a regular file for reading as the account of the service would; a link is refused. Raises OSError."""
    with as_account(account):
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise ConfigError(str(path), "", "it is not a regular file")
    return io.BufferedReader(io.FileIO(number))


def _copy_configuration(config: DaemonConfig, config_path: Path, folder: Path) -> None:
    make_parents(folder / CONFIGURATION / "x", folder)
    for name, path in (("pilotfish.yaml", config_path), ("cluster.yaml", Path(config.cluster))):
        if path.is_file():
            with new_file(folder / CONFIGURATION / name) as file:
                file.write(without_secrets(path.read_text(encoding="utf-8")).encode())


def without_secrets(text: str) -> str:
    """Return a YAML document without the values of keys that name a secret, and without its comments.

    Args:
        text: the document; what is not YAML is left out as a whole.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        return "# left out: it is no valid YAML\n"
    return str(yaml.safe_dump(_cleaned(document), sort_keys=False, allow_unicode=True, width=120))


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: HIDDEN if _is_secret(str(key)) and inner else _cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cleaned(inner) for inner in value]
    return _IN_TEXT.sub(lambda match: f"{match[1] or match[2]}{HIDDEN}", value) if isinstance(value, str) else value


def _is_secret(key: str) -> bool:
    return bool(_SECRET.search(key)) and not _NO_SECRET.search(key)


def settle(copy: Path) -> None:
    """Take the write-ahead log into the copy of a database, and check the copy. Raises ConfigError."""
    try:
        prepare_database(copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode=DELETE")
            verdict = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        verdict = str(error)
    if verdict != "ok":
        raise ConfigError(copy.name, "", f"its copy is not sound: {verdict}", "a sound database")


def version_of(copy: Path) -> int:
    """Return the version of the copy of a journal."""
    prepare_database(copy)
    with closing(sqlite3.connect(copy)) as database:
        return int(database.execute("PRAGMA user_version").fetchone()[0])


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal. O(bytes)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_parents(path: Path, base: Path) -> None:
    """Make the folders between a folder and a file below it."""
    for parent in reversed([parent for parent in path.parents if parent.is_relative_to(base) and parent != base]):
        make_own_folder(parent)


def sync(folder: Path) -> None:
    """Let the names in a folder be on disk. Raises OSError."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
