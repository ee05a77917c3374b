"""This machine as a cluster: nodes are sets of its CPUs, jobs are process trees, each with its own keeper process.

Rule: this file imports nothing at run time, because the keeper is loaded through it and must start in milliseconds.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from ...simulate.model.cluster import Cluster
    from ..findings import Finding, ServiceState
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
        cluster: Cluster whose nodes name the CPUs that they are made of.
        state_dir: Directory of the job records; created with mode 0700. One adapter at a time may use it.
        grace_s: Seconds between SIGTERM and SIGKILL, >= 0.
        output_dir: Existing directory for stdout and stderr (KEY.out, KEY.err), which stay there; no other user may
            write to it. None: the directory of the job.
        cgroups: Use control groups where they are writable.
        read_only: Only observe: nothing is written, locked or started, so another adapter may use the directory.

    Raises:
        ConfigError: A node has no CPUs, or CPUs that this process may not use; or an option is invalid.
        AdapterError: The state directory is in use, unsafe or not writable.
    """
    from .adapter import LocalAdapter

    return LocalAdapter(
        cluster, state_dir, grace_s=grace_s, output_dir=output_dir, cgroups=cgroups, read_only=read_only
    )


def discover() -> tuple[Cluster, tuple[str, ...]]:
    """Return this machine, one node for each CPU, and a sentence for each assumption."""
    from .host import machine_cluster

    return machine_cluster()


def examine(
    cluster: Cluster | None, user: str, service: ServiceState, *, state_dir: str | PathLike[str], **options: object
) -> list[Finding]:
    """Return findings about what this machine offers the adapter; `user`, `service` and other options are ignored."""
    from pathlib import Path

    from .host import examine

    return examine(cluster, Path(state_dir))


def remove_ended(state_dir: str | PathLike[str]) -> bool:
    """Remove an unused state directory whose jobs have all ended; return False if it stays."""
    from .state_dir import remove_ended

    return remove_ended(state_dir)
