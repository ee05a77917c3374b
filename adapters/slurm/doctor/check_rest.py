"""slurmrestd, if one is configured: whether it answers, for how long the token is valid, and what it shows.

Rule: it connects, reads the token's own claims, and reads jobs as the daemon would; no part of a token is ever printed.
A fault of REST is a warning, because commands serve instead.
Source: slurmrestd(8).
"""

from __future__ import annotations

import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ....formats.text import count
from ....simulate.errors import ConfigError
from ....trust import UntrustedError, as_account, check_file
from ...base import AdapterError
from ...findings import NOTE, OK, PROBLEM, WARNING, Finding
from ..rest.token import parse
from ..rest.transport import RestTransport, rest_transport
from ..transport.command_transport import CommandTransport
from ..transport.runner import CommandRunner

PATIENCE_S = 3.0
#: A token that ends sooner will be missing soon, seconds.
SOON_S = 60.0


def findings(options: Mapping[str, Any], user: str, run: CommandRunner, now: float) -> Iterator[Finding]:
    """Yield nothing if no `rest_url` is configured. Arguments as of `examine`; `now` in epoch seconds."""
    connection = list(connection_findings(options, now, user))
    yield from connection
    if options.get("rest_url") and not any(finding.level in (WARNING, PROBLEM) for finding in connection):
        arguments = {name.removeprefix("rest_"): value for name, value in options.items() if name.startswith("rest_")}
        arguments["user"] = arguments.get("user") or user
        yield from request_findings(lambda: rest_transport(**arguments, timeout_s=run.timeout_s), CommandTransport(run))


def connection_findings(options: Mapping[str, object], now: float, account: str = "") -> Iterator[Finding]:
    """Yield whether a server listens at `rest_url`, and the state of the token file.

    Args:
        options: Options of the adapter.
        now: Epoch seconds.
        account: Account of the daemon, which reads the token; "": the current user.
    """
    url = str(options.get("rest_url") or "")
    if not url:
        return
    if why := unreachable(url):
        message = f"no server listens at {url} ({why}): commands are used instead"
        yield Finding(WARNING, "rest", message, ("systemctl status slurmrestd",))
    else:
        yield Finding(OK, "rest", f"a server listens at {url}")
    if path := str(options.get("rest_token_file") or ""):
        with as_account(account):
            token_findings = [*_token(Path(path), now)]
        yield from token_findings


def request_findings(connect: Callable[[], RestTransport], commands: CommandTransport) -> Iterator[Finding]:
    """Yield what the slurmrestd of `connect` answers, compared with `commands`."""
    try:
        transport = connect()
        yield from (Finding(NOTE, "rest", note) for note in transport.notes)
        yield from _compare(transport, commands)
        transport.close()
    except (AdapterError, ConfigError) as error:
        yield Finding(WARNING, "rest", f"{error}; commands are used instead", ("systemctl status slurmrestd",))


def _compare(transport: RestTransport, commands: CommandTransport) -> Iterator[Finding]:
    before = {job.id for job in commands.jobs()}
    began = time.monotonic()
    visible = {job.id for job in transport.jobs()}
    elapsed_s = time.monotonic() - began
    hidden = (before & {job.id for job in commands.jobs()}) - visible
    yield Finding(
        OK, "rest", f"slurmrestd {transport.version} shows {count(len(visible), 'job')} in {1e3 * elapsed_s:.0f} ms"
    )
    if hidden:
        message = (
            f"slurmrestd hides {len(hidden)} of {count(len(before), 'job')} from the token's user: is that an operator?"
        )
        yield Finding(WARNING, "rest", message, ("sacctmgr modify user NAME set AdminLevel=Operator",))
    if cannot := transport.version.cannot_write():
        yield Finding(NOTE, "rest", f"slurmrestd {transport.version} cannot write {', '.join(cannot)}; scontrol does")


def unreachable(url: str) -> str:
    """Return why a connection fails, or ""."""
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
        check_file(path)
        ends, mode = parse(path.read_text()).exp, path.stat().st_mode
    except UntrustedError as error:
        yield Finding(PROBLEM, "rest", f"the token is not used: {error.strerror}")
        return
    except OSError as error:
        yield Finding(WARNING, "rest", f"the token cannot be read: {path}: {error.strerror}")
        return
    except ValueError:
        yield Finding(WARNING, "rest", f"{path} holds no Slurm token", (f"scontrol token > {path}",))
        return
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        message = f"every user may read the token in {path}, and act as its user"
        yield Finding(PROBLEM, "rest", message, (f"chmod 0600 {path}",))
    if ends is None:
        yield Finding(WARNING, "rest", f"the token in {path} never expires: a stolen copy stays valid")
    elif ends - now < SOON_S:
        when = "has expired" if ends <= now else f"expires in {ends - now:.0f} s"
        yield Finding(WARNING, "rest", f"the token in {path} {when}: commands are used instead")
    else:
        yield Finding(OK, "rest", f"the token in {path} is valid for {(ends - now) / 60:.0f} min")
