"""CompleteWait: while the nodes of a job that has just ended are not clean, no pass starts jobs on others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.simulate.slurm.twin import replay_site
from tests.simulate.slurm.small_sites import NODES, RULES, T0, job, site

EPILOG_S = 60.0


def start_after_end(complete_wait_s: float, *, is_backfilling: bool = True) -> float:
    """Return how long after the end of a job another one starts, which came 5 s after the end and has free nodes."""
    first = job(id="1", required_nodes=(NODES[-1].name,), is_exclusive=True, run_s=200.0, max_nodes=1)
    rules = replace(
        RULES, complete_wait_s=complete_wait_s, epilog_s=(EPILOG_S, EPILOG_S), is_backfilling=is_backfilling
    )
    second = job(id="2", submit=T0 + 210.0, max_nodes=1)
    one, other = replay_site(site([first, second], rules=rules)).starts
    assert one.end is not None and one.end <= T0 + 210
    return other.start - one.end


@pytest.mark.parametrize("is_backfilling", [False, True])
def test_no_pass_starts_a_job_before_the_wait_is_over(is_backfilling: bool) -> None:
    assert start_after_end(0.0, is_backfilling=is_backfilling) < 15
    assert 32 <= start_after_end(32.0, is_backfilling=is_backfilling) <= EPILOG_S + 5


def test_passes_go_on_when_the_wait_is_over_though_nodes_are_not_clean() -> None:
    assert 20 <= start_after_end(20.0) < EPILOG_S
