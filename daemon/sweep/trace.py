"""The trace of a run: its file with those that it names, read where they lie or from their content.

Rule: what was in them when the sweep began is what is replayed, or nothing is; a worker keeps the trace that it read
last. Errors name the files as the sweep does, and what a sweep allows.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from ...simulate.batch.select import Select
from ...simulate.errors import ConfigError
from ...simulate.formats.workloads import read_workload
from ...simulate.workload import Workload
from .wording import in_a_sweep

#: What is in a trace's file, and in each of those that it names.
Contents = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Abilities:
    """What of a machine decides how long jobs run.

    Args:
        speeds: flop/s of its cores, all that there are; () = not known.
        storages: names of those in its network; None = nothing is known of a network.
    """

    speeds: tuple[float, ...] = ()
    storages: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace, and the hash of what was in it when the sweep began.

    Args:
        size: what in it says how large the machine is.
        beside: name and hash of each file that it names; names are relative to its folder, or absolute.
    """

    path: str
    digest: str
    skip_invalid: bool = False
    size: str = "MaxProcs"
    beside: tuple[tuple[str, str], ...] = ()

    @property
    def hashes(self) -> dict[str, str]:
        """Name -> hash, of itself and of each file that it names."""
        return {Path(self.path).name: self.digest, **dict(self.beside)}

    @property
    def kept_together(self) -> bool:
        """Whether all of them lie in its folder, and would be found in another folder as well."""
        return not any(Path(name).is_absolute() or ".." in Path(name).parts for name, _ in self.beside)

    def contents(self) -> Contents:
        """What is in them now. Raises OSError."""
        return tuple((Path(self.path).parent / name).read_bytes() for name in self.hashes)


def digest_of(data: bytes) -> str:
    """The hash of what is in a file."""
    return hashlib.sha256(data).hexdigest()


def hashes(path: Path, beside: Callable[[Path], Iterable[str]]) -> dict[str, str]:
    """Name -> hash of a file, and of those beside it that it cannot do without. Raises OSError."""
    return {name: digest_of((path.parent / name).read_bytes()) for name in (path.name, *beside(path))}


@lru_cache(maxsize=1)
def jobs_of(trace: TraceFile, contents: Contents | None, machine: Abilities, select: Select) -> Workload:
    """The jobs to replay. Raises ConfigError, OSError.

    Args:
        contents: for who cannot see the files.
    """
    return select.of(_read(trace, contents, machine))


@lru_cache(maxsize=1)
def _read(trace: TraceFile, contents: Contents | None, machine: Abilities) -> Workload:
    if contents is None:
        found, contents = _parsed(trace, Path(trace.path), machine), trace.contents()
    else:
        with tempfile.TemporaryDirectory() as folder:
            found = _parsed(trace, _copied(trace, contents, Path(folder)), machine)
    if list(map(digest_of, contents)) != list(trace.hashes.values()):
        raise ConfigError(trace.path, "", "it was changed while the sweep ran", "the file as it was")
    return found


def _copied(trace: TraceFile, contents: Contents, folder: Path) -> Path:
    """A copy of the trace, with the files that it names, in a folder."""
    copies = [folder / name for name in trace.hashes]
    for copy, content in zip(copies, contents, strict=True):
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
    return copies[0]


def _parsed(trace: TraceFile, path: Path, machine: Abilities) -> Workload:
    """The jobs in the file at `path`, the trace or a copy of it."""
    try:
        return read_workload(path, **asdict(machine), skip_invalid=trace.skip_invalid)
    except ConfigError as error:
        source, key, problem = (_named(trace, path, text) for text in (error.source, error.key, error.problem))
        raise ConfigError(source, key, problem, in_a_sweep(error.allowed)) from None


def _named(trace: TraceFile, path: Path, text: str) -> str:
    """A text about the file at `path`, or one beside it, with the name that the sweep has for it."""
    if str(path) == trace.path:
        return text
    return text.replace(f"{path.parent}/", trace.path.removesuffix(path.name))
