"""One replay of a site, as it is or changed, as a task for a worker.

Rule: an outcome is written as text at once, so that one from a journal is the same to the bit. The files are replayed
with the content that they had when the command began, or not at all.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import __version__
from ...formats.documents.open_input import file_digest
from ...formats.site.site_folder import read_site, time_zone
from ...simulate.errors import ConfigError
from ...simulate.kernels.object_cache import source_stamp
from ...simulate.slurm.site_outcome import SiteOutcome, replayed_outcome
from ..sweeps.tasks import Contents, TraceFile, copied
from .change_options import ChangeOptions

if TYPE_CHECKING:
    from ...simulate.slurm.site import Site


@dataclass(frozen=True, slots=True)
class RecordedSite:
    """The files of a site, and how they are read.

    Args:
        trace: one of its files, and all others, relative to its folder.
        sacct: the accounting, relative to this folder or absolute; "": `sacct.psv`.
        zone: name of the time zone of the dumps.
    """

    trace: TraceFile
    sacct: str
    zone: str

    @property
    def inputs(self) -> dict[str, Any]:
        """Return what is equal only if the site, the version of pilotfish and its compiled rules are equal, by name."""
        return {
            "version of pilotfish": f"{__version__}, {source_stamp()[:12]}",
            "what is kept of a replay": {"sha256": [part.name for part in fields(SiteOutcome)]},
            **{name: {"sha256": digest} for name, digest in sorted(self.trace.hashes.items())},
            "--sacct": self.sacct or None, "--zone": self.zone,
        }  # fmt: skip

    def read(self, folder: Path, paths: list[Path] | None = None) -> Site:
        """Return the site from a folder; see `read_site`."""
        return read_site(folder, folder / self.sacct if self.sacct else None, time_zone(self.zone), paths)


def source_of(folder: Path, sacct: Path | None, zone: str) -> tuple[RecordedSite, Site]:
    """Read a site; return it with its files.

    Args:
        folder: of the site.
        sacct: the accounting; None: of the folder.
        zone: name of the time zone of the dumps.

    Raises:
        ConfigError: see `read_site`, `time_zone`.
        OSError: a file cannot be read.
    """
    name = "" if sacct is None else os.path.realpath(sacct)  # unlike Path.resolve, it accepts links in a circle
    if os.path.dirname(name) == os.path.realpath(folder):
        name = os.path.basename(name)
    paths = list[Path]()
    site = RecordedSite(TraceFile("", ""), name, zone).read(folder, paths)
    first, *others = ((path, file_digest(path)) for path in paths)
    root = first[0].parent
    named = tuple((path.name if path.parent == root else str(path.resolve()), digest) for path, digest in others)
    source = RecordedSite(TraceFile(str(first[0]), first[1], named=named), name, zone)
    _keep(source, site)
    return source, site


@dataclass(frozen=True, slots=True)
class SiteTask:
    """Files of a site and a seed: by these every replay of it is known. The seed is that of the clocks' phases."""

    source: RecordedSite
    seed: int

    @property
    def trace(self) -> TraceFile:
        """Return the files of the site."""
        return self.source.trace


@dataclass(frozen=True, slots=True)
class ReplayTask(SiteTask):
    """A replay of a site with changes."""

    change: ChangeOptions

    @property
    def identity(self) -> str:
        """Return what replays of one site differ in."""
        return json.dumps([self.change.described(), self.seed])


def replay_task(task: ReplayTask, contents: Contents | None = None) -> dict[str, Any]:
    """Replay a task; return its outcome as `encoded`. Raises PilotfishError, OSError.

    Args:
        task: the replay.
        contents: of its files, for a worker that cannot see them.
    """
    folder = folder_of(task.trace, contents)
    site = task.change.changed(site_of(task.source, folder), folder, time_zone(task.source.zone))
    return encoded(replayed_outcome(site, task.change.replay(site, task.seed)))


def folder_of(trace: TraceFile, contents: Contents | None) -> Path:
    """Return the folder of a site's files.

    Args:
        trace: the files.
        contents: of them, for a worker that cannot see them; it copies them.
    """
    return Path(trace.path).parent if contents is None else Path(_unpacked(trace, contents).name)


@lru_cache(maxsize=1)
def _unpacked(trace: TraceFile, contents: Contents) -> tempfile.TemporaryDirectory[str]:
    """Copy the files of a site into a folder, which lives until another site is replayed."""
    folder = tempfile.TemporaryDirectory()
    copied(trace, contents, Path(folder.name))
    return folder


#: The site that this process read last.
_last = dict[RecordedSite, "Site"]()


def site_of(source: RecordedSite, folder: Path) -> Site:
    """Return a site; this process keeps the one that it read last. Raises ConfigError: a file was changed."""
    if source not in _last:
        _keep(source, source.read(folder))
        for name, digest in source.trace.hashes.items():
            if file_digest(folder / name) != digest:
                raise ConfigError(str(folder / name), "", "it was changed while the command ran", "the file as it was")
    return _last[source]


def _keep(source: RecordedSite, site: Site) -> None:
    _last.clear()
    _last[source] = site


def encoded(outcome: SiteOutcome) -> dict[str, Any]:
    """Return an outcome as text and numbers; columns are packed float64."""
    values = {part.name: getattr(outcome, part.name) for part in fields(outcome)}
    return {name: _packed(value) if isinstance(value, np.ndarray) else value for name, value in values.items()}


def decoded(numbers: Mapping[str, Any]) -> SiteOutcome:
    """Return the outcome that `encoded` wrote."""
    return SiteOutcome(**{key: _columns(value) if isinstance(value, str) else value for key, value in numbers.items()})


def _packed(column: Any) -> str:
    return base64.b64encode(zlib.compress(np.asarray(column, "<f8").tobytes(), 1)).decode()


def _columns(text: str) -> Any:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<f8")
