"""`pilotfish web-token`: a token with which a person or a program reaches the pages from another machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from ...simulate.errors import ConfigError
from ..options import argument, option
from ..streams import note, show

_SCOPES = ("read", "health")
_LONGEST_DAYS = 3660


def web_token(
    name: Annotated[str, argument("NAME", "Name of the token, for the log: letters, digits and _ . @ -")],
    user: Annotated[
        str,
        option(
            "NAME", "The user as whom it looks; `access.see` says what they see.", "--as", default="one without a name"
        ),
    ] = "",
    scope: Annotated[str, option("SCOPE", "`read` for all pages, or `health` for /healthz alone.")] = "read",
    days: Annotated[int, option("N", "Days from today for which it holds.", "--valid-days")] = 365,
) -> None:
    """Make a token for `pilotfish web --tokens`: its line for the file on stdout, and itself once on stderr.

    The line has only a hash. To end a token, remove its line.

    \b
    Examples:
      pilotfish web-token ada-desk --as ada >>tokens.yaml
      pilotfish web-token alarms --scope health --valid-days 30 >>tokens.yaml
    """
    if scope not in _SCOPES:
        raise ConfigError("command line", "--scope", f"found {scope!r}", ", ".join(_SCOPES))
    if not 1 <= days <= _LONGEST_DAYS:
        raise ConfigError("command line", "--valid-days", f"found {days}", f"1 to {_LONGEST_DAYS}")
    try:
        from pydantic import ValidationError

        from ...web.tokens import new_token
    except ImportError as error:
        raise ConfigError(
            "pilotfish web-token", "", f"{error.name} is not installed", "pip install 'pilotfish[web]'"
        ) from None
    try:
        secret, line = new_token(name, user, scope, (datetime.now(UTC) + timedelta(days=days)).date())
    except ValidationError as error:
        key = "NAME" if error.errors()[0]["loc"] == ("name",) else "--as"
        allowed = "1 to 64 letters, digits and _ . @ -"
        raise ConfigError("command line", key, f"found {name if key == 'NAME' else user!r}", allowed) from None
    show(line)
    note(f"the token, shown this once: {secret}")
