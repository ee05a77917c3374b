"""Files that a workload names, without which it cannot be read: usage traces of Batsim, and their ranks.

Rule: told are those that can be read; what is wrong with the others is for who reads the workload to say.
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
from .reading import decode, read_bytes, unpacked
from .workloads import format_of


def beside(path: Path) -> tuple[str, ...]:
    """Names of these files, each once, relative to the folder of the workload where they are so. O(bytes).

    Raises:
        OSError: the workload cannot be read.
    """
    names = dict.fromkeys(name for trace in _traces(path) for name in _named(path.parent, trace))
    return tuple(name for name in names if _is_file(path.parent / name))


def _traces(path: Path) -> Iterator[str]:
    if format_of(path).suffix != ".json":
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
