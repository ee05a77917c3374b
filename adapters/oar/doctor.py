"""The doctor for OAR: answers every question on which the adapter depends, and prints how to set it up and to undo it.

Rule: it only reads. A question that cannot be answered is a finding itself. The queue gets its own scheduler back
before a file is removed, because OAR disables a queue whose program is missing.
"""

from __future__ import annotations

import pwd
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...formats.text import count
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from ..base import AdapterError
from ..findings import NOTE, OK, PROBLEM, WARNING, Finding, ServiceState
from .commands import OarCommands, poke
from .job_views import OarSelection
from .placement_file import CLOCKS_S, LONGEST_ALIVE_S
from .records.oarstat import Oarstat, resource_properties
from .records.requests import OarResources, left_to_oar, request_of
from .records.world import Database, OarState, Reader
from .site_config import CONFIG, site_config

SCHEDULERS = Path("/usr/lib/oar/schedulers")
#: Where OAR's server listens if nothing else is said, as in `create`.
DEFAULT_SERVER = "127.0.0.1:6666"
#: Versions that are tested.
KNOWN = "2.5"
#: OAR begins a pass at least every 60 s; longer ago, its server does not work.
LATE_PASS_S = 150.0


def findings(
    cluster: Cluster | None,
    user: str,
    service: ServiceState,
    options: dict[str, Any],
    make: Callable[[Cluster], object],
) -> Iterator[Finding]:
    """Yield the findings, the most basic ones first.

    Args:
        cluster: Nodes that the daemon is configured with; None: OAR's.
        user: Account of the daemon.
        service: State of the daemon.
        options: Options of `create`.
        make: Creates the adapter, or raises ConfigError.
    """
    commands = OarCommands(float(options.get("timeout_s", 15.0)))
    yield _version(commands)
    try:
        make(cluster or Cluster("oar", ()))
    except ConfigError as error:
        yield Finding(PROBLEM, "options", str(error))
        return
    secret = options.get("password_file")
    if options.get("database"):
        file = Path(secret) if secret else None
        reader: Reader = Database(commands.psql, options["database"], file, commands.timeout_s)
        yield from _secret(file, user) if file else ()
    else:
        reader, finding = _reader(commands)
        yield finding
    began = time.monotonic()
    try:
        world = reader.world()
    except AdapterError as error:
        yield _unread(error, options)
        return
    by = "" if isinstance(reader, Database) else " by oarstat"
    yield Finding(
        OK, "database", f"one read of {count(len(world.jobs), 'job')}{by} took {time.monotonic() - began:.2f} s"
    )
    selection = OarSelection(frozenset(options.get("queues", ())), frozenset(options.get("projects", ())))
    yield from _times(world)
    yield _server(options)
    yield from _nodes(world, cluster)
    yield from _properties(commands)
    yield from _queues(world, selection, options)
    yield from _file(options, user, service)
    yield from _jobs(world, selection)


def _reader(commands: OarCommands) -> tuple[Reader, Finding]:
    """Return how OAR is read if no database is configured, and what should be configured."""
    try:
        site = site_config()
    except OSError as error:
        message = f"{CONFIG} cannot be read ({error.strerror}), so oarstat is asked: as root, doctor finds out more"
        return Oarstat(commands), Finding(NOTE, "database", message)
    if site.kind != "Pg":
        message = f"OAR's database is {site.kind}: pilotfish is tested on PostgreSQL only, and reads OAR by oarstat"
        return Oarstat(commands), Finding(WARNING, "database", message)
    reader = Database(commands.psql, site.connection, None, commands.timeout_s, site.password)
    return reader, Finding(
        NOTE, "database", f"{CONFIG} names it", (f"database: {site.connection}   # in adapter.options",)
    )


def _secret(file: Path, user: str) -> Iterator[Finding]:
    """Yield that the daemon's account cannot read its password, as libpq lets only the owner of the file."""
    try:
        owner, reader = file.stat().st_uid, pwd.getpwnam(user).pw_uid
    except (OSError, KeyError):  # `create` and the service's own findings say it
        return
    if reader not in (0, owner):
        message = f"adapter.options.password_file: {file} does not belong to {user}, who cannot read it"
        yield Finding(PROBLEM, "database", message, (f"chown {user} {file}",))


def _unread(error: AdapterError, options: dict[str, Any]) -> Finding:
    """Return why OAR's database cannot be read, and what OAR's own configuration has."""
    connection = options.get("database")
    if not connection:
        return Finding(PROBLEM, "database", str(error))
    if options.get("password_file") and "password" in str(error):
        mend = f"grep ^DB_BASE_PASSWD_RO {CONFIG}"
        return Finding(PROBLEM, "database", f"adapter.options.password_file: {error}", (mend,))
    mend = f"psql -d '{connection}'"
    with suppress(OSError):
        if (site := site_config()).connection != connection:
            mend = f"database: {site.connection}   # in adapter.options"
    return Finding(PROBLEM, "database", f"adapter.options.database: {error}", (mend,))


