"""Read slurm.conf and the files that it includes: settings, and the lines of nodes, partitions and node sets.

Rule: keys are case-insensitive, a later setting replaces an earlier one, `#` ends a line, a backslash at the end of a
line continues it. `DEFAULT` lines set the defaults of the lines that follow. An included file must lie in the folder of
the site: of an absolute path only its name counts, because the files of a site are copies. A file may be empty.
Source: slurm.conf(5) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...simulate.errors import ConfigError
from ..documents.document_errors import found
from ..documents.files import decode, is_file, read_bytes
from ..documents.unpack import unpacked

#: Keys that begin a line of its own, and the key that names what it describes.
LINES = ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "switchname")
#: Keys that may stand there several times.
_REPEATABLE = frozenset((*LINES, "slurmctldhost", "include", "backupcontroller"))
_PAIR = re.compile(r'\s*([\w./]+)\s*[-+*/]?=\s*("[^"]*"|[^\s"]+(?:"[^"]*"[^\s"]*)*|)(?=\s|$)')
_DEEPEST, _MOST_FILES = 10, 1000


@dataclass(frozen=True, slots=True)
class ConfLine:
    """A line such as `NodeName=n[1-4] CPUs=8`: its values by key in lower case, and FILE, LINE."""

    values: Mapping[str, str]
    source: str
    line: int

    def error(self, problem: str, allowed: str = "", key: str = "") -> ConfigError:
        """Return an error that names file, line and key."""
        return ConfigError(self.source, f"line {self.line}{key and f', {key}'}", problem, allowed)


@dataclass(slots=True)
class SlurmConf:
    """The settings and lines of slurm.conf.

    Args:
        settings: key in lower case -> value, and where it stands.
        lines: kind, one of LINES -> its lines in order, with the defaults that hold for them.
        repeated: keys that were set more than once.
    """

    settings: dict[str, ConfLine] = field(default_factory=dict)
    lines: dict[str, list[ConfLine]] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)
    paths: list[Path] = field(default_factory=list)  # of the files that were read
    names: set[str] = field(default_factory=set)  # keys that were looked up

    def text(self, key: str) -> str:
        """Return a setting, "" if it is not set."""
        name = key.lower()
        self.names.add(key)
        value = self.settings[name].values[name] if name in self.settings else ""
        return "" if value.lower() in ("(null)", "n/a") else value


def read_slurm_conf(path: Path) -> SlurmConf:
    """Return what slurm.conf and the files that it includes say.

    Raises:
        ConfigError: a file cannot be read or is not UTF-8, a line has no `KEY=VALUE`, or an included file is missing.
    """
    conf = SlurmConf()
    defaults: dict[str, dict[str, str]] = {}
    _read(path, path.parent, conf, defaults, 0)
    return conf


def _read(path: Path, folder: Path, conf: SlurmConf, defaults: dict[str, dict[str, str]], depth: int) -> None:
    source = str(path)
    conf.paths.append(path)
    for number, line in _logical_lines(decode(unpacked(read_bytes(path, may_be_empty=True), source), source)):
        if line.split(maxsplit=1)[0].lower() == "include":
            for included in _included(line, folder, conf, ConfLine({}, source, number)):
                if depth >= _DEEPEST or len(conf.paths) >= _MOST_FILES:
                    problem = f"files include each other more than {_DEEPEST} deep, or are too many"
                    raise ConfigError(source, f"line {number}", problem)
                _read(included, folder, conf, defaults, depth + 1)
            continue
        _add_line(_pairs(line, source, number), conf, defaults, source, number)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number of its first line, and each line without comment, its continuations appended."""
    first, pending = 0, ""
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        first = first if pending else number
        pending += line.rstrip() if line.rstrip().endswith("\\") and not line.rstrip().endswith("\\\\") else line
        if pending.endswith("\\") and not pending.endswith("\\\\"):
            pending = pending[:-1] + " "
            continue
        if logical := re.split(r"(?<!\\)#", pending, maxsplit=1)[0].replace("\\#", "#").strip():
            yield first, logical
        pending = ""
    if logical := re.split(r"(?<!\\)#", pending, maxsplit=1)[0].strip():
        yield first, logical


def _pairs(line: str, source: str, number: int) -> list[tuple[str, str]]:
    """Return the pairs of a line, keys in lower case."""
    pairs, place = list[tuple[str, str]](), 0
    while place < len(line):
        match = _PAIR.match(line, place)
        if not match:
            raise ConfigError(source, f"line {number}", found(line[place:].strip()), "KEY=VALUE, divided by blanks")
        pairs.append((match[1].lower(), match[2].replace('"', "")))
        place = match.end()
        if not line[place:].strip():
            break
    return pairs


def _add_line(
    pairs: list[tuple[str, str]], conf: SlurmConf, defaults: dict[str, dict[str, str]], source: str, number: int
) -> None:
    """Add the settings of a line; from a key of LINES on, the rest describes one thing."""
    for i, (key, value) in enumerate(pairs):
        if key in LINES:
            values = dict(pairs[i:])
            if value.upper() == "DEFAULT":
                defaults.setdefault(key, {}).update({name: text for name, text in values.items() if name != key})
            else:
                values = {**defaults.get(key, {}), **values}
                conf.lines.setdefault(key, []).append(ConfLine(values, source, number))
            return
        if key in conf.settings and key not in _REPEATABLE:
            conf.repeated.add(key)
        conf.settings[key] = ConfLine({key: value}, source, number)


def _included(line: str, folder: Path, conf: SlurmConf, at: ConfLine) -> list[Path]:
    """Return the files that `Include NAME` names, in the folder of the site; NAME may be a pattern."""
    name = line.split(maxsplit=1)[1].strip('" ') if len(line.split(maxsplit=1)) > 1 else ""
    name = name.removeprefix("=").strip().replace("%c", conf.text("clustername").lower())
    parts = [part for part in Path(name).parts if part not in ("/", "..", ".")]
    if not parts or "\0" in name:
        raise at.error("an include without a file", "Include FILE")
    for candidate in ("/".join(parts), parts[-1]):
        if is_file(folder / candidate):
            return [folder / candidate]
        if is_file(folder / f"{candidate}.gz"):
            return [folder / f"{candidate}.gz"]
        if re.search(r"[*?\[]", candidate):
            try:
                if paths := [path for path in sorted(folder.glob(candidate)) if is_file(path)]:
                    return paths
            except (ValueError, OSError):
                break
    if re.search(r"[*?\[]", name):
        return []
    raise at.error(f"{found(name)}, which is not in the folder of the site", "a copy of the file there")
