"""Jobs whose placement is in doubt: looked at now and then while a request may be under way, and reported once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.handed_over.resize_watch import LOOK_EVERY_S, UNDER_WAY_S, ResizeWatch
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.simulate.model.snapshot import JobState

RUNNING = SlurmJob(7, JobState.RUNNING, placed=("n1",))
SHOWN = "JobId=7 JobName=x ResizeTime=2026\n   AccrueTime=2026-11-22T10:00:00\n{}   StartTime=2026-11-22T10:00:00\n"


class Watched:
    """A watch, its clock, and what it asked."""

    def __init__(self) -> None:
        self.now, self.asked, self.resized, self.away = 0.0, 0, False, False
        self.watch = ResizeWatch(self._answer, lambda: self.now)

    def _answer(self, job: int) -> bool:
        self.asked += 1
        if self.away:
            raise AdapterError("no answer", transient=True)
        return self.resized


def test_a_job_in_doubt_is_looked_at_once_in_a_while_until_nothing_can_be_under_way() -> None:
    watched = Watched()
    watched.watch.doubt(7)
    assert not watched.watch.examine({7: replace(RUNNING, state=JobState.PENDING)})
    for second in range(int(UNDER_WAY_S) + 100):
        watched.now = float(second)
        watched.watch.examine({7: RUNNING})
    assert watched.asked == UNDER_WAY_S // LOOK_EVERY_S + 1 and not watched.watch.resized


def test_a_resize_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    watched.watch.doubt(7)
    watched.away = True
    assert watched.watch.examine({7: RUNNING}) and not watched.watch.resized
    watched.away, watched.resized, watched.now = False, True, LOOK_EVERY_S
    assert watched.watch.examine({7: RUNNING}) and not watched.watch.examine({7: RUNNING})
    (record,) = caplog.records
    assert (record.levelname, watched.watch.resized) == ("ERROR", {7}) and "job 7 began" in record.getMessage()


@pytest.mark.parametrize("state", [JobState.COMPLETED, None])
def test_a_job_that_ended_is_looked_at_for_the_last_time(state: JobState | None) -> None:
    watched = Watched()
    watched.watch.doubt(7)
    for second in (0.0, LOOK_EVERY_S):
        watched.now = second
        watched.watch.examine({7: replace(RUNNING, state=state)} if state else {})
    assert watched.asked == (1 if state else 0)


@pytest.mark.parametrize(("line", "resized"), [("   ResizeTime=2026-11-22T10:00:09\n", True), ("", False)])
def test_slurm_shows_a_resize_on_a_line_of_its_own(line: str, resized: bool) -> None:
    assert CommandTransport(lambda argv: SHOWN.format(line)).resized(7) is resized
