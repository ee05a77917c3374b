"""Slurm: jobs that their users hand over are placed; all other jobs are only simulated.

Rule: Slurm stays in charge. A job is bound to nodes only when it can start there now, by fields that an operator may
write. Without pilotfish every job starts by itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster, Node, NodeType
from ..manager.option_checks import PATH, REQUESTS, SWITCH, TEXT, WORDS, check, number_from, or_none, seconds

if TYPE_CHECKING:
    from ...simulate.model.job import Workflow
    from ...simulate.model.plan import Plan
    from ..base import Reaped
    from ..findings import Finding, ServiceState
    from .adapter import SlurmAdapter
    from .records import SlurmNode
    from .transport.command_transport import Transport
    from .user_client import OwnJobs

#: Assumed memory bandwidth, bytes/s per core: two channels of DDR4 for sixteen cores.
BANDWIDTH_PER_CORE = 2.5e9

#: Where TimeMin is a soft limit.
TIME_MIN_NEEDS = "false; or Slurm 23.11 or newer with SchedulerParameters=time_min_as_soft_limit"


def create(
    cluster: Cluster,
    *,
    partitions: Sequence[str] = (),
    qos: Sequence[str] = (),
    accounts: Sequence[str] = (),
    features: Sequence[str] = (),
    comment: bool = True,
    timeout_s: float = 15.0,
    requests_per_minute: int = 3000,
    submit_options: Sequence[str] = (),
    output_dir: str | PathLike[str] | None = None,
    max_defer_s: float = 3600.0,
    wide_nodes: int | None = None,
    unheld_prefix: str = "",
    asked_file: str = "",
    time_min: bool = False,
    twin: bool = True,
    rest_url: str = "",
    rest_user: str = "",
    rest_token_file: str = "",
    rest_token_command: str = "",
    rest_token_lifespan_s: float = 600.0,
) -> SlurmAdapter:
    """Return the adapter of the Slurm that the commands on this machine reach. Raises ConfigError.

    Args:
        cluster: Nodes on which jobs may be placed; Slurm's other nodes are left alone.
        partitions: Jobs of these partitions are handed over.
        qos: Jobs of these QOS are handed over.
        accounts: Jobs of these accounts are handed over.
        features: Jobs that ask for one of these features are handed over.
        comment: Jobs with the word `pilotfish` in their comment are handed over.
        timeout_s: Time limit of a command, seconds; at most 15, so that no change reaches a job that has begun.
        requests_per_minute: Most requests to Slurm; a cycle needs three or four, placing a job one.
        submit_options: Options added to the `sbatch` of our own jobs, such as `--partition=shared`.
        output_dir: Directory for stdout and stderr of our own jobs; None: Slurm's default.
        max_defer_s: Longest time that a job is kept after its submission, seconds, whatever its user allows.
        wide_nodes: Jobs of so many nodes or more are kept for one pass of Slurm's backfill only; None: jobs of more
            than a quarter of their partition and of at least 2 nodes.
        unheld_prefix: How the names of files begin that show job_submit.lua the kinds of jobs that it need not hold;
            "": none.
        asked_file: File that job_submit.lua opens for each job that is offered; "": none.
        time_min: A job that is given to Slurm gets a TimeMin from its predicted run time, for Slurm's backfill; only
            where TimeMin is a soft limit: Slurm 23.11 or newer with SchedulerParameters=time_min_as_soft_limit.
        twin: Starts of waiting jobs are forecast by Slurm's own rules; its configuration, accounts and jobs are read
            for that.
        rest_url: slurmrestd, preferred to commands: `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`; "": none.
        rest_user: User of the token; "": the user that runs pilotfish.
        rest_token_file: File with the token, renewed by the site.
        rest_token_command: Command that prints a token; "": `scontrol token`.
        rest_token_lifespan_s: Lifetime of the tokens of `scontrol token`, seconds.
    """
    options = {name: value for name, value in locals().items() if name != "cluster"}
    from .adapter import SlurmAdapter
    from .handed_over.ownership import SlurmSelection
    from .placement.eligibility import Deferral
    from .site_files import TIMEOUT_S, SiteFileReader
    from .transport.command_transport import USAGE_TIMEOUT_S, CommandTransport
    from .transport.guard import GuardedTransport
    from .transport.rows import Unreadable
    from .transport.runner import CommandRunner

    _check(**options)
    selection = SlurmSelection.of(partitions=partitions, qos=qos, accounts=accounts, features=features, comment=comment)
    unreadable = Unreadable()
    usage = CommandRunner(min(USAGE_TIMEOUT_S, timeout_s))
    commands = CommandTransport(CommandRunner(timeout_s), run_usage=usage, unreadable=unreadable)
    transport: Transport = commands
    if not rest_url and (rest_user or rest_token_file or rest_token_command):
        option = "rest_user" if rest_user else "rest_token_file" if rest_token_file else "rest_token_command"
        raise ConfigError("adapter slurm", option, "there is no rest_url", "with rest_url")
    if rest_url:
        from .rest.failover import FailoverTransport
        from .rest.transport import rest_transport

        token = (rest_token_file, rest_token_command, rest_token_lifespan_s)
        transport = FailoverTransport(rest_transport(rest_url, rest_user, *token, timeout_s, unreadable), commands)
    if time_min:
        _refuse_hard_time_min(commands)
    guarded = GuardedTransport(transport, requests_per_minute)
    aside = guarded.may_ask_aside, guarded.note_aside, time.monotonic
    return SlurmAdapter(
        cluster,
        guarded,
        selection,
        submit_options=submit_options,
        output_dir=output_dir,
        deferral=Deferral(max_defer_s, wide_nodes),
        load=lambda: replace(guarded.load(), unreadable=unreadable.now.copy()),
        unheld_prefix=Path(unheld_prefix).absolute() if unheld_prefix else None,
        asked_file=Path(asked_file).absolute() if asked_file else None,
        time_min=time_min,
        site_files=SiteFileReader(CommandRunner(TIMEOUT_S), *aside) if twin else None,
    )


def _refuse_hard_time_min(commands: Transport) -> None:
    """Raise ConfigError if Slurm says that TimeMin would cut time limits; without an answer none is written."""
    from ..base import AdapterError

    try:
        why = commands.settings().hard_time_min
    except AdapterError:
        return
    if why:
        raise ConfigError("adapter slurm", "time_min", why, TIME_MIN_NEEDS)


def examine(
    cluster: Cluster | None, user: str, service: ServiceState, *, trial: bool = False, **options: Any
) -> list[Finding]:
    """Return the findings about this Slurm and the daemon's account; see `registry.examine`.

    `submit_options` are added to the `sbatch` of the job of `trial`.
    """
    from ...trust import as_account, owner_of
    from .doctor import check_queue, check_reaper, check_rest, check_twin, findings_of
    from .doctor import trial as rights_trial
    from .doctor.questions import ask
    from .handed_over.job_update import with_our_pins
    from .handed_over.ownership import SlurmSelection
    from .transport.runner import CommandRunner

    _check(**options)
    run = CommandRunner(options.get("timeout_s", 15.0))
    fields = ("partitions", "qos", "accounts", "features", "comment")
    selection = SlurmSelection.of(**{name: options[name] for name in fields if name in options})
    answers = ask(run, user)
    with as_account(owner_of(service.state_dir) if service.state_dir else ""):
        jobs = with_our_pins(answers.jobs, service.state_dir, answers.now)
    answers.jobs, answers.pins_unread = jobs
    findings = [*findings_of(answers, selection, cluster, service), *check_reaper.findings(run, service)]
    findings += check_queue.time_min_findings(answers, is_wanted=bool(options.get("time_min")))
    findings += check_twin.findings(run, is_wanted=options.get("twin", True))
    findings += check_rest.findings(options, service.account or user, run, time.time())
    return [*findings, *rights_trial.findings(run, options.get("submit_options", ()))] if trial else findings


def queue_names(*, timeout_s: float = 15.0, **options: Any) -> list[str]:
    """Return the names of Slurm's partitions; see `registry.queue_names`."""
    from .transport.command_transport import CommandTransport
    from .transport.runner import CommandRunner

    return sorted(CommandTransport(CommandRunner(timeout_s)).partitions())


