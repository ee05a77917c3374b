"""Profiles from measurements of other programs: `read` by the name of the program."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from ...formats.documents.document_errors import from_source
from ...formats.documents.files import decode, read_bytes
from ...formats.documents.unpack import unpacked
from ...simulate.model.job import Profile
from .imported import Imports, profiles_of

SOURCES = ("sacct", "likwid", "perf", "jobstats")


def read(
    source: str, path: str | Path, name: str, *, node_type: str | None = None, date: str = ""
) -> tuple[Mapping[str, Profile], Mapping[str, int]]:
    """Return name -> profile of a file that another program wrote, and why something was left out -> how many.

    Args:
        source: the program, one of SOURCES.
        path: the file; may be gzipped.
        name: of a profile for which the file has no name.
        node_type: the cluster file's name for the node that was measured.
        date: of the measurement, ISO 8601, if the file has none.

    Raises:
        ConfigError: naming file and line, what was found and what is allowed.
    """
    text = decode(unpacked(read_bytes(path), str(path)), str(path))
    parser = import_module(f".{source}_import", __name__)
    imports: Imports = from_source(str(path), parser.parse, text, name)
    return profiles_of(imports, node_type, date)
