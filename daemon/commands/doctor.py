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
    from ...adapters.findings import Finding, Service
    from ..config import DaemonConfig

SETUP = """\
# As an administrator of Slurm, in the folder of pilotfish's source; ACCOUNT is any account of the books.
sacctmgr add user {user} account=ACCOUNT AdminLevel=Operator
cp systemd/pilotfish.sysusers.conf /etc/sysusers.d/pilotfish.conf
systemd-sysusers
cp systemd/pilotfishd.service systemd/pilotfish-reap.service systemd/pilotfish-reap.timer /etc/systemd/system/
mkdir -p /etc/pilotfish
cp systemd/pilotfish.slurm.yaml /etc/pilotfish/pilotfish.yaml
pilotfish cluster --adapter slurm > /etc/pilotfish/cluster.yaml
pilotfish doctor --config /etc/pilotfish/pilotfish.yaml --user {user}
systemctl daemon-reload
systemctl enable --now pilotfishd pilotfish-reap.timer     # dry_run: true, until you change it
# The rest is in docs/slurm.md."""
UNDO = """\
# Jobs that wait for pilotfish start by themselves when their hold is over; nothing has to be released.
# If job_submit.lua is in use: take lua out of JobSubmitPlugins in slurm.conf, and only then remove the file.
scontrol reconfigure
systemctl disable --now pilotfishd
pilotfish reap --config /etc/pilotfish/pilotfish.yaml --older-than 0     # takes the last pins back
systemctl disable --now pilotfish-reap.timer
sacctmgr modify user where name={user} set AdminLevel=None
# Or, if the account was made for this: sacctmgr delete user name={user}
rm -r /etc/pilotfish /etc/systemd/system/pilotfish* /etc/sysusers.d/pilotfish.conf
systemctl daemon-reload"""


def doctor(
    adapter: Annotated[str | None, typer.Option("--adapter", metavar="NAME", help="Whom to examine: slurm.")] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The daemon's configuration (YAML).")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="The account that the daemon runs as; default: yours.")
    ] = None,
    trial: Annotated[
        bool, typer.Option("--try", help="Also try your rights, with a job of yours that never starts.")
    ] = False,
    setup: Annotated[bool, typer.Option("--setup", help="Only print what to run to set pilotfish up.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Only print what to run to take everything back.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Examine a site before and while pilotfish works beside it. Changes nothing (but see --try).

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
    if trial and user not in (None, _me()):
        raise inputs.bad("--try", f"it tries the rights of whoever runs it, not of {user}: run it as {user}")
    found = _examine(adapter, config, who, trial)
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


def _examine(adapter: str | None, config: Path | None, user: str, trial: bool) -> list[Finding]:
    from ...adapters import registry
    from ...adapters.findings import Service
    from ..config import load_config
    from ..planning import Options
    from .glance import source

    where = source(adapter, config, None, Options(), None)
    cluster = inputs.read_cluster(where.cluster) if where.cluster else None
    service, said = _service(load_config(config)) if config else (Service(), [])
    with inputs.adapter_of(config):
        found = registry.examine(where.adapter, cluster, user, service, trial=trial, **where.options)
    return [*found, *said]


def _service(config: DaemonConfig) -> tuple[Service, list[Finding]]:
    """What is known of the daemon of this configuration, and what there is to say of it."""
    from ...adapters.findings import NOTE, OK, WARNING, Finding, Service
    from ..wire import AbsentError, WireError, ask

    dry, power = config.dry_run, config.power.save
    try:
        mode = str(ask(config.endpoint, "status", timeout_s=5.0).get("mode", "unknown"))
    except AbsentError as error:
        level = NOTE if dry else WARNING
        says = f"{error}: jobs that are held for it wait until their hold is over"
        return Service("", dry, power), [Finding(level, "service", says, ("systemctl start pilotfishd",))]
    except WireError as error:
        return Service(None, dry, power), [Finding(NOTE, "service", f"whether a daemon serves is not known: {error}")]
    return Service(mode, dry, power), [Finding(OK, "service", f"the daemon answers; mode {mode}")]
