"""The oracle: when it asks its twin, what it says meanwhile, and what keeps it from asking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from pilotfish.adapters.base import Adapter
from pilotfish.daemon.oracle.queue_oracle import EASY, OracleState
from pilotfish.daemon.oracle.twin_forecasts import forecast_site
from pilotfish.daemon.oracle.twin_messages import TwinAnswer, TwinQuestion
from pilotfish.daemon.oracle.twin_oracle import AGAIN_S, BY, LEAST_S, LONGEST_S, SHARE, TwinOracle
from pilotfish.daemon.oracle.twin_process import TwinProcess
from pilotfish.formats.site.site_texts import SiteTexts
from pilotfish.simulate.errors import PilotfishError
from pilotfish.simulate.model.observed_queue import ObservedJob, ObservedQueue
from pilotfish.simulate.model.snapshot import JobState
from pilotfish.simulate.replay.queue_forecast import ExpectedRun
from tests.support.clock import Clock
from tests.support.slurm_queue_lines import RUNNING, SUBMIT, WAITING, line, present_texts

NOW = SUBMIT + 4200.0
ALL = {**RUNNING, "nodes": "n[1-4]", "count": "4", "cpus": "32", "limit": "01:00:00", "shared": "NO"}
TEXTS = present_texts(line(1, ALL), line(2, {**WAITING, "shared": "NO"}))
RUN = ExpectedRun(1200.0, 1190.0, 1210.0)


class Shown(Adapter):
    """A resource manager that shows its site, and counts how often."""

    name = "slurm"

    def __init__(self, site: SiteTexts | None) -> None:
        self.shown, self.looks = site, 0

    def site(self) -> SiteTexts | None:
        self.looks += 1
        return self.shown


class Here(TwinProcess):
    """Answers in this process, when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.questions, self.cpu_s, self.fails, self.is_slow = list[TwinQuestion](), 0.0, False, False

    @property
    def is_busy(self) -> bool:
        return bool(self.questions) and not self.has_taken

    def ask(self, question: TwinQuestion) -> None:
        self.questions.append(question)
        self.has_taken = False

    def take(self) -> TwinAnswer | None:
        if self.is_slow:
            return None
        self.has_taken = True
        if self.fails:
            raise PilotfishError("its process was lost")
        return replace(forecast_site(self.questions[-1]), cpu_s=self.cpu_s)


@dataclass
class Played:
    """An oracle, and the queue that it is shown: one job runs, one waits."""

    adapter: Shown
    process: Here
    clock: Clock
    oracle: TwinOracle

    @classmethod
    def of(cls, site: SiteTexts | None = SiteTexts(TEXTS, time=NOW)) -> Played:
        adapter, process, clock = Shown(site), Here(), Clock()  # type: ignore[abstract]  # no other method is called
        return cls(adapter, process, clock, TwinOracle(adapter, clock, process))

    def queue(self, seconds: int = 0, jobs: int = 2) -> ObservedQueue:
        runs = ObservedJob("slurm/1", JobState.RUNNING, owner=5, start_time=NOW - 600.0)
        waits = [ObservedJob(f"slurm/{number}", JobState.PENDING, owner=5) for number in range(2, jobs + 1)]
        return ObservedQueue(NOW + seconds, [runs, *waits], {})

    def look(self, expected: Callable[[ObservedJob], ExpectedRun | None] = lambda job: RUN, **queue: int) -> bool:
        """See the queue, and go on until an answer has come; return whether there was news."""
        queue_now = self.queue(**queue)
        self.oracle.note_queue(queue_now)
        news = False
        for _ in range(2):
            news = self.oracle.proceed(queue_now, expected, lambda job: None) or news
        return news


def test_it_asks_about_a_queue_and_says_what_the_rules_do() -> None:
    played = Played.of()
    assert played.oracle.forecasts(played.queue()) == {} and played.oracle.state.by == EASY
    assert played.look()
    (forecast,) = played.oracle.forecasts(played.queue()).values()
    assert forecast.start_time is not None and 590.0 <= forecast.start_time - NOW <= 670.0
    assert played.oracle.state == OracleState(BY, "", played.oracle.state.unfollowed)


