"""`status` names the queues that the resource manager has disabled."""

from __future__ import annotations

import pytest

from pilotfish.cli.output.status import show_status


@pytest.mark.parametrize(("closed", "lines"), [(["default", "pilot"], 1), ([], 0)])
def test_a_disabled_queue_is_one_line(capsys: pytest.CaptureFixture[str], closed: list[str], lines: int) -> None:
    reply = {"cluster": "lab", "blocked": "", "time": 1.0, "workflows": [], "closed_queues": closed}
    show_status(reply, everything=False)
    stdout = capsys.readouterr().out
    assert stdout.count("disabled in the resource manager, so none of its jobs starts: default, pilot") == lines
    assert stdout.count("disabled") == lines
