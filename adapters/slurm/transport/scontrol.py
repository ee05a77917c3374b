"""Output of `scontrol show` about partitions, reservations and the configuration, split into words.

Rule: pure, and only for what administrators alone can write: lines are split at blanks, so no value may be a user's. A
setting that is missing has Slurm's own default.
Source: scontrol(1) of Slurm 22.05; slurm.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from ....formats.hostlist import expand, parse_cpus
from ....formats.slurm_values import names as names
from ....formats.slurm_values import words_of
from ....simulate.errors import ConfigError
from ....simulate.slurm.version_rules import VERSION_RULES
from ...base import ParseError
from ..allocation import NO_SHARE, AllocationRules, SystemShare
from .parsing import clean, count

#: The lines of a job that was resized, and of its cores. A user can forge them, only of their own job, by a name with
#: a line end.
_RESIZED = re.compile(r"^ {3}ResizeTime=\d", re.MULTILINE)
_CORES = re.compile(r"^ {5}Nodes=(\S+) CPU_IDs=([\d,-]+) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Allocation:
    """The nodes of a job that has begun, from the output of `scontrol --details show job`.

    Args:
        resized: Whether Slurm changed them after it had begun.
        cores: Node -> its cores there, as Slurm numbers them; nodes that cannot be read are omitted.
    """

    resized: bool
    cores: Mapping[str, tuple[int, ...]]


def allocation(text: str) -> Allocation:
    """Return what a job has."""
    cores: dict[str, tuple[int, ...]] = {}
    for nodes, numbers in _CORES.findall(text):
        with suppress(ConfigError):
            cores |= dict.fromkeys(expand(nodes), parse_cpus(numbers))
    return Allocation(_RESIZED.search(text) is not None, cores)


def command(entity: str) -> list[str]:
    """Return the argv that shows all of `partition`, `reservation`, ..., one to a line."""
    return ["scontrol", "--oneliner", "--all", "show", entity]


def lines(text: str, first: str) -> Iterator[dict[str, str]]:
    """Yield each line that begins with the key `first` as key -> value; a word without `=` continues the value before.

    Raises ParseError if there are lines and none begins so, unless Slurm reports that it has none.
    """
    line_count = 0
    for line in clean(text).splitlines():
        if not line.startswith(f"{first}="):
            continue
        line_count += 1
        yield words_of(line, first)
    if not line_count and text.strip() and not text.strip().startswith("No "):
        raise ParseError(f"scontrol: there is no {first}", argv=("scontrol",), stderr_tail=text[:200])


_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_LINE = re.compile(r"^[ \t]*(\w+(?:\[\d+\])?) *= ?(.*?)[ \t]*$", re.MULTILINE)
_NOTHING = frozenset(("(null)", "n/a", "none", "(none)"))


class Configuration(dict[str, str]):
    """The output of `scontrol show config`, key -> value; "" for a key that is not set."""

    def __init__(self, text: str = "") -> None:
        super().__init__((key, "" if value.lower() in _NOTHING else value) for key, value in _LINE.findall(text))

    def __missing__(self, key: str) -> str:
        return ""

    def words(self, name: str) -> list[str]:
        """Return a setting that is a list."""
        return [word for word in self[name].replace(" ", "").split(",") if word]

    def number(self, name: str, otherwise: int) -> int:
        """Return one of SchedulerParameters as a number; `otherwise` is Slurm's own default."""
        value = dict(word.partition("=")[::2] for word in self.words("SchedulerParameters")).get(name, "")
        return int(value) if value.isdigit() and int(value) else otherwise


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The controller's settings."""

    backfill_s: float = 30.0  #: seconds between two passes of the backfill scheduler
    limits: bool = False  #: whether limits of QOS and associations are enforced
    cluster: str = ""  #: name of the cluster
    hard_time_min: str = "its settings are not known"  #: why TimeMin would cut time limits for good; "": it is soft
    allocation: AllocationRules = field(default_factory=AllocationRules)  #: what a job gets of a node
    system_shares: Mapping[str, SystemShare] = field(default_factory=dict)  #: node -> what is kept there for the system


def parse_settings(text: str) -> ControllerSettings:
    """Return the settings in `scontrol show config`. Raises ParseError."""
    config = Configuration(text)
    if "SchedulerType" not in config:
        why = "scontrol: the configuration is cut off or garbled"
        raise ParseError(why, argv=("scontrol",), stderr_tail=text[:200])
    enforced = config.words("AccountingStorageEnforce")
    limits = "limits" in enforced or "safe" in enforced
    allocation = AllocationRules.of(config["SelectType"], config.get("SelectTypeParameters"))
    return ControllerSettings(
        float(config.number("bf_interval", 30)), limits, config["ClusterName"], hard_time_min(config), allocation
    )


def parse_system_shares(text: str) -> dict[str, SystemShare]:
    """Return what each node keeps for the system, from `scontrol show node`; nodes that keep nothing are omitted.

    Raises ParseError.
    """
    nodes = {words["NodeName"]: _system_share(words) for words in lines(text, "NodeName")}
    return {name: share for name, share in nodes.items() if share != NO_SHARE}


def _system_share(words: Mapping[str, str]) -> SystemShare:
    cpus, usable, mebibytes = (count(words.get(key, "")) or 0 for key in ("CPUTot", "CPUEfctv", "MemSpecLimit"))
    return SystemShare(max(0, cpus - usable) if usable else 0, mebibytes * 2.0**20)


def version(text: str) -> tuple[int, int]:
    """Return the release in `slurm-wlm 22.05.8` or `23.11.4`, as two numbers."""
    match = _VERSION.search(text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def hard_time_min(config: Configuration) -> str:
    """Return why backfill would cut the time limit of a job to its TimeMin for good; "": TimeMin is a soft limit."""
    if version(config["SLURM_VERSION"]) < VERSION_RULES["soft_time_min"].since:
        return f"Slurm {config['SLURM_VERSION'] or 'of an unknown version'} cuts the time limits of such jobs for good"
    is_soft = "time_min_as_soft_limit" in config.words("SchedulerParameters")
    return "" if is_soft else "SchedulerParameters has no time_min_as_soft_limit: backfill cuts time limits for good"
