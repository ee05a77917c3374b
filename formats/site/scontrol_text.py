"""Output of `scontrol -o show node|partition|reservation|topology` and `scontrol show config` as lines of slurm.conf.

Rule: a record is a line of `KEY=VALUE`, as `slurm_values.words_of` splits it.
Source: scontrol(1) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import slurm_values
from .slurm_conf import ConfLine, SlurmConf

_SETTING = re.compile(r"[ \t]*(\w+(?:\[\d+\])?) *= ?(.*?)[ \t]*\r?", re.ASCII)
_NOTHING = frozenset(("(null)", "n/a", "none", "(none)", "unknown"))
#: Names that scontrol gives to what slurm.conf names otherwise.
_AS_IN_CONF = {"cputot": "cpus", "availablefeatures": "features"}


def records(text: str, first: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each line that begins with the key `first`, and its key -> value."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith(f"{first}="):
            yield number, slurm_values.words_of(line, first)


def configuration(text: str, source: str) -> SlurmConf:
    """Return what `scontrol show config` prints as settings; a value such as (null) or N/A is not set."""
    conf = SlurmConf()
    for number, line in enumerate(text.split("\n"), start=1):
        match = _SETTING.fullmatch(line)
        if match and match[2].lower() not in _NOTHING:
            key = match[1].lower()
            conf.settings[key] = ConfLine({key: match[2]}, source, number)
    return conf


def conf_lines(text: str, source: str, first: str) -> list[ConfLine]:
    """Return records as lines of slurm.conf, without the present state of nodes and the nodes below upper switches.

    Args:
        text: what `scontrol -o show node`, `show partition` or `show topology` printed.
        source: the file.
        first: `NodeName`, `PartitionName` or `SwitchName`.
    """
    lines = list[ConfLine]()
    for number, words in records(text, first):
        values = {key.lower(): value for key, value in words.items() if value.lower() not in _NOTHING}
        if first == "NodeName":
            values.pop("state", None)
        if first == "SwitchName" and "switches" in values:
            values.pop("nodes", None)
        lines.append(ConfLine({_AS_IN_CONF.get(key, key): value for key, value in values.items()}, source, number))
    return lines