def with_queues(options: Mapping[str, Any], queues: Sequence[str], folder: Path) -> dict[str, Any]:
    """Return options with which all jobs of some partitions are handed over; see `registry.as_if_handed_over`."""
    return {**options, "partitions": [*dict.fromkeys((*options.get("partitions", ()), *queues))]}


def reap(
    older_s: float,
    show: Callable[[Reaped], None],
    *,
    dry: bool,
    holds: bool,
    state_dir: Path,
    timeout_s: float = 15.0,
    max_defer_s: float = 3600.0,
    **options: Any,
) -> int:
    """Release overdue pins and, with `holds`, overdue holds; see `registry.reap`."""
    from .handed_over.overdue import Reaper
    from .handed_over.ownership import SlurmSelection
    from .transport.runner import CommandRunner

    _check(timeout_s=timeout_s, max_defer_s=max_defer_s, **options)
    fields = ("partitions", "qos", "accounts", "features", "comment")
    selection = SlurmSelection.of(**{name: options[name] for name in fields if name in options})
    reaper = Reaper(CommandRunner(timeout_s), selection, state_dir, max_defer_s if holds else math.inf)
    return reaper.reap(older_s, show, dry=dry)


def user_jobs(timeout_s: float) -> OwnJobs:
    """Return the jobs of the current user; see `registry.user_jobs`."""
    from .user_client import own_jobs

    return own_jobs(timeout_s)


