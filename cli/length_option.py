"""The option `--for`: after what time something ends by itself."""

from __future__ import annotations

import re
from typing import Any

from .options import option
from .usage_errors import bad

_SPAN = re.compile(r"(\d{1,6})([dhms])", re.ASCII)
UNITS_S = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def length_option(default: str) -> Any:
    """Declare it; `default`: when it ends without the option, in words."""
    return option("TIME", "End after a time, such as 7d or 12h.", "--for", default=default)


def length_s(text: str | None) -> float | None:
    """Return its value, seconds; None: it was not given. Raises typer.BadParameter."""
    if text is None:
        return None
    match = _SPAN.fullmatch(text)
    if match is None or not int(match[1]):
        raise bad("--for", f"{text!r} (allowed: a time such as 7d, 12h, 30m or 90s)")
    return int(match[1]) * UNITS_S[match[2]]
