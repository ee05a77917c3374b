"""Options that take a moment: a date, or a time ago."""

from __future__ import annotations

import re
from datetime import UTC, tzinfo

from .length_option import UNITS_S
from .usage_errors import bad

_AGO = re.compile(r"(\d{1,6})([dhms])", re.ASCII)


def moment_s(name: str, text: str, now: float, zone: tzinfo | None = UTC) -> float:
    """Return the time of a date, or of a time ago, as epoch seconds. Raises typer.BadParameter.

    Args:
        name: of the option.
        text: its value.
        now: the present, epoch seconds.
        zone: of a date; None: the zone of this machine.
    """
    from ..formats.slurm_values import moment

    if match := _AGO.fullmatch(text.strip()):
        return now - int(match[1]) * UNITS_S[match[2]]
    try:
        seconds = moment(text.strip() + {10: "T00:00:00", 16: ":00"}.get(len(text.strip()), ""), zone)
    except ValueError:
        seconds = None
    if seconds is None:
        where = "UTC" if zone is UTC else "local time"
        dates = f"a date such as 2026-03-01 or 2026-03-01T18:00 ({where})"
        raise bad(name, f"{text!r} (allowed: {dates}, or a time ago such as 30d)")
    return seconds
