"""Compiled kernels: loaded before the time limit of a plan or the clock of a replay starts."""

from __future__ import annotations

from collections.abc import Iterable

from .streams import note


def load_simulator() -> None:
    """Load the kernels of `plan` and `run`."""
    load_kernels("mapping.entry")


def load_kernels(*kernels: str) -> None:
    """Load compiled kernels. Print a line for each that is compiled."""
    from ..simulate.kernels import prepare

    prepare(kernels, note)


def load_replay(
    policies: Iterable[object],
    reading: Iterable[str] = (),
    *,
    networked: bool = False,
    rich: bool = False,
    contention: bool = False,
) -> None:
    """Load the kernels that read and replay traces.

    Args:
        policies: the queue policies of the replays.
        reading: kernels that read the traces.
        networked: jobs communicate; see `kernel_of`.
        rich: jobs depend on each other, or decisions take time; see `kernel_of`.
        contention: jobs share nodes.
    """
    from ..simulate.queue_policies.policy_specs import Contending, base_of, needs_nodes
    from ..simulate.replay.replay import kernel_of
    from ..simulate.replay.worlds import contended, shared_nodes

    def kernel(policy: object) -> str | None:
        if isinstance(base_of(policy), Contending) and not networked:
            return contended.KERNEL
        if contention or needs_nodes(policy):
            return shared_nodes.NETWORKED if networked else shared_nodes.KERNEL
        return kernel_of(policy, networked=networked, rich=rich)

    kernels = {kernel(policy) for policy in policies}
    load_kernels(*reading, *sorted(filter(None, kernels)))