def test_a_new_job_is_not_known_and_a_start_that_is_overdue_is_now() -> None:
    played = Played.of()
    played.look()
    assert played.oracle.forecasts(played.queue(jobs=3)).keys() == {"slurm/2"}
    late = played.oracle.forecasts(played.queue(seconds=1000))["slurm/2"]
    assert late.start_time == NOW + 1000.0 and late.start_within[0] == NOW + 1000.0 <= late.start_within[1]
    assert late.finish_time >= late.start_time + 1190.0


def test_questions_take_a_bounded_share_of_a_cpu_and_none_is_asked_while_nothing_waits() -> None:
    played = Played.of()
    played.oracle.note_queue(ObservedQueue(NOW, played.queue().jobs[:1], {}))
    played.oracle.proceed(played.queue(), lambda job: RUN, lambda job: None)
    assert played.adapter.looks == 0, "nothing waits"
    played.process.cpu_s = 3.0
    played.look()
    played.clock.now += 3.0 / SHARE - 1.0
    assert not played.look() and len(played.process.questions) == 1
    played.clock.now += 1.0
    assert played.look() and len(played.process.questions) == 2
    played.process.cpu_s = 0.0
    played.clock.now += 3.0 / SHARE
    played.look()
    played.clock.now += LEAST_S
    played.process.is_slow = True
    assert not played.look() and played.oracle.is_busy, "it goes on while the process thinks"
    assert played.oracle.forecasts(played.queue()), "the last answer still holds"


def test_an_answer_that_is_too_old_is_none() -> None:
    played = Played.of()
    played.look()
    played.clock.now += LONGEST_S + 1.0
    assert played.oracle.forecasts(played.queue()) == {} and played.oracle.state.by == EASY


@pytest.mark.parametrize(
    ("site", "runs", "why"),
    [
        (SiteTexts(why_not="adapter.options.twin is false"), RUN, "twin is false"),
        (SiteTexts(TEXTS, time=NOW), None, "run times of 2 of 2"),
        (SiteTexts(TEXTS, time=NOW), replace(RUN, guess=True), "run times of 2 of 2"),
        (SiteTexts({**TEXTS, "scontrol_job.txt": ""}, time=NOW), RUN, "PrivateData"),
        (SiteTexts({**TEXTS, "scontrol_node.txt": ""}, time=NOW), RUN, "nodes"),
    ],
)
def test_what_keeps_it_from_forecasting_is_said(site: SiteTexts, runs: ExpectedRun | None, why: str) -> None:
    played = Played.of(site)
    assert played.look(lambda job: runs)
    assert why in played.oracle.state.why_not and played.oracle.state.by == EASY
    assert played.oracle.forecasts(played.queue()) == {}


def test_the_log_has_a_reason_once_however_its_numbers_change(caplog: pytest.LogCaptureFixture) -> None:
    played = Played.of()
    with caplog.at_level("INFO", "pilotfish"):
        for jobs in (2, 3, 4):
            played.oracle.note_queue(played.queue(jobs=jobs))
            assert played.oracle.proceed(played.queue(jobs=jobs), lambda job: None, lambda job: None)
            assert f"{jobs} of {jobs}" in played.oracle.state.why_not
        played.look()
    logged = [record.getMessage().partition(" (")[0] for record in caplog.records]
    assert logged == [
        f"starts are forecast by {by}" for by in ("a replay under EASY", "the resource manager's own rules")
    ]


def test_a_process_that_fails_is_tried_again_later() -> None:
    played = Played.of()
    played.process.fails = True
    assert played.look() and "lost" in played.oracle.state.why_not
    played.process.fails = False
    played.clock.now += AGAIN_S - 1.0
    assert not played.look()
    played.clock.now += 1.0
    assert played.look() and played.oracle.state.by == BY


def test_a_resource_manager_without_known_rules_is_asked_once() -> None:
    played = Played.of(None)
    assert not played.look() and not played.look() and played.adapter.looks == 1
    assert played.oracle.state == OracleState() and not played.oracle.is_busy


def test_jobs_that_are_handed_over_begin_as_planned() -> None:
    played = Played.of()
    played.oracle.note_queue(played.queue())
    plans = {"slurm/2": NOW + 900.0}
    played.oracle.proceed(played.queue(), lambda job: RUN, lambda job: plans.get(job.key))
    assert played.process.questions[0].begins == {"2": NOW + 900.0}
