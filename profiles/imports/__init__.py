"""Profiles from what other programs have measured: `read` by the name of the source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...simulate.formats.reading import decode, read_bytes, unpacked
from ...simulate.formats.shape import from_source
from ...simulate.job import Profile
from .imported import Imported, profiles_of

SOURCES = ("sacct", "likwid", "perf", "jobstats")


def read(
    source: str, path: str | Path, name: str, *, node_type: str | None = None, date: str = ""
) -> dict[str, Profile]:
    """Return name -> profile of what a file of another program (see SOURCES; also gzipped) says.

    Args:
        name: of a profile, where the file gives none.
        node_type: the cluster file's name for the node on which it was measured.
        date: when it was measured, ISO 8601, where the file does not tell.

    Raises:
        ConfigError: naming file and line, what was found and what is allowed.
    """
    text = decode(unpacked(read_bytes(path), str(path)), str(path))
    found: Sequence[Imported] = from_source(str(path), _parser(source), text, name)
    return dict(profiles_of(found, node_type, date))


def _parser(source: str) -> Callable[[str, str], Sequence[Imported]]:
    from . import jobstats, likwid, perf, sacct

    parsers: Mapping[str, Callable[[str, str], Sequence[Imported]]] = {
        "sacct": sacct.parse, "likwid": likwid.parse, "perf": perf.parse, "jobstats": jobstats.parse,
    }  # fmt: skip
    return parsers[source]
