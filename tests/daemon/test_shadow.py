"""Shadow: the same decisions as live, nothing written, nothing lost on the way from one to the other."""

from __future__ import annotations

import dataclasses

import pytest

from pilotfish.adapters.base import AdapterError, Capabilities
from pilotfish.daemon.apply import Live, Recording
from pilotfish.daemon.run_modes import RunMode
from pilotfish.daemon.state.audit import AuditQuestion
from pilotfish.simulate.model.plan import Place
from pilotfish.simulate.model.snapshot import JobState
from tests.daemon.conftest import Bench, Offering, first_fit, make_cluster, make_job
from tests.support import effort


class Shadowed(Offering):
    """A manager with a queue of its own, which starts a job itself once it has waited for a while."""

    waits_s = 3.0

    def apply(self, action) -> None:
        raise AssertionError(f"shadow writes {action}")

    def advance(self, seconds: float) -> None:
        for key, view in self.views.items():
            busy = {node for other in self.views.values() if other.state is JobState.RUNNING for node in other.nodes}
            free = [node.name for node in self.cluster.nodes if node.name not in busy]
            if view.state is JobState.PENDING and self.time - view.submit_time >= self.waits_s and free:
                self.views[key] = dataclasses.replace(
                    view, state=JobState.RUNNING, offered=False, restartable=False, nodes=(free[-1],),
                    start_time=self.time,
                )  # fmt: skip
        super().advance(seconds)


def shadow(bench: Bench, wrap=lambda thing: thing) -> None:
    bench.start(wrap, applier=Recording(lambda line: None, mode=RunMode.SHADOW))


@pytest.fixture
def shadowed(tmp_path) -> Bench:
    manager = Shadowed(make_cluster(2, 2))
    manager.capabilities = Capabilities(events=False, offers=True)
    bench = Bench(tmp_path / "journal.sqlite", manager)
    bench.journal.keep_handed_over("rjms", manager.time)
    bench.kill()
    shadow(bench)
    return bench


def rows(bench, query: str) -> list:
    return bench.journal._db.execute(query).fetchall()


def test_it_writes_nothing_and_says_what_it_would_have_done(shadowed) -> None:
    for name in ("1", "2", "3"):
        shadowed.manager.offer(make_job(name))
    shadowed.run(8)
    assert shadowed.cycle.mode == "shadow" and shadowed.value("mode", mode="shadow") == 1.0
    assert rows(shadowed, "SELECT count(*) FROM intents") == [(0,)]
    would = [line for line in shadowed.journal.audited(AuditQuestion()) if line["kind"] == "would"]
    assert {line["target"] for line in would} == {"rjms/1", "rjms/2", "rjms/3"}
    story = [(record["kind"], record["text"]) for record in shadowed.journal.records("rjms/1")]
    assert ("would", "would have started rjms/1 on n1") in story and ("started", "runs on n2") in story


def test_it_decides_what_live_decides_on_the_same_snapshot(tmp_path) -> None:
    decided = []
    for applier in (None, Recording(lambda line: None, mode=RunMode.SHADOW)):
        manager = Offering(make_cluster(2, 2))
        manager.capabilities = Capabilities(events=False, offers=True)
        bench = Bench(tmp_path / f"{applier is None}.sqlite", manager)
        bench.kill()
        bench.start(applier=applier)
        bench.journal.keep_handed_over("rjms", manager.time)
        bench.restart()
        bench.kill()
        bench.start(applier=applier)
        for name in ("1", "2", "3"):
            manager.offer(make_job(name, threads=2))
        decided.append([applied.action for applied in bench.cycle.run().applied])
        bench.kill()
    assert decided[0] == decided[1] and len(decided[0]) == 2 and all(isinstance(one, Place) for one in decided[0])


def test_jobs_are_forecast_where_they_really_run(shadowed) -> None:
    """The manager starts the job on another node than ours: its forecast is of the run that happened."""
    shadowed.manager.offer(make_job("1", seconds=20.0))
    shadowed.run(6)
    entry = shadowed.cycle.tracker.queue.find("rjms/1")
    assert entry.nodes == ("n2",) and entry.forecast.start_time == entry.start_time == 1003.0
    assert entry.forecast.run_time == pytest.approx(20.0, abs=2.0) and entry.promised is None
    (chosen,) = [one for one in shadowed.journal.records("rjms/1") if "the resource manager chose" in one["text"]]
    assert chosen["data"]["nodes"] == ["n2"] and chosen["data"]["policy"] == ""
    shadowed.run(25)
    (outcome,) = shadowed.journal.forecasts(10)
    assert (outcome.node, outcome.actual_s) == ("n2", 20.0) and outcome.forecast_s == pytest.approx(20.0, abs=2.0)
    assert len(shadowed.journal.last_errors(10)) == 1


def test_a_job_that_changes_plans_all_the_time_has_a_short_story(shadowed) -> None:
    shadowed.manager.waits_s = 1e9
    shadowed.manager.offer(make_job("1", seconds=20.0))

    def restless(problem, cluster, options):
        plan = first_fit(problem, cluster, options)
        node = f"n{1 + shadowed.cycle.number % 2}"
        return dataclasses.replace(plan, jobs=tuple(dataclasses.replace(job, nodes=(node,)) for job in plan.jobs))

    shadowed.kill()
    shadowed.planner = restless
    shadow(shadowed)
    for _ in range(50):
        shadowed.cycle.trigger.renew()
        shadowed.run(1)
    assert len(shadowed.journal.records("rjms/1")) <= 3
    (line,) = [line for line in shadowed.journal.audited(AuditQuestion()) if line["kind"] == "would"]
    assert line["number"] >= 49


