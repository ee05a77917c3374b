"""Copies of slurm.conf and topology.conf, and of the files that they include, without passwords.

Rule: all of them or none: slurm.conf without a file that it includes would be read as an error. A topology.conf that is
not there, or that may not be read, is left out. The value of a key
that ends in Pass or Password becomes `removed`.
Source: slurm.conf(5) of Slurm 22.05.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...simulate.errors import ConfigError
from ..documents.files import decode, read_bytes

_PASSWORD = re.compile(r"(?im)^(\s*\w*pass(?:word)?\s*=\s*)[^#\r\n]*")
_INCLUDE = re.compile(r"(?im)^\s*include[\s=]+(\S+)")
_DEEPEST, _MOST_FILES = 10, 1000


def conf_copies(path: Path, cluster: str) -> dict[str, str]:
    """Return the name of each copy and its text; names of included files are the last parts of their paths.

    Args:
        path: slurm.conf; topology.conf is next to it.
        cluster: name of the cluster, for `%c`.

    Raises:
        ConfigError: a file cannot be read, two have one name, or they include each other without end.
    """
    copies: dict[str, str] = {}
    sources: dict[str, Path] = {}
    open_files = [(path, "slurm.conf", 0)]
    if os.access(topology := path.parent / "topology.conf", os.R_OK):
        open_files.append((topology, topology.name, 0))
    while open_files:
        file, name, depth = open_files.pop(0)
        if sources.get(name, file) != file:
            raise ConfigError(
                str(file), "", f"{sources[name]} has the same name", "included files with different names"
            )
        if name in copies:
            continue
        if depth > _DEEPEST or len(copies) >= _MOST_FILES:
            raise ConfigError(str(file), "", "files include each other without end, or are too many")
        text = _PASSWORD.sub(r"\1removed", decode(read_bytes(file, may_be_empty=True), str(file)))
        copies[name], sources[name] = text, file
        for pattern in _INCLUDE.findall(text):
            open_files += [(part, part.name, depth + 1) for part in _included(path.parent, pattern, cluster)]
    return copies


def _included(folder: Path, pattern: str, cluster: str) -> list[Path]:
    """Return the files that an Include names, which may be a pattern."""
    path = folder / pattern.strip('"').replace("%c", cluster.lower())
    if re.search(r"[*?\[]", path.name):
        return sorted(path.parent.glob(path.name))
    return [path]
