"""How a job ended, in words."""

from __future__ import annotations

import signal

from pilotfish.daemon.state.endings import ending
from tests.support.calls import Calls


def test_the_words_for_the_end_of_a_job_cost_little() -> None:
    """Thousands of jobs of one user may end in one cycle."""
    with Calls() as calls:
        texts = [ending("failed", 3, None, ""), ending("failed", None, signal.SIGKILL, "")]
    assert texts == ["failed: exit code 3", "failed: SIGKILL"]
    assert calls.number < len(signal.Signals)
