"""This machine as a cluster: nodes are sets of its CPUs, jobs are process trees, each with its keeper.

Rule: this file imports nothing; the keeper, which must start in milliseconds, is loaded through it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from ...simulate.platform import Cluster
    from .adapter import LocalAdapter


def create(
    cluster: Cluster,
    state_dir: str | PathLike[str],
    grace_s: float = 5.0,
    output_dir: str | PathLike[str] | None = None,
    cgroups: bool = True,
    read_only: bool = False,
) -> LocalAdapter:
    """Return the adapter of this machine.

    Args:
        cluster: its nodes name the CPUs that they are made of.
        state_dir: where jobs are kept; made with mode 0700 where there is none; one adapter at a time.
        grace_s: seconds between TERM and KILL, >= 0.
        output_dir: where stdout and stderr go (KEY.out, KEY.err) and stay; None = with the job.
        cgroups: use control groups where they can be written.
        read_only: only look, also beside the adapter that has it: nothing is written, locked or started.

    Raises:
        ConfigError: a node has no CPUs, or CPUs that this process may not use; a bad option.
        AdapterError: the state directory is in use, unsafe or unwritable.
    """
    from .adapter import LocalAdapter

    return LocalAdapter(
        cluster,
        state_dir,
        grace_s=grace_s,
        output_dir=output_dir,
        cgroups=cgroups,
        read_only=read_only,
    )


def this_machine_cluster(
    cpus_per_node: int | str = 1,
    memory_bandwidth: float | None = None,
    oversubscription: float = 1.0,
    name: str = "",
) -> tuple[Cluster, tuple[str, ...]]:
    """Return this machine as a cluster, and a warning for each assumed number; see machine.py."""
    from .machine import machine_cluster

    return machine_cluster(cpus_per_node, memory_bandwidth, oversubscription, name)


def discover() -> tuple[Cluster, tuple[str, ...]]:
    """Return this machine, a node for each CPU, and what had to be assumed."""
    return this_machine_cluster()


def remove_ended(state_dir: str | PathLike[str]) -> bool:
    """Remove a state directory that nobody uses and whose jobs have all ended; False where it stays."""
    from . import statedir

    return statedir.remove_ended(state_dir)