def _version(commands: OarCommands) -> Finding:
    try:
        version = " ".join(commands.oar("version", ["oarstat", "--version"]).split())
    except AdapterError as error:
        return Finding(PROBLEM, "commands", str(error))
    if KNOWN in version:
        return Finding(OK, "version", version)
    return Finding(WARNING, "version", f"{version}: pilotfish is tested with OAR {KNOWN} on PostgreSQL only")


def _times(world: OarState) -> Iterator[Finding]:
    if not world.queues:  # oarstat shows neither its clock nor its passes
        return
    ahead_s = world.now - time.time()
    if abs(ahead_s) > CLOCKS_S:
        message = f"the database's clock is {ahead_s:+.0f} s from this machine's: holds may be void or too long"
        yield Finding(WARNING, "clocks", message)
    ago_s = world.now - world.passed
    if world.passed and ago_s < LATE_PASS_S:
        yield Finding(OK, "passes", f"OAR began its last scheduling pass {ago_s:.0f} s ago")
    else:
        yield Finding(PROBLEM, "passes", "OAR begins no scheduling passes: is its server (Almighty) running?",
                      ("systemctl status oar-server",))  # fmt: skip


def _server(options: dict[str, Any]) -> Finding:
    """Return whether OAR's server is where it is asked for passes."""
    try:
        site = site_config().server
    except OSError:
        site = ""
        if not options:
            message = f"{CONFIG} cannot be read: whether OAR's server listens is not known"
            return Finding(NOTE, "server", message)
    server = options.get("server") or site or DEFAULT_SERVER
    host, _, port = server.rpartition(":")
    mend = f"server: {site}   # in adapter.options" if site else f"grep ^SERVER_ {CONFIG}"
    if not poke((host, int(port)), b""):
        return Finding(PROBLEM, "server", f"adapter.options.server: OAR's server does not answer at {server}", (mend,))
    if site and site.rpartition(":")[2] != port:
        return Finding(PROBLEM, "server", f"adapter.options.server: found {server}, {CONFIG} has {site}", (mend,))
    return Finding(OK, "server", f"OAR's server listens at {server}")


def _properties(commands: OarCommands) -> Iterator[Finding]:
    """Yield which properties are missing by which jobs of our own, and most of users, ask for cores."""
    try:
        existing = resource_properties(commands.oar("nodes", ["oarnodes", "-J"]))
    except AdapterError as error:
        yield Finding(NOTE, "properties", str(error))
        return
    for name, without in (
        ("core", "each resource counts as a core, and oarsub refuses workflows that are submitted to pilotfish"),
        ("cpu", "jobs that ask for CPUs are refused by OAR"),
    ):
        if name not in existing:
            yield Finding(WARNING, "properties", f"OAR's resources have no property {name!r}: {without}",
                          (f"oarproperty -a {name}",))  # fmt: skip


def _nodes(world: OarState, cluster: Cluster | None) -> Iterator[Finding]:
    cores = OarResources(world.resources).cores
    if not cores:
        yield Finding(PROBLEM, "nodes", "OAR has no resources of type default")
        return
    if not OarResources(world.resources).plain:
        message = (
            "several resources of OAR's are one core: jobs that ask for resources instead of cores are left to OAR"
        )
        yield Finding(NOTE, "nodes", message)
    for node in cluster.nodes if cluster else ():
        if node.name not in cores:
            yield Finding(PROBLEM, "nodes", f"{node.name} is not a network_address of OAR's",
                          ("pilotfish cluster --adapter oar > cluster.yaml",))  # fmt: skip
        elif node.type.cores != cores[node.name]:
            in_oar = count(cores[node.name], "core")
            message = f"{node.name} has {in_oar} in OAR, and {node.type.cores} in the configured cluster"
            yield Finding(WARNING, "nodes", message)
    yield Finding(OK, "nodes", f"{count(len(cores), 'node')} with {count(sum(cores.values()), 'core')}")


def _queues(world: OarState, selection: OarSelection, options: dict[str, Any]) -> Iterator[Finding]:
    waiting = {job.queue for job in world.jobs if job.state == "Waiting"} if world.queues else set()
    for name in sorted(waiting - world.queues.keys()):
        message = f"jobs wait in queue {name}, which OAR does not have any more: they never start"
        yield Finding(PROBLEM, "handover", message, (f'oarnotify --add-queue "{name},5,SCHEDULER"',))
    if not options.get("placement_file"):
        yield Finding(NOTE, "handover", "there is no placement_file: no user's job is handed over")
        return
    if not world.queues:
        yield Finding(NOTE, "handover", "oarstat does not show queues: whether they are active is not known")
        return
    for name in sorted(selection.queues):
        if name not in world.queues:
            names = ", ".join(sorted(world.queues))
            yield Finding(PROBLEM, "handover", f"adapter.options.queues: OAR has no queue {name!r} ({names})",
                          (f'oarnotify --add-queue "{name},5,pilotfish_sched"',))  # fmt: skip
    for name, queue in sorted(world.queues.items()):
        has_shim = _is_shim(queue.program)
        if name in selection.queues and not has_shim:
            message = f"the scheduler of queue {name}, {queue.program}, is not the shim"
            yield Finding(PROBLEM, "handover", f"{message}: its jobs are neither kept nor placed")
        if (has_shim or name in selection.queues) and queue.state != "Active":
            message = f"queue {name} is {queue.state}: none of its jobs starts, and oarstat does not say so"
            yield Finding(PROBLEM, "handover", message, (f"oarnotify -e {name}",))
        elif has_shim:
            yield Finding(OK, "handover", f"queue {name} has the shim {queue.program}")


