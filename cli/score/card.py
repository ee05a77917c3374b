"""The content of a card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .judged_policy import JudgedPolicy

if TYPE_CHECKING:
    from ...simulate.slurm.handed_order import Handling
    from ...simulate.slurm.site import Site
    from ...simulate.slurm.site_outcome import SiteOutcome
    from ...simulate.slurm.site_score import SiteScore
    from .evidence import Evidence


@dataclass(frozen=True, slots=True)
class Card:
    """All that a card shows.

    Args:
        name: of the site.
        partitions: whose jobs are handed over; empty: all.
        handling: of the jobs that are handed over.
        run_times: walltime or predicted.
        expected: share of the jobs whose run time was predicted; None: time limits count.
        evidence: traces of the service; None: no journal was read.
        requests: to Slurm that the card itself took.
        recorded: what really happened; `twin`, `pilotfish`: the replays.
    """

    name: str
    site: Site
    policy: JudgedPolicy
    score: SiteScore
    partitions: Sequence[str]
    handling: Handling
    run_times: str
    expected: float | None
    evidence: Evidence | None
    requests: int
    recorded: SiteOutcome
    twin: Sequence[SiteOutcome]
    pilotfish: Sequence[SiteOutcome]
