"""`pilotfish log`: the audit of a service, from the service or, without one, from its journal.

Rule: it changes nothing; the journal of a service that does not run is copied, and the copy is read.
"""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...daemon.paths import default_config_path
from ...simulate.errors import ConfigError
from ...trust import as_account, owner_of
from .. import options
from ..moment_option import moment_s
from ..options import option
from ..output.documents import print_json
from ..streams import note
from ..usage_errors import bad
from .daemon_client import ask_daemon

if TYPE_CHECKING:
    from ...daemon.config import DaemonConfig


def log(
    job: Annotated[str | None, option("[WORKFLOW/]JOB", "Show only this job.", "--job", default="all")] = None,
    user: options.OfUser = None,
    since: Annotated[
        str | None, option("TIME", "Show only later lines: a date (local time), or a time ago.", default="all")
    ] = None,
    config: options.ConfigFile = None,
    as_json: options.Json = False,
    socket: options.Socket = None,
) -> None:
    """Show what was written to the resource manager, and each change of mode: who decided it, and its outcome.

    Administrators see everything, users their own jobs. It asks the service; with --config, or if no service runs, root
    and its account read the journal. The newest 1,000 lines are shown, and lines stay for as long as ended jobs
    (keep_days). What the reaper released while it could not write its own record is not known.

    \b
    Examples:
      pilotfish log --since 2h
      pilotfish log --job 4711
      pilotfish log --user ada --json
    """
    from ...daemon.socket.ipc import NoDaemonError

    if config is not None and socket is not None:
        raise bad("--socket", "not with --config, which reads a file")
    since_s = None if since is None else moment_s("--since", since, time.time(), zone=None)
    if config is not None:
        reply = _read(config, job, user, since_s)
    else:
        try:
            reply = ask_daemon(socket, "log", job=job, user=user, since=None if since_s is None else repr(since_s))
        except NoDaemonError:
            default = default_config_path()
            if socket is not None or default is None:
                raise
            reply = _read(default, job, user, since_s)
            note(f"no service answers: this is from the journal of {default}")
    if as_json:
        print_json("log", {name: reply[name] for name in ("lines", "older")})
        return
    from ..output.audit_lines import show_audit

    show_audit(reply["lines"], older=reply["older"])


def _read(path: Path, job: str | None, user: str | None, since_s: float | None) -> dict[str, Any]:
    """Return lines of the journal of a configuration; root reads it with the rights of its owner."""
    from ...daemon.config import load_config
    from ...daemon.socket.log_requests import MOST_LINES, audit_reply, keys_of, uid_named
    from ...daemon.state.audit import AuditQuestion
    from ...daemon.state.journal import Journal
    from ...daemon.state.reap_log import read_reaped

    settings: DaemonConfig = load_config(path)
    if not settings.journal.is_file():
        raise ConfigError(str(settings.journal), "", "there is no such file", "the journal of a service that has run")
    owner = None if user is None else uid_named(user)
    with as_account(owner_of(settings.journal)), closing(Journal(settings.journal, in_memory=True)) as journal:
        workflows = journal.workflows_with(job) if job is not None and "/" not in job else ()
        keys = None if job is None else keys_of(job, settings.adapter.name, workflows)
        question = AuditQuestion(keys, owner, since_s or 0.0, MOST_LINES)
        return audit_reply(journal, lambda asked: read_reaped(settings.adapter_state, asked), question)
