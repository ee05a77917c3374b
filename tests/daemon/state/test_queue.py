"""How a job ended, in a few words."""

from __future__ import annotations

import pytest

from pilotfish.daemon.state.endings import ending, mark


@pytest.mark.parametrize(
    ("ended", "said", "cell"),
    [
        (("completed", 0, None, ""), "completed", "completed"),
        (("failed", 3, None, ""), "failed: exit code 3", "exit 3"),
        (("failed", 127, None, "cannot run x"), "failed: cannot run x, exit code 127", "exit 127"),
        (("failed", 137, 9, "ended by SIGKILL"), "failed: ended by SIGKILL", "SIGKILL"),
        (("failed", 137, 9, ""), "failed: SIGKILL", "SIGKILL"),
        (("failed", 168, 40, ""), "failed: signal 40", "signal 40"),
        (("failed", None, None, ""), "failed", "failed"),
        (("timeout", 143, 15, "reached its walltime of 5 s"), "timeout: reached its walltime of 5 s", "timeout"),
        (("cancelled", 143, 15, "cancelled"), "cancelled", "cancelled"),
        (("cancelled", None, None, "cancelled before it began"), "cancelled before it began", "cancelled"),
        (("cancelled", None, None, "'a' failed"), "cancelled: 'a' failed", "cancelled"),
    ],
)
def test_an_ending_repeats_nothing(ended, said, cell):
    assert ending(*ended) == said and mark(*ended[:3]) == cell
