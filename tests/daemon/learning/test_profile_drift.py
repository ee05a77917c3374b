"""Profiles that have come to miss are learned anew from their latest runs, and models that miss lose the say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.daemon import error_metrics, relearning
from pilotfish.daemon.apply import Live
from pilotfish.daemon.cycle import Cycle
from pilotfish.daemon.exporter import Metrics
from pilotfish.daemon.guard import FORGOTTEN, Guard, Judged
from pilotfish.daemon.journal import Journal
from pilotfish.daemon.memory import Memory
from pilotfish.daemon.planning import Options
from pilotfish.daemon.queue import Submission
from pilotfish.daemon.relearning import Relearning, renewed
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.signature import signature
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.job import DEFAULT_PROFILE, Job, Profile, Provenance, ThreadGroup, Workflow
from pilotfish.simulate.platform import Cluster, Node, NodeType

SITE = Cluster("lab", (Node("n1", NodeType("t", 2, 1e10, 1e12)),))
WINDOW = 3
ALIGN = Profile((ThreadGroup(1, 10.0, bandwidth=1e9),), name="align", provenance=Provenance("measured", runs=4))


def thrice(job: Job) -> Profile:
    return Profile((ThreadGroup(1, 30.0),))


class World:
    """A daemon's cycle on the simulated adapter, with a memory."""

    def __init__(self, folder: Path, truth: Callable[[Job], Profile]) -> None:
        self.adapter, self.journal, self.metrics = SimulatedAdapter(SITE, truth=truth), Journal(folder / "j"), Metrics()
        self.store = ProfileStore(folder / "profiles.sqlite")
        self.memory = Memory(self.store.path)
        guard = Guard(bound=0.5, window=20, fallback="slf")
        self.cycle = Cycle(
            self.adapter, Live(self.adapter), self.journal, self.metrics, guard, Options(policy="mom"),
            lambda: self.adapter.time,
        )  # fmt: skip
        self.cycle.learn = self.memory.keep
        self.cycle.relearn = partial(self.memory.relearn, latest=WINDOW)
        self.cycle.story.relearning = Relearning(bound=0.25, window=WINDOW)

    def run(self, *jobs: Job) -> Submission:
        submission = Submission("w.1", self.memory.recall(Workflow("w", jobs)), self.adapter.time)
        self.journal.submit(submission, None)
        self.cycle.take(submission)
        while not submission.state.ended:
            self.cycle.run()
            if not self.cycle.changed and not submission.state.ended:
                assert self.adapter.wait(1e6)
        return submission

    def errors(self) -> list[float]:
        return [round(job.error, 6) for job in self.journal.foretold(100)]


def chain(profile: Profile, count: int) -> list[Job]:
    """Jobs one after another."""
    return [
        Job(f"j{i}", profile, after=(f"j{i - 1}",) if i else (), command=("align", "x")) for i in range(count)
    ]


def test_a_measured_profile_is_learned_anew_and_what_waits_is_planned_with_that(tmp_path, caplog):
    world = World(tmp_path, thrice)
    world.store.put(ALIGN)
    done = world.run(*chain(ALIGN, 6))
    assert world.errors() == [pytest.approx(2 / 3, abs=1e-5)] * WINDOW + [0.0] * 3
    found = world.store.get("align")
    assert found.groups[0].demand == 30.0 and found.provenance.runs == WINDOW
    assert found.groups[0].bandwidth == 1e9, "what no run measured stays"
    assert done.entries["j5"].job.profile == found
    assert "profile align missed by 67 % in the median of its last 3 jobs: learned anew from 3 runs" in caplog.text
    assert any(record["kind"] == "relearned" for record in world.journal.story("w.1/j5"))
    assert world.metrics.registry.get_sample_value("pilotfish_profiles_relearned_total") == 1


def test_a_profile_that_a_user_gave_stays_and_is_named(tmp_path, caplog):
    world = World(tmp_path, thrice)
    world.run(*chain(replace(ALIGN, provenance=Provenance()), 7))
    assert set(world.errors()) == {round(2 / 3, 6)}
    assert caplog.text.count("it was not measured, and stays") == 2
    assert world.store.get("align") is None