def test_from_shadow_to_live_and_back_nothing_is_lost(shadowed) -> None:
    shadowed.manager.offer(make_job("1", seconds=20.0))
    shadowed.run(30)
    errors, outcomes = shadowed.journal.last_errors(9), shadowed.journal.forecasts(9)
    assert errors and outcomes
    shadowed.kill()
    live = Offering(make_cluster(2, 2))
    live.capabilities, live.views, live.time = (
        shadowed.manager.capabilities,
        shadowed.manager.views,
        shadowed.manager.time,
    )
    shadowed.manager, before = live, shadowed.manager
    shadowed.start()
    assert shadowed.journal.last_errors(9) == errors and shadowed.journal.forecasts(9) == outcomes
    live.offer(make_job("2", seconds=500.0))
    shadowed.run(3)
    assert shadowed.cycle.mode == "live" and live.runs["rjms/2"] == 1
    assert rows(shadowed, "SELECT key, outcome FROM intents") == [("rjms/2", "done")]
    before.views, before.time, shadowed.manager = live.views, live.time, before
    shadowed.kill()
    shadow(shadowed)
    shadowed.run(3)
    entry = shadowed.cycle.tracker.queue.find("rjms/2")
    assert entry.state is JobState.RUNNING and entry.forecast is not None
    modes = [
        line["after"]["mode"]
        for line in shadowed.journal.audited(AuditQuestion())
        if line["action"] == "start" and line["kind"] == "start"
    ]
    assert modes == ["shadow", "live", "shadow"]
    assert shadowed.journal.last_errors(9) == errors


class Killed(BaseException):
    """The daemon dies here."""


class Dying:
    """Anything, until its `at`-th call."""

    def __init__(self, thing, calls: list[int]) -> None:
        self._thing, self._calls = thing, calls

    def __getattr__(self, name):
        member = getattr(self._thing, name)
        if not callable(member) or name == "capabilities":
            return member

        def call(*arguments, **named):
            self._calls[0] -= 1
            if self._calls[0] == 0:
                raise Killed(name)
            return member(*arguments, **named)

        return call


@pytest.mark.parametrize("after", effort.some(["shadow", "live"]))
def test_killed_at_every_call_no_would_be_decision_is_an_intent(tmp_path, after) -> None:
    """What a shadow daemon has decided when it dies is never carried out, nor looked for, by the next one."""
    deaths = 0
    for at in range(1, 30):
        manager = Shadowed(make_cluster(2, 2))
        manager.capabilities, manager.waits_s = Capabilities(events=False, offers=True), 1e9
        (tmp_path / str(at)).mkdir()
        bench = Bench(tmp_path / str(at) / "journal.sqlite", manager)
        bench.journal.keep_handed_over("rjms", manager.time)
        bench.kill()
        calls = [at]
        try:
            shadow(bench, lambda thing, calls=calls: Dying(thing, calls))
            manager.offer(make_job("1", seconds=4.0)), manager.offer(make_job("2", seconds=4.0))
            bench.run(6)
        except Killed:
            deaths += 1
        bench.kill()
        if after == "live":
            live = Offering(make_cluster(2, 2))
            live.capabilities, live.views, live.time = manager.capabilities, manager.views, manager.time
            bench.manager = live
            bench.start()
            for name in ("1", "2"):
                if f"rjms/{name}" not in live.views:
                    live.offer(make_job(name, seconds=4.0))
            assert all(entry.intent is None for entry in bench.cycle.tracker.queue.entries())
            bench.run(12)
            assert live.runs == {"rjms/1": 1, "rjms/2": 1}
        else:
            shadow(bench)
            bench.run(3)
            assert rows(bench, "SELECT count(*) FROM intents") == [(0,)]
            assert all(entry.intent is None for entry in bench.cycle.tracker.queue.entries())
        bench.kill()
    assert deaths > 15


def test_an_intent_of_a_killed_live_daemon_is_settled_in_shadow(tmp_path) -> None:
    manager = Offering(make_cluster(2, 2))
    manager.capabilities = Capabilities(events=False, offers=True)
    bench = Bench(tmp_path / "journal.sqlite", manager)
    bench.journal.keep_handed_over("rjms", manager.time)
    bench.restart()
    manager.offer(make_job("1", seconds=50.0))
    manager.refuse = {"rjms/1": AdapterError("no answer", transient=True)}
    bench.cycle.run()
    assert rows(bench, "SELECT outcome FROM intents") == [(None,)]
    bench.kill()
    shadow(bench)
    bench.run(3)
    assert rows(bench, "SELECT outcome FROM intents") == [("the job did not start",)]
    assert isinstance(bench.cycle.applier, Recording) and not isinstance(bench.cycle.applier, Live)
    bench.kill()


def test_the_memory_of_decisions_is_bounded(monkeypatch) -> None:
    from pilotfish.daemon import apply

    monkeypatch.setattr(apply, "MOST_SHOWN", 10)
    shown: list[str] = []
    recording = Recording(shown.append)
    actions = [Place(f"rjms/{number}", make_job(str(number)), ("n1",)) for number in range(100)]
    for action in actions:
        recording.apply(action)
    recording.apply(actions[-1])
    assert len(recording.shown) == 10 and len(shown) == 100
