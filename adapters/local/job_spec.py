"""The records of a job on disk as typed values.

Rule: what was written is read back equal; anything else is a ValueError that names the fault, never a partial job.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import types
import typing
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import quote_from_bytes, unquote_to_bytes

from ...simulate.model.job import Job
from ...simulate.model.snapshot import JobState
from .job_files import read_record

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Spec:
    """The job to run (spec.json), written before anything else happens; the keeper needs nothing more.

    Args:
        environment: Additions to the environment, ours included; with `whole` all of it.
        directory: Absolute working directory.
        stdout: Absolute file, as is stderr.
        grace_s: Seconds between SIGTERM and SIGKILL.
        cgroups: Directories of the control groups made for this job.
        cores: CPUs of each node; () in the records of versions that did not write them.
        files: names of usage (see `JobView`), and the words of its command that may name these files.
        whole: Nothing of the keeper's own environment is added.
    """

    key: str
    job: Job
    nodes: tuple[str, ...]
    cpus: tuple[int, ...]
    submit_time: float
    environment: tuple[tuple[str, str], ...]
    directory: str
    stdout: str
    stderr: str
    grace_s: float
    cgroups: tuple[str, ...] = ()
    cores: tuple[tuple[int, ...], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Begin:
    """The start of a job (begin.json): its first process and its keeper, each by id and start time, and `sizes`."""

    pid: int
    start_ticks: int
    boot_id: str
    start_time: float
    keeper_pid: int
    keeper_ticks: int
    sizes: tuple[tuple[str, float], ...] = ()  # names of usage, and bytes


@dataclass(frozen=True, slots=True)
class End:
    """The end of a job (end.json)."""

    state: JobState
    exit_code: int | None
    signal: int | None
    reason: str
    start_time: float | None
    finish_time: float
    usage: tuple[tuple[str, float], ...]


def load(kind: type[T], directory: str, name: str) -> T | None:
    """Read a record as a value of `kind`; return None if the file is missing. Raises ValueError if unreadable."""
    record = read_record(directory, name)
    if record is None:
        return None
    try:
        return _read(kind, record)  # type: ignore[no-any-return]
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} is unreadable: {error}") from error


def plain(value: Any) -> dict[str, Any]:
    """Return a dataclass as JSON-compatible values; the inverse of `load`."""
    return dataclasses.asdict(value)


_hints = functools.cache(typing.get_type_hints)


def _read(kind: Any, value: Any) -> Any:
    """Read plain JSON as `kind`: a dataclass, tuple, union, enum, str, int or float."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        for choice in args:
            try:
                return _read(choice, value)
            except ValueError:
                continue
    elif origin is tuple and isinstance(value, list):
        if args[-1] is Ellipsis:
            return tuple(_read(args[0], item) for item in value)
        if len(args) == len(value):
            return tuple(map(_read, args, value))
    elif dataclasses.is_dataclass(kind) and isinstance(value, dict):
        hints = _hints(typing.cast(type, kind))
        if unknown := value.keys() - hints.keys():
            raise ValueError(f"unknown key {min(unknown)!r}")
        return typing.cast(type, kind)(**{key: _read(hints[key], item) for key, item in value.items()})
    elif isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    elif (kind is float and type(value) in (int, float)) or type(value) is kind:
        return value
    raise ValueError(f"found {value!r:.60}, expected {getattr(kind, '__name__', kind)}")


def directory_name(key: str) -> str:
    """Return the directory name of a job: its key percent-encoded, or cut with its hash appended if long."""
    data = os.fsencode(key)
    name = quote_from_bytes(data, safe="")
    if name.startswith("."):
        name = "%2E" + name[1:]
    return name if len(name) <= 200 else f"{name[:150]}%.{hashlib.sha256(data).hexdigest()[:32]}"


def key_of(name: str) -> str:
    """Return the key of a directory whose spec is unreadable; the name itself if the key was cut."""
    return name if "%." in name else os.fsdecode(unquote_to_bytes(name))
