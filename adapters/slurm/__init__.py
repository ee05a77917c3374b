"""Slurm: jobs that its users handed over are placed, and everything else there is a neighbour.

Rule: Slurm stays in charge. A job is bound to nodes only when it can start there now, by fields that an operator may
write; without us every job starts by itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from ...simulate.errors import ConfigError
from ...simulate.platform import Cluster

if TYPE_CHECKING:
    from ..findings import Finding, Service
    from .adapter import SlurmAdapter
    from .transport import Transport


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
    rest_url: str = "",
    rest_user: str = "",
    rest_token_file: str = "",
    rest_token_command: str = "",
    rest_token_lifespan_s: float = 600.0,
) -> SlurmAdapter:
    """Return the adapter of the Slurm that the commands of this machine speak to.

    Args:
        cluster: its nodes; others of Slurm's are left alone.
        partitions, qos, accounts: jobs of these are handed over; features: those that ask for one of these.
        comment: so are jobs with the word `pilotfish` in their comment.
        timeout_s: seconds after which a command is given up.
        requests_per_minute: what Slurm is asked at most; a cycle needs three or four, placing a job one.
        submit_options: more options for the `sbatch` of our own jobs, such as `--partition=shared`.
        output_dir: where our own jobs write stdout and stderr; None = where Slurm does.
        max_defer_s: seconds after its submission for which a job is kept at most, whatever its user allows.
        wide_nodes: jobs of so many nodes or more are kept for one pass of Slurm's backfill only; None = of more than a
            quarter of their partition, and at least 2.
        rest_url: slurmrestd, preferred to commands: `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`; "" = none.
        rest_user: whose token it is; "" = the user that runs us.
        rest_token_file: a file that holds the token and that the site renews; or
        rest_token_command: a command that prints a token; "" = `scontrol token`.
        rest_token_lifespan_s: seconds for which `scontrol token` is to make a token good.

    Raises:
        ConfigError: an option cannot be right.
    """
    from .adapter import SlurmAdapter
    from .guarded import Guarded
    from .handover import Selection
    from .judge import Deferral
    from .options import check
    from .runner import Commands
    from .transport import BOOKS_S, ByCommands

    check(
        partitions=partitions, qos=qos, accounts=accounts, features=features, comment=comment, timeout_s=timeout_s,
        requests_per_minute=requests_per_minute, submit_options=submit_options, output_dir=output_dir,
        max_defer_s=max_defer_s, wide_nodes=wide_nodes,
    )  # fmt: skip
    selection = Selection.of(partitions, qos, accounts, features, comment=comment)
    commands = ByCommands(Commands(timeout_s), run_books=Commands(min(BOOKS_S, timeout_s)))
    way: Transport = commands
    if not rest_url and (rest_user or rest_token_file or rest_token_command):
        given = "rest_user" if rest_user else "rest_token_file" if rest_token_file else "rest_token_command"
        raise ConfigError("adapter slurm", given, "there is no rest_url", "with rest_url")
    if rest_url:
        from .fallback import Preferred
        from .rest.transport import by_rest

        rest = by_rest(rest_url, rest_user, rest_token_file, rest_token_command, rest_token_lifespan_s, timeout_s)
        way = Preferred(rest, commands)
    transport = Guarded(way, requests_per_minute)
    return SlurmAdapter(
        cluster,
        transport,
        selection,
        submit_options=submit_options,
        output_dir=output_dir,
        deferral=Deferral(max_defer_s, wide_nodes),
        load=transport.load,
    )


def examine(
    cluster: Cluster | None,
    user: str,
    service: Service,
    *,
    trial: bool = False,
    partitions: Sequence[str] = (),
    qos: Sequence[str] = (),
    accounts: Sequence[str] = (),
    features: Sequence[str] = (),
    comment: bool = True,
    timeout_s: float = 15.0,
    submit_options: Sequence[str] = (),
    **others: object,
) -> list[Finding]:
    """Return what was found of this Slurm, and of the daemon's account `user`; options as in `create`.

    Args:
        service: what is known of the daemon.
        trial: also try what whoever runs us may do, with a job of their own that never starts.

    Raises:
        ConfigError: an option cannot be right.
    """
    from ..findings import PROBLEM, WARNING
    from .doctor import examine as look_over
    from .doctor import rest
    from .doctor import trial as tried
    from .handover import Selection
    from .options import check
    from .runner import Commands

    check(
        partitions=partitions, qos=qos, accounts=accounts, features=features, comment=comment, timeout_s=timeout_s,
        submit_options=submit_options,
        **{name: value for name, value in others.items() if not name.startswith("rest_")},
    )  # fmt: skip
    run = Commands(timeout_s)
    selection = Selection.of(partitions, qos, accounts, features, comment=comment)
    found = [*look_over(run, user, selection, cluster, service), *rest.findings(others, time.time())]
    if others.get("rest_url") and not any(each.topic == "rest" and each.level in (WARNING, PROBLEM) for each in found):
        from .rest import check as asked
        from .rest.transport import of_options
        from .transport import ByCommands

        found += asked.findings(lambda: of_options(others, user, timeout_s), ByCommands(run))
    return [*found, *tried.findings(run, submit_options)] if trial else found


def discover(*, timeout_s: float = 15.0) -> tuple[Cluster, tuple[str, ...]]:
    """Return the nodes that Slurm knows as a cluster, and what had to be assumed of them. Raises AdapterError.

    Args:
        timeout_s: as in `create`.
    """
    from .discover import cluster_of
    from .runner import Commands
    from .transport import ByCommands

    return cluster_of(ByCommands(Commands(timeout_s)).nodes())
