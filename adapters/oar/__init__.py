"""OAR: jobs that their users hand over are placed; all other jobs are only simulated.

Rule: OAR stays in charge. Its own scheduler starts every job, behind a shim that keeps some jobs from it for a while
and narrows the nodes of others. Without pilotfish every job starts by itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...formats.text import count
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster, Node, NodeType
from ..manager.option_checks import PATH, REQUESTS, WORDS, OptionKind, check, or_none, seconds

if TYPE_CHECKING:
    from ...simulate.model.job import Workflow
    from ...simulate.model.plan import Plan
    from ..base import Reaped
    from ..findings import Finding, ServiceState
    from .adapter import OarAdapter
    from .own_jobs import OarJobs

#: Assumed of each core: memory in bytes, and memory bandwidth in bytes/s (two channels of DDR4 for sixteen cores).
MEMORY_PER_CORE, BANDWIDTH_PER_CORE = 2.0 * 2**30, 2.5e9
#: Longest `max_defer_s`, seconds.
LONGEST_DEFER_S = 86400.0
#: The queue that each OAR has.
DEFAULT_QUEUE = "default"


def create(
    cluster: Cluster,
    *,
    database: str | None = None,
    password_file: str | PathLike[str] | None = None,
    placement_file: str | PathLike[str] | None = None,
    queues: Sequence[str] = (),
    projects: Sequence[str] = (),
    max_defer_s: float = 600.0,
    server: str = "127.0.0.1:6666",
    timeout_s: float = 15.0,
    requests_per_minute: int = 3000,
    submit_options: Sequence[str] = (),
    output_dir: str | PathLike[str] | None = None,
) -> OarAdapter:
    """Return the adapter of the OAR whose database is named. Raises ConfigError.

    Args:
        cluster: Nodes on which jobs may be placed, by their network addresses; OAR's other nodes are left alone.
        database: OAR's database as its read-only account, in libpq's words: `host=... port=... dbname=oar user=oar_ro`;
            None: OAR is read by `oarstat` and `oarnodes`, which is slower and loses its state logs.
        password_file: The password of that account, in libpq's form (mode 0600); None: libpq's own ways.
        placement_file: The file that the shim reads; None: there is no shim, and no jobs are handed over.
        queues: Jobs of these queues are handed over.
        projects: Jobs of these projects are handed over.
        max_defer_s: Longest time that a job is kept after its submission, seconds.
        server: Host and port of OAR's server, which is asked for scheduling passes.
        timeout_s: Time limit of a command, seconds.
        requests_per_minute: Most requests to OAR; a cycle needs one or two.
        submit_options: Options added to the `oarsub` of our own jobs; default: the first of `queues`.
        output_dir: Folder for stdout and stderr of our own jobs; None: that in which a job runs.
    """
    options = {name: value for name, value in locals().items() if name != "cluster"}
    from .adapter import OarAdapter
    from .commands import OarCommands
    from .job_views import OarSelection
    from .placement_file import NAME, PlacementFile
    from .records.oarstat import LOSES, Oarstat
    from .records.world import Database

    _check(**options)
    for option, names in (("queues", queues), ("projects", projects)):
        if bad := [name for name in names if not NAME.fullmatch(name)]:
            raise ConfigError("adapter oar", option, f"found {bad[0]!r}", "letters, digits, and _ . : -, at most 80")
    groups = [f"queue {name}" for name in queues] + [f"project {name}" for name in projects]
    if placement_file is not None and not groups:
        raise ConfigError("adapter oar", "placement_file", "no jobs are handed over", "with queues or projects")
    host, _, port = server.rpartition(":")
    commands = OarCommands(timeout_s, per_minute=requests_per_minute)
    secret = None if password_file is None else Path(password_file).absolute()
    if secret is not None and (why := _unusable(secret)):
        raise ConfigError("adapter oar", "password_file", f"{secret}: {why}", "its account's own, mode 0600")
    adapter = OarAdapter(
        cluster,
        Oarstat(commands) if database is None else Database(commands.psql, database, secret, timeout_s),
        commands,
        OarSelection(frozenset(queues), frozenset(projects)),
        None if placement_file is None else PlacementFile(Path(placement_file).absolute(), groups, max_defer_s),
        server=(host, int(port)),
        submit_options=submit_options or (["-q", queues[0]] if queues else []),
        output_dir=output_dir,
    )
    adapter.notes = () if database else (LOSES,)
    return adapter


def discover() -> tuple[Cluster, tuple[str, ...]]:
    """Return OAR's nodes as a cluster, and a sentence for each assumption. Raises AdapterError."""
    from .commands import OarCommands
    from .records.oarstat import resources_in
    from .records.requests import OarResources

    resources = resources_in(OarCommands(60.0).oar("nodes", ["oarnodes", "-J"]))
    types: dict[int, NodeType] = {}
    nodes = []
    for name, cores in OarResources(resources).cores.items():
        shape = NodeType(f"c{cores}", cores, cores * MEMORY_PER_CORE, cores * BANDWIDTH_PER_CORE)
        nodes.append(Node(name, types.setdefault(cores, shape)))
    notes = tuple(
        f"memory and its bandwidth of nodes with {count(cores, 'core')} are unknown to OAR: "
        f"{kind.memory / 2**30:g} GiB and {kind.memory_bandwidth / 1e9:g} GB/s assumed"
        for cores, kind in types.items()
    )
    return Cluster("oar", tuple(nodes), source="OAR"), notes


