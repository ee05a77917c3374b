"""The controller's settings that matter to us.

Rule: pure; what is not said has Slurm's own default.
Source: scontrol(1) of Slurm 22.05, `show config`; slurm.conf(5).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..base import ParseError

_LINE = re.compile(r"^(\w+) *= ?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Settings:
    """`backfill_s`: seconds between two passes of the backfill scheduler; `limits`: QOS and association limits hold."""

    backfill_s: float = 30.0
    limits: bool = False


def parse(text: str) -> Settings:
    """The settings. Raises ParseError."""
    words = dict(_LINE.findall(text))
    if "SchedulerType" not in words:
        why = "scontrol: the configuration is cut off or garbled"
        raise ParseError(why, argv=("scontrol",), stderr_tail=text[:200])
    options = dict(option.partition("=")[::2] for option in words.get("SchedulerParameters", "").split(","))
    every = options.get("bf_interval", "").strip()
    enforced = words.get("AccountingStorageEnforce", "").replace(" ", "").split(",")
    backfill_s = float(every) if every.isdigit() and int(every) else 30.0
    return Settings(backfill_s, "limits" in enforced or "safe" in enforced)
