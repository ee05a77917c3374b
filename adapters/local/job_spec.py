"""What the local adapter keeps of a job on disk, as values, and how they are read back.

Rule: what was written comes back equal; anything else is a ValueError that says what is wrong, never a
half-read job.
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

from ...simulate.job import Job
from ...simulate.snapshot import JobState
from .records import read_record

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Spec:
    """What to run (spec.json), written before anything else happens; the keeper needs no more than this.

    Args:
        environment: what is added to the environment, ours included.
        directory: absolute working directory.
        stdout: absolute file, as is stderr.
        grace_s: seconds between TERM and KILL.
        cgroups: directories of the control groups made for this job.
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


@dataclass(frozen=True, slots=True)
class Begin:
    """That it began (begin.json): the job's first process and its keeper, each by id and start time."""

    pid: int
    start_ticks: int
    boot_id: str
    start_time: float
    keeper_pid: int
    keeper_ticks: int


@dataclass(frozen=True, slots=True)
class End:
    """How it ended (end.json)."""

    state: JobState
    exit_code: int | None
    signal: int | None
    reason: str
    start_time: float | None
    finish_time: float
    usage: tuple[tuple[str, float], ...]


def load(kind: type[T], directory: str, name: str) -> T | None:
    """Read a record as a value of `kind`, None where there is none. Raises ValueError if unreadable."""
    record = read_record(directory, name)
    if record is None:
        return None
    try:
        return _read(kind, record)  # type: ignore[no-any-return]
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} is unreadable: {error}") from error


def plain(value: Any) -> dict[str, Any]:
    """Return a dataclass as what JSON can hold; the inverse of `load`."""
    return dataclasses.asdict(value)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


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
    """Return the name of a job's directory: the key percent-encoded; a long one is cut, its hash added."""
    data = os.fsencode(key)
    name = quote_from_bytes(data, safe="")
    if name.startswith("."):
        name = "%2E" + name[1:]
    return name if len(name) <= 200 else f"{name[:150]}%.{hashlib.sha256(data).hexdigest()[:32]}"


def key_of(name: str) -> str:
    """Return the key of a directory whose spec cannot tell; the name itself where the key was cut."""
    return name if "%." in name else os.fsdecode(unquote_to_bytes(name))
