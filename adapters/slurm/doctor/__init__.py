"""Is this Slurm, and this account, fit for pilotfish? Every question that the adapter depends on, asked and answered.

Rule: it only reads. `asked` holds every question, the other modules judge the answers and are pure; what could not be
asked is a finding itself. Only `trial` writes, a job of its own, and only if asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....simulate.platform import Cluster
from ...findings import Finding, Level, Service
from ..handover import Selection
from ..runner import Runner
from . import accounts, nodes, partitions, queue, reach, submit_plugin, waiting
from .asked import Asked, ask


def examine(
    run: Runner, user: str, selection: Selection, cluster: Cluster | None, service: Service
) -> Iterator[Finding]:
    """Ask, and say what was found, the most basic things first.

    Args:
        user: the account that the daemon runs as.
        cluster: the nodes that the daemon is configured with; None: it takes Slurm's.
        service: what is known of the daemon.
    """
    yield from judge(ask(run, user), selection, cluster, service)


def judge(asked: Asked, selection: Selection, cluster: Cluster | None, service: Service) -> Iterator[Finding]:
    """The findings of what was asked; pure."""
    found = list(reach.findings(asked))
    yield from found
    if any(finding.level is Level.PROBLEM for finding in found):
        return  # all else would only say the same again
    yield from accounts.findings(asked, selection, service)
    yield from waiting.findings(asked, selection)
    yield from queue.findings(asked, selection, service)
    yield from submit_plugin.findings(asked, service)
    yield from partitions.findings(asked, selection)
    yield from nodes.findings(asked, cluster, service)
