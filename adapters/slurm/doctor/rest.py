"""slurmrestd, where one is configured: whether somebody listens there, and for how long the token is good.

Rule: it connects and reads the token's own claims; it asks nothing, and no part of a token is ever printed.
Source: slurmrestd(8).
"""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from ...findings import OK, PROBLEM, WARNING, Finding
from ..rest.token import parse

PATIENCE_S = 3.0
#: a token that ends sooner is about to be missed, seconds
SOON_S = 60.0


def findings(options: Mapping[str, object], now: float) -> Iterator[Finding]:
    """Nothing where no `rest_url` is configured.

    Args:
        options: the adapter's.
        now: epoch seconds.
    """
    url = str(options.get("rest_url") or "")
    if not url:
        return
    if why := unreachable(url):
        says = f"nobody listens at {url} ({why}): commands are used in its place"
        yield Finding(WARNING, "rest", says, ("systemctl status slurmrestd",))
    else:
        yield Finding(OK, "rest", f"somebody listens at {url}")
    if path := str(options.get("rest_token_file") or ""):
        yield from _token(Path(path), now)


def unreachable(url: str) -> str:
    """Why no connection can be had, or ""."""
    try:
        if url.startswith("unix:"):
            with socket.socket(socket.AF_UNIX) as channel:
                channel.settimeout(PATIENCE_S)
                channel.connect(url.removeprefix("unix:"))
            return ""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname or "", port), PATIENCE_S).close()
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""


def _token(path: Path, now: float) -> Iterator[Finding]:
    try:
        ends, mode = parse(path.read_text()).exp, path.stat().st_mode
    except OSError as error:
        yield Finding(WARNING, "rest", f"the token cannot be read: {path}: {error.strerror}")
        return
    except ValueError:
        yield Finding(WARNING, "rest", f"{path} holds no token of Slurm's", (f"scontrol token > {path}",))
        return
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        says = f"everybody may read the token in {path}, and act as its user"
        yield Finding(PROBLEM, "rest", says, (f"chmod 0600 {path}",))
    if ends is None:
        yield Finding(WARNING, "rest", f"the token in {path} never ends: whoever finds it may use it for ever")
    elif ends - now < SOON_S:
        when = "has ended" if ends <= now else f"ends in {ends - now:.0f} s"
        yield Finding(WARNING, "rest", f"the token in {path} {when}: commands are used in its place")
    else:
        yield Finding(OK, "rest", f"the token in {path} is good for {(ends - now) / 60:.0f} min")
