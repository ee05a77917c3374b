"""The options --workers and --dask: who carries out many replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..machine_share import usable_cpus
from .usage_errors import bad, value_of

if TYPE_CHECKING:
    from .sweeps.workers import WorkerPool


def worker_pool(workers: int | None, dask: str | None, tasks: int | None = None) -> WorkerPool:
    """Return the workers.

    Args:
        workers: number of processes; None: one for each CPU.
        dask: address of a Dask cluster, in place of processes.
        tasks: how many there are, where it is known: there are no more processes, and none for one task.

    Raises:
        typer.BadParameter: both are given, or it is not an address.
        PilotfishError: distributed is not installed.
    """
    if dask is None:
        from .sweeps.workers import InThisProcess, Processes

        number = workers or len(usable_cpus())
        if tasks is not None and min(number, tasks) <= 1:
            return InThisProcess()
        return Processes(number if tasks is None else min(number, tasks))
    if workers is not None:
        raise bad("--workers", "not together with --dask: the cluster has its own workers")
    from .sweeps.dask_workers import DaskWorkers

    with value_of("--dask"):
        return DaskWorkers(dask)