def queue_names(
    *, database: str | None = None, password_file: str | PathLike[str] | None = None, timeout_s: float = 15.0,
    **options: Any,
) -> list[str]:  # fmt: skip
    """Return the names of OAR's queues; without its database the default and those with jobs. See the registry."""
    from .commands import OarCommands
    from .records.oarstat import Oarstat
    from .records.world import Database

    commands = OarCommands(timeout_s)
    if database is None:
        return sorted({DEFAULT_QUEUE} | {job.queue for job in Oarstat(commands).world().jobs})
    secret = None if password_file is None else Path(password_file).absolute()
    return sorted(Database(commands.psql, database, secret, timeout_s).world().queues)


def with_queues(options: Mapping[str, Any], queues: Sequence[str], folder: Path) -> dict[str, Any]:
    """Return options with which all jobs of some queues are handed over, too, behind a shim.

    `folder` is that of the placement file if none is configured; see `registry.as_if_handed_over`.
    """
    chosen = [*dict.fromkeys((*options.get("queues", ()), *queues))]
    return {"placement_file": folder / "placement", **options, "queues": chosen}


def reap(
    older_s: float,
    show: Callable[[Reaped], None],
    *,
    dry: bool,
    holds: bool,
    state_dir: Path,
    placement_file: str | PathLike[str] | None = None,
    server: str = "127.0.0.1:6666",
    **options: Any,
) -> int:
    """Remove a placement file without a heartbeat, and ask OAR for a pass; return whether OAR did not hear.

    The shim ignores such a file anyway, from the next pass on. `older_s` is the least time since the end of its
    heartbeat. `holds` and `state_dir` are not needed. See `registry.reap`.
    """
    from ..base import AdapterError, Reaped
    from .commands import poke
    from .placement_file import silent_since

    _check(placement_file=placement_file, server=server, **options)
    path = Path(placement_file) if placement_file is not None else None
    try:
        since = silent_since(path) if path is not None else None
        if path is None or since is None or since + older_s > time.time():
            return 0
        if not dry:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise AdapterError(f"{placement_file}: {error.strerror}", kind="state") from None
    silent = f"no heartbeat for {time.time() - since:.0f} s"
    show(Reaped(f"remove {path}: {silent}", why=f"all jobs: {silent}"))
    host, _, port = server.rpartition(":")
    if dry or poke((host, int(port))):
        return 0
    problem = f"OAR's server does not answer at {server}"
    show(Reaped(problem, why="all jobs", error=problem))
    return 1


def examine(
    cluster: Cluster | None, user: str, service: ServiceState, *, trial: bool = False, **options: Any
) -> list[Finding]:
    """Return the findings about this OAR; see `registry.examine`. There is no trial: it needs no rights in OAR."""
    from .doctor import findings

    return list(findings(cluster, user, service, options, lambda nodes: create(nodes, **options)))


def setup(user: str, *, undo: bool = False) -> str:
    """Return the commands that set the service up for an account, or remove it; see `registry.setup`."""
    from .doctor import setup

    return setup(user, undo=undo)


def user_jobs(timeout_s: float) -> OarJobs:
    """Return the jobs of the current user; see `registry.user_jobs`."""
    from .own_jobs import own_jobs

    return own_jobs(timeout_s)


def is_here() -> bool:
    """Return whether OAR's commands are on this machine."""
    import shutil

    return shutil.which("oarstat") is not None


def export(plan: Plan, workflow: Workflow, cluster: Cluster | None = None) -> str:
    """Return a shell script of oarsub lines; see `registry.export`."""
    from .plan_export import export

    return export(plan, workflow, cluster)


def _unusable(secret: Path) -> str:
    """Return why libpq passes over a password file without a word, or ""."""
    try:
        mode = secret.stat().st_mode
    except OSError as error:
        return str(error.strerror)
    if not os.access(secret, os.R_OK):
        return "it belongs to another account"
    return f"its mode is {mode & 0o777:04o}" if mode & 0o077 else ""


def _server(value: Any) -> bool:
    host, colon, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    return bool(host and colon) and port.isascii() and port.isdecimal() and 0 < int(port) < 65536


_KINDS = {
    **dict.fromkeys(("queues", "projects", "submit_options"), WORDS),
    **dict.fromkeys(("password_file", "placement_file", "output_dir"), PATH),
    "database": or_none(
        OptionKind(lambda value: isinstance(value, str) and "=" in value, "such as host=... dbname=oar user=oar_ro")
    ),
    "max_defer_s": seconds(longest=LONGEST_DEFER_S),
    "server": OptionKind(_server, "HOST:PORT"),
    "timeout_s": seconds(longest=60.0),
    "requests_per_minute": REQUESTS,
}


def _check(**options: Any) -> None:
    check("oar", _KINDS, options)
