"""What the commands are told, where a recorded answer is enough to see it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.transport import ByCommands

NOW = 1_700_000_000


@pytest.mark.parametrize(("ahead_s", "done"), [(-3600.0, True), (0.0, True), (4.0, True), (60.0, False)])
def test_no_start_is_told_by_a_clock_that_is_ahead(ahead_s: float, done: bool) -> None:
    """Seen on 22.05: `StartTime=now` of a machine that is an hour ahead holds the job for that hour."""
    ran: list[Sequence[str]] = []

    def run(argv: Sequence[str]) -> str:
        ran.append(argv)
        return f"sdiag output at Tue Nov 14 22:13:20 2023 ({NOW})\n"

    transport = ByCommands(run, lambda: 100.0, lambda: NOW + ahead_s)
    transport.time()
    transport.update(7, {"ReqNodeList": ""})
    if done:
        transport.update(7, {"ReqNodeList": "n1", "StartTime": "now"})
    else:
        with pytest.raises(AdapterError, match="60 s ahead") as refused:
            transport.update(7, {"ReqNodeList": "n1", "StartTime": "now"})
        assert refused.value.kind == "clock" and not refused.value.transient  # Slurm is well
    assert len(ran) == 2 + done
