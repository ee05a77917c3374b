"""Is this Slurm, and this account, fit for pilotfish? Every question that the adapter depends on, asked and answered.

Rule: it only reads. `asked` holds every question, the other modules judge the answers and are pure; what could not be
asked is a finding itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....simulate.platform import Cluster
from ...findings import Finding, Level
from ..handover import Selection
from ..runner import Runner
from . import accounts, nodes, queue, reach, waiting
from .asked import Asked, ask


def examine(run: Runner, user: str, selection: Selection, cluster: Cluster | None) -> Iterator[Finding]:
    """Ask, and say what was found, the most basic things first.

    Args:
        user: the account that the daemon runs as.
        cluster: the nodes that the daemon is configured with; None: it takes Slurm's.
    """
    yield from judge(ask(run, user), selection, cluster)


def judge(asked: Asked, selection: Selection, cluster: Cluster | None) -> Iterator[Finding]:
    """The findings of what was asked; pure."""
    found = list(reach.findings(asked))
    yield from found
    if any(finding.level is Level.PROBLEM for finding in found):
        return  # all else would only say the same again
    for part in (accounts, waiting, queue):
        yield from part.findings(asked, selection)
    yield from nodes.findings(asked, cluster)
