"""`pilotfish doctor`: is this site fit for pilotfish, what does its configuration mean here, and what to run."""

from __future__ import annotations

import getpass
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import inputs

if TYPE_CHECKING:
    from ...adapters.findings import Finding

SETUP = """\
# As an administrator of Slurm. USER is the daemon's account, ACCOUNT any account of the books.
sacctmgr add user {user} account=ACCOUNT AdminLevel=Operator
cp systemd/pilotfish.sysusers.conf /etc/sysusers.d/pilotfish.conf && systemd-sysusers
cp systemd/pilotfish.tmpfiles.conf /etc/tmpfiles.d/pilotfish.conf && systemd-tmpfiles --create
cp systemd/*.service systemd/*.timer /etc/systemd/system/
mkdir -p /etc/pilotfish && cp systemd/pilotfish.slurm.yaml /etc/pilotfish/pilotfish.yaml
pilotfish cluster --adapter slurm > /etc/pilotfish/cluster.yaml
pilotfish doctor --config /etc/pilotfish/pilotfish.yaml --user {user}
systemctl enable --now pilotfishd pilotfish-reap.timer     # dry_run: true, until you change it"""
UNDO = """\
# Jobs that wait for pilotfish start by themselves when their hold is over; nothing has to be released.
systemctl disable --now pilotfishd
pilotfish reap --config /etc/pilotfish/pilotfish.yaml --older-than 0     # takes the last pins back
systemctl disable --now pilotfish-reap.timer
sacctmgr modify user where name={user} set AdminLevel=None
rm -r /etc/pilotfish /etc/systemd/system/pilotfish* /etc/sysusers.d/pilotfish.conf /etc/tmpfiles.d/pilotfish.conf
systemctl daemon-reload"""


def doctor(
    adapter: Annotated[str | None, typer.Option("--adapter", metavar="NAME", help="Whom to examine: slurm.")] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The daemon's configuration (YAML).")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="The account that the daemon runs as; default: yours.")
    ] = None,
    setup: Annotated[bool, typer.Option("--setup", help="Only print what to run to set pilotfish up.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Only print what to run to take everything back.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Examine a site before and while pilotfish works beside it. Changes nothing.

    Says of each thing what it means here, and how it could be changed. Exit code 1 if something is a problem.

    \b
    Examples:
      pilotfish doctor --adapter slurm
      pilotfish doctor --config /etc/pilotfish/pilotfish.yaml --user pilotfish
      pilotfish doctor --setup
    """
    who = user or _me()
    if setup or undo:
        for text in [SETUP] * setup + [UNDO] * undo:
            print(text.format(user=user or "pilotfish"))
        return 0
    if adapter is None and config is None:
        raise inputs.bad("--adapter", "missing: whom to examine, slurm; or --config")
    found = _examine(adapter, config, who)
    if as_json:
        document = {"schema": "pilotfish/doctor/v1", "findings": [asdict(finding) for finding in found]}
        print(json.dumps(document, indent=1))
    else:
        from ..render.findings import show

        show(found)
    return int(any(finding.level == "problem" for finding in found))


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _examine(adapter: str | None, config: Path | None, user: str) -> list[Finding]:
    from ...adapters import registry
    from ..planning import Options
    from .glance import source

    where = source(adapter, config, None, Options(), None)
    cluster = inputs.read_cluster(where.cluster) if where.cluster else None
    found = registry.examine(where.adapter, cluster, user, **where.options)
    return [*found, *_service(config)]


def _service(config: Path | None) -> list[Finding]:
    """Whether the daemon of this configuration answers."""
    from ...adapters.findings import NOTE, OK, WARNING, Finding
    from ..config import load_config
    from ..wire import WireError, ask

    if config is None:
        return []
    found = load_config(config)
    try:
        reply = ask(found.endpoint, "status", timeout_s=5.0)
    except WireError as error:
        level = NOTE if found.dry_run else WARNING
        says = f"no daemon answers ({error}): jobs that are held for it wait until their hold is over"
        return [Finding(level, "service", says, ("systemctl start pilotfishd",))]
    return [Finding(OK, "service", f"the daemon answers; mode {reply.get('mode', 'unknown')}")]
