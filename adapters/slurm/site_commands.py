"""Read a running Slurm as an ordinary operator, into the texts of the files of a site.

Rule: every command only reads, and is asked once. What Slurm refuses is missing, with the reason; without the
configuration nothing else is asked. The texts are as the commands print them, with times in UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ...formats.site.site_file_list import PRESENT, SITE_FILES
from ..base import AdapterError
from .transport.runner import Runner


@dataclass(frozen=True, slots=True)
class SiteTexts:
    """Answers of a running Slurm about its site.

    Args:
        texts: name of a file in `SITE_FILES` -> what its command printed.
        missing: name of a file -> why there is no text.
    """

    texts: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def site_texts(run: Runner, names: Sequence[str] = PRESENT, since: float = 0.0, until: float = 0.0) -> SiteTexts:
    """Ask Slurm for the files of a site; one request for each.

    Args:
        run: runs a command and returns what it printed.
        names: files of `SITE_FILES`.
        since: begin of the period, epoch seconds; only for files whose command has one.
        until: its end.

    Raises:
        AdapterError: the configuration cannot be read, or this process is to stop.
    """
    site = SiteTexts()
    for name in sorted(names, key=lambda name: name != "scontrol_config.txt"):
        argv = SITE_FILES[name].argv(slurm_time(since), slurm_time(until))
        try:
            text = run(argv)
        except AdapterError as error:
            if name == "scontrol_config.txt" or error.kind == "stopped":
                raise
            site.missing[name] = str(error)
            continue
        site.texts[name] = text
    return site


def slurm_time(seconds: float) -> str:
    """Return a time as Slurm's commands read it where TZ=UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