def test_what_was_learned_of_a_command_ages_when_the_command_changes(tmp_path):
    world = World(tmp_path, thrice)
    jobs = chain(DEFAULT_PROFILE, 5)
    name = signature(jobs[0])
    for _ in range(20):
        world.store.record(name, Measurement((ThreadGroup(1, 10.0),), 10.0, 10.0, 10.0, method="rusage"))
    world.run(*jobs)
    assert world.errors()[-2:] == [0.0, 0.0]
    assert [bool(run.aged) for run in world.store.history(name)] == [True] * 20 + [False] * 5


def test_a_good_profile_is_left_alone(tmp_path):
    world = World(tmp_path, lambda job: job.profile)
    world.store.put(ALIGN)
    world.run(*chain(ALIGN, 6))
    assert world.store.get("align") == ALIGN and world.store.history("align") == []


def test_a_store_that_cannot_be_used_costs_a_warning(tmp_path, caplog):
    (tmp_path / "profiles.sqlite").write_text("no store, and long enough to be taken for something" * 20)
    done = World(tmp_path, thrice).run(*chain(ALIGN, 4))
    assert done.exit_code == 0 and "the profile store cannot be used" in caplog.text


def test_runs_age_once_and_stay_on_record(tmp_path):
    store = ProfileStore(tmp_path / "s")
    for demand in (1.0, 1.0, 5.0, 6.0):
        store.record("x", Measurement((ThreadGroup(1, demand),), demand, demand, demand))
    assert store.relearn("x", 2, "2026-01-01").groups[0].demand == 5.5
    assert store.relearn("x", 1, "2026-02-02").groups[0].demand == 6.0
    assert [run.aged for run in store.history("x")] == ["2026-01-01", "2026-01-01", "2026-02-02", ""]
    assert store.statistics("x").used == 1 and store.relearn("unheard of", 3, "2026-01-01") is None


@given(st.lists(st.floats(0.0, 2.0), max_size=60), st.integers(1, 5))
def test_it_never_asks_before_a_window_of_news_and_never_within_the_bound(errors, window):
    watch, since = Relearning(bound=0.5, window=window), []
    for error in errors:
        since.append(error)
        if watch.add("p", error) is not None:
            assert len(since) >= window and sum(one > 0.5 for one in since[-window:]) >= window / 2
            since = []


def test_profiles_are_forgotten_not_hoarded(monkeypatch):
    monkeypatch.setattr(relearning, "MOST", 2)
    watch = Relearning(bound=0.5, window=2)
    for name in ("a", "b", "c"):
        assert watch.add(name, 1.0) is None
    assert watch.add("a", 1.0) is None and watch.add("c", 1.0) == 1.0


@pytest.mark.parametrize(
    ("threads", "memory", "fits"), [(1, 0.0, True), (2, 0.0, True), (3, 0.0, False), (1, 1e12, False)]
)
def test_a_waiting_job_keeps_its_cores_and_never_gets_stuck(threads, memory, fits):
    job = Job("a", Profile((ThreadGroup(2, 9.0),)))
    found = renewed(job, Profile((ThreadGroup(threads, 5.0),), memory=memory), SITE)
    assert (found is not None) is fits and (not fits or found.profile.threads == 2)


def test_each_model_is_judged_by_its_own_jobs():
    guard = Guard(bound=0.5, window=2, fallback="slf")
    mine, other = Judged("max-min", "measured"), Judged("none", "measured")
    for error in (0.9, 0.1, 0.1):
        assert not guard.add(error, mine) and not guard.add(0.0, other)
    assert not guard.tripped
    guard.add(0.9, mine)
    assert guard.add(0.9, mine) and (guard.worst, guard.median(mine)) == (mine, 0.9)
    for _ in range(FORGOTTEN * guard.window - 1):
        assert not guard.add(0.0, other)
    assert guard.add(0.0, other) and not guard.tripped, "a model that nobody asks any more is forgotten"


def test_few_profiles_have_a_label_and_none_has_the_words_of_a_command(monkeypatch):
    monkeypatch.setattr(error_metrics, "MOST", 3)
    metrics = Metrics()
    names = ("align", "cmd: login --password=secret", "job: secret of secret/5, 1 core", "third", "fourth", "align")
    for name in names:
        metrics.errors.observe(Judged("max-min", "measured"), name, 0.5)
    found = {
        sample.labels["profile"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "pilotfish_profile_forecast_error_ratio_count"
    }
    assert len(found) == 4 and (found["align"], found["others"]) == (2, 2)
    assert not any("secret" in label for label in found)
    name = "pilotfish_model_forecast_error_ratio_count"
    assert metrics.registry.get_sample_value(name, {"model": "max-min", "source": "measured"}) == 6
