"""Files without which another cannot be read: usage traces of Batsim's workloads, and their ranks; the types of nodes
and processors beside IRMaSim's platforms.

Rule: told are those that can be read; what is wrong with the others is for who reads the workload or platform to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from .batsim_profiles import UsageTrace
from .batsim_traces import rank_names
from .batsim_types import parse_profile
from .documents import parse_json
from .irmasim import LIBRARY, is_irmasim
from .machines import is_xml
from .reading import decode, parse_document, read_bytes, unpacked
from .workloads import format_of


def beside_workload(path: Path) -> tuple[str, ...]:
    """Names of these files, each once, relative to the folder of the workload where they are so. O(bytes).

    Raises:
        OSError: the workload cannot be read.
    """
    names = dict.fromkeys(name for trace in _traces(path) for name in _named(path.parent, trace))
    return tuple(name for name in names if _is_file(path.parent / name))


def beside_machine(path: Path) -> tuple[str, ...]:
    """Names of these files, in the folder of the machine's. O(bytes)."""
    data = dict[str, Any]()
    with suppress(ConfigError):
        text = read_bytes(path)
        data = {} if is_xml(text) else parse_document(decode(text, str(path)), str(path))
    names = LIBRARY.values() if is_irmasim(data) else ()
    return tuple(name for name in names if _is_file(path.parent / name))


def _traces(path: Path) -> Iterator[str]:
    if ".json" not in format_of(path).suffixes:
        return
    data: Any = None
    with suppress(ConfigError):
        data = parse_json(decode(unpacked(read_bytes(path), str(path)), str(path)), str(path))
    profiles = data.get("profiles") if isinstance(data, dict) else None
    for profile in profiles.values() if isinstance(profiles, dict) else ():
        with suppress(ConfigError):
            work = parse_profile(profile).work
            if isinstance(work, UsageTrace):
                yield work.trace


def _named(folder: Path, trace: str) -> Iterator[str]:
    yield trace
    with suppress(ConfigError):
        for rank in rank_names(folder / trace):
            yield str(Path(trace).parent / rank)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long, say
        return False
