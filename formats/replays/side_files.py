"""Find the files that another file needs.

They are usage traces and ranks of Batsim workloads, and type libraries of IRMaSim platforms.

Rule: only readable files are listed; errors in the others are left to the reader of the workload or platform.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...simulate.errors import ConfigError
from ..batsim.profiles import parse_profile, rank_names
from ..documents.files import decode, is_file, is_xml, parse_document, parse_json, read_bytes
from ..documents.unpack import unpacked
from .irmasim import LIBRARY, is_irmasim_platform
from .workloads import format_of


def files_of_workload(path: Path) -> tuple[str, ...]:
    """Return the names of the files that a workload needs, without duplicates. O(bytes).

    Names are relative to the folder of the workload where they are so in the file.

    Raises:
        OSError: the workload cannot be read.
    """
    names = dict.fromkeys(name for trace in _traces(path) for name in _named(path.parent, trace))
    return tuple(name for name in names if is_file(path.parent / name))


def files_of_machine(path: Path) -> tuple[str, ...]:
    """Return the names of the files that a machine file needs, relative to its folder. O(bytes)."""
    data = dict[str, Any]()
    with suppress(ConfigError):
        text = read_bytes(path)
        data = {} if is_xml(text) else parse_document(decode(text, str(path)), str(path))
    names = LIBRARY.values() if is_irmasim_platform(data) else ()
    return tuple(name for name in names if is_file(path.parent / name))


def _traces(path: Path) -> Iterator[str]:
    if ".json" not in format_of(path).suffixes:
        return
    data: Any = None
    with suppress(ConfigError):
        data = parse_json(decode(unpacked(read_bytes(path), str(path)), str(path)), str(path))
    profiles = data.get("profiles") if isinstance(data, dict) else None
    for profile in profiles.values() if isinstance(profiles, dict) else ():
        with suppress(ConfigError):
            if trace := parse_profile(profile).trace:
                yield trace


def _named(folder: Path, trace: str) -> Iterator[str]:
    yield trace
    with suppress(ConfigError):
        for rank in rank_names(folder / trace):
            yield str(Path(trace).parent / rank)
