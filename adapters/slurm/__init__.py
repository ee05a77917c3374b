"""Slurm: jobs that its users handed over are placed, and everything else there is a neighbour.

Rule: Slurm stays in charge. A job is bound to nodes only when it can start there now, by fields that an operator may
write; without us every job starts by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from ...simulate.platform import Cluster

if TYPE_CHECKING:
    from .adapter import SlurmAdapter


def create(
    cluster: Cluster,
    *,
    partitions: Sequence[str] = (),
    qos: Sequence[str] = (),
    accounts: Sequence[str] = (),
    comment: bool = True,
    timeout_s: float = 15.0,
    submit_options: Sequence[str] = (),
    output_dir: str | PathLike[str] | None = None,
    max_defer_s: float = 3600.0,
    wide_nodes: int | None = None,
) -> SlurmAdapter:
    """Return the adapter of the Slurm that the commands of this machine speak to.

    Args:
        cluster: its nodes; others of Slurm's are left alone.
        partitions, qos, accounts: jobs of these are handed over.
        comment: so are jobs with the word `pilotfish` in their comment.
        timeout_s: seconds after which a command is given up.
        submit_options: more options for the `sbatch` of our own jobs, such as `--partition=shared`.
        output_dir: where our own jobs write stdout and stderr; None = where Slurm does.
        max_defer_s: seconds after its submission for which a job is kept at most, whatever its user allows.
        wide_nodes: jobs of so many nodes or more are kept for one pass of Slurm's backfill only; None = of more than a
            quarter of their partition, and at least 2.
    """
    from .adapter import SlurmAdapter
    from .handover import Selection
    from .judge import Deferral
    from .runner import Commands
    from .transport import ByCommands

    selection = Selection(frozenset(partitions), frozenset(qos), frozenset(accounts), comment)
    transport = ByCommands(Commands(timeout_s))
    deferral = Deferral(max_defer_s, wide_nodes)
    return SlurmAdapter(
        cluster, transport, selection, submit_options=submit_options, output_dir=output_dir, deferral=deferral
    )
