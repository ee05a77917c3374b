"""The doctor for Slurm: answers every question on which the adapter depends.

Rule: it only reads. `questions` sends the requests; the `check_` modules derive findings and are pure, except for
`check_rest` and `check_reaper`. A failed request is a finding itself. Only `trial` writes, a job of its own, and only
on demand.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....simulate.model.cluster import Cluster
from ...findings import Finding, Level, ServiceState
from ..handed_over.ownership import SlurmSelection
from . import check_accounts, check_clocks, check_connection, check_nodes, check_partitions, check_queue
from .questions import Answers


def findings_of(
    answers: Answers, selection: SlurmSelection, cluster: Cluster | None, service: ServiceState
) -> Iterator[Finding]:
    """Yield the findings from Slurm's answers, the most basic ones first; pure. Arguments as of `examine`."""
    connection = list(check_connection.findings(answers))
    yield from connection
    if any(finding.level is Level.PROBLEM for finding in connection):
        return  # every other check would only fail for the same reason
    yield from check_accounts.findings(answers, selection, service)
    yield from check_partitions.findings(answers, selection)
    yield from check_queue.findings(answers, selection, service)
    yield from check_clocks.findings(answers.jobs, answers.login_nodes, answers.now)
    yield from check_nodes.findings(answers, cluster, service)