def _is_shim(program: str) -> bool:
    try:
        return b"PilotfishShim" in (SCHEDULERS / program).read_bytes()[:8192]
    except OSError:
        return False


def _file(options: dict[str, Any], user: str, service: ServiceState) -> Iterator[Finding]:
    if not options.get("placement_file"):
        return
    path = Path(options["placement_file"])
    try:
        status = path.parent.stat()
        owner = pwd.getpwuid(status.st_uid).pw_name
    except (OSError, KeyError) as error:
        yield Finding(PROBLEM, "file", f"{path.parent}: {error}", (f"install -d -o {user} -m 755 {path.parent}",))
        return
    if owner != user or stat.S_IMODE(status.st_mode) & 0o022 or not status.st_mode & 0o001:
        message = f"{path.parent} belongs to {owner}, mode {stat.S_IMODE(status.st_mode):04o}: {user} must own it alone"
        yield Finding(PROBLEM, "file", f"{message}, and OAR's account must pass", (f"chown {user} {path.parent}",
                      f"chmod 755 {path.parent}"))  # fmt: skip
        return
    try:
        age_s = time.time() - path.stat().st_mtime
    except OSError:
        age_s = float("inf")
    if age_s > LONGEST_ALIVE_S and service.mode == "live":
        yield Finding(PROBLEM, "file", f"the daemon is live, but has not written {path} for two minutes")
    else:
        yield Finding(OK, "file", f"{path} {'was never written' if age_s == float('inf') else f'is {age_s:.0f} s old'}")


def _jobs(world: OarState, selection: OarSelection) -> Iterator[Finding]:
    machine = OarResources(world.resources)
    handed_over = [job for job in world.jobs if job.state in ("Waiting", "Hold") and selection.takes(job)]
    vain = [why for job in handed_over if (why := left_to_oar(job) or request_of(job, machine)[2])]
    message = f"{count(len(handed_over), 'job that is handed over waits', 'jobs that are handed over wait')}"
    if vain:
        yield Finding(NOTE, "queue", f"{message}; {len(vain)} in vain, the first one because {vain[0]}")
    else:
        yield Finding(OK, "queue", message)
    if killable := sum("besteffort" in job.types and job.state == "Running" for job in world.jobs):
        jobs = count(killable, "besteffort job runs", "besteffort jobs run")
        message = f"{jobs}: pilotfish plans around them while jobs fit next to them"
        yield Finding(NOTE, "besteffort", message)


def setup(user: str, *, undo: bool) -> str:
    """Return the commands that set pilotfish up next to OAR, or remove it.

    Args:
        user: Account of the daemon.
        undo: Remove it.
    """
    shim = Path(__file__).parent / "shim"
    return (UNDO if undo else SETUP).format(user=user, shim=shim, schedulers=SCHEDULERS)


SETUP = """\
# As root on OAR's server. In /etc/oar/pilotfish_sched.conf, `scheduler` is the queue's present one (oarnotify -l).
install -d -o {user} -m 755 /var/lib/pilotfish-oar
install -m 644 {shim}/PilotfishShim.pm {schedulers}/
install -m 755 {shim}/pilotfish_sched {schedulers}/
printf '%s\\n' 'scheduler oar_sched_gantt_with_timesharing_and_fairsharing_and_quotas' \\
    'file /var/lib/pilotfish-oar/placements' 'owner {user}' 'longest_hold_s 900' > /etc/oar/pilotfish_sched.conf
oarnotify --add-queue "pilotfish,5,pilotfish_sched"
# So that `oarsub -t pilotfish` hands a job over, too:
oaradmissionrules -n -r {shim}/admission_rule.pl
# The rest is in docs/guides/oar.md."""

UNDO = """\
# As root on OAR's server. OAR disables a queue whose program is missing: the queues get OAR's own scheduler back first.
stock=$(sed -n 's/^scheduler //p' /etc/oar/pilotfish_sched.conf)
oarnotify -l | awk '/^[^\\t]/ {{q = $1}} /priority =/ {{p = $3}} /scheduler = pilotfish_sched$/ {{print q, p}}' |
    while read -r queue priority; do
        oarnotify --remove-queue "$queue" && oarnotify --add-queue "$queue,$priority,$stock"
    done
oaradmissionrules --show-all | awk '/^---.*RULE #/ {{n = $NF}} /`oarsub -t pilotfish`/ {{print substr(n, 2)}}' |
    xargs -r -n 1 oaradmissionrules --delete
rm -f /etc/oar/pilotfish_sched.conf {schedulers}/pilotfish_sched {schedulers}/PilotfishShim.pm
rm -rf /var/lib/pilotfish-oar
# Jobs in the queue `pilotfish` start as on plain OAR. When oarstat shows no more of them:
# oarnotify --remove-queue pilotfish"""