def is_here() -> bool:
    """Return whether Slurm's commands are on this machine."""
    import shutil

    return shutil.which("scontrol") is not None


def setup(user: str, *, undo: bool = False) -> str:
    """Return the commands that set the service up for an account, or remove it; see `registry.setup`."""
    from .doctor.setup import SETUP, UNDO

    return (UNDO if undo else SETUP).format(user=user)


def export(plan: Plan, workflow: Workflow, cluster: Cluster) -> str:
    """Return a shell script of sbatch lines; see `registry.export`."""
    from .plan_export import export

    return export(plan, workflow, cluster)


def discover() -> tuple[Cluster, tuple[str, ...]]:
    """Return Slurm's nodes as a cluster, and a sentence for each assumption. Raises AdapterError."""
    from .allocation import usable
    from .transport.command_transport import CommandTransport
    from .transport.runner import CommandRunner

    transport = CommandTransport(CommandRunner())
    nodes, settings = transport.nodes(), transport.settings()
    return cluster_of(usable(nodes, settings.system_shares), settings.cluster or "slurm")


def cluster_of(nodes: Iterable[SlurmNode], name: str) -> tuple[Cluster, tuple[str, ...]]:
    """Return a cluster of nodes in Slurm's order, and a sentence for each number that had to be assumed. O(nodes).

    Nodes of the same number of CPUs and the same memory share a type. A Slurm CPU counts as a core, because Slurm
    allocates CPUs. Nodes without CPUs or memory (state FUTURE) are left out.

    Args:
        nodes: As Slurm shows them.
        name: Slurm's ClusterName.
    """
    types: dict[tuple[int, float], NodeType] = {}
    cluster_nodes = []
    for node in nodes:
        if node.cpus < 1 or node.memory <= 0:
            continue
        shape = (node.cpus, node.memory)
        if shape not in types:
            label = f"c{node.cpus}-{node.memory / 2**30:.4g}GiB"
            types[shape] = NodeType(label, node.cpus, node.memory, node.cpus * BANDWIDTH_PER_CORE)
        cluster_nodes.append(Node(node.name, types[shape]))
    notes = tuple(
        f"memory bandwidth of nodes like {kind.name} is unknown to Slurm: {kind.memory_bandwidth / 1e9:g} GB/s assumed"
        for kind in types.values()
    )
    return Cluster(name, tuple(cluster_nodes), source="Slurm"), notes


_KINDS = {
    **dict.fromkeys(("partitions", "qos", "accounts", "features", "submit_options"), WORDS),
    "timeout_s": seconds(longest=15.0),
    "max_defer_s": seconds(),
    **dict.fromkeys(
        ("rest_url", "rest_user", "rest_token_file", "rest_token_command", "unheld_prefix", "asked_file"), TEXT
    ),
    "rest_token_lifespan_s": seconds(least=1.0),
    "comment": SWITCH,
    "time_min": SWITCH,
    "twin": SWITCH,
    "requests_per_minute": REQUESTS,
    "wide_nodes": or_none(number_from(1)),
    "output_dir": PATH._replace(allowed="a folder"),
}


def _check(**options: Any) -> None:
    check("slurm", _KINDS, options)
