"""Drifted profiles are learned again from their latest runs, and the guard overrules models that miss."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.daemon.apply import Live
from pilotfish.daemon.assembly import Deciding, assemble
from pilotfish.daemon.learning import profile_drift
from pilotfish.daemon.learning.guard_rail import FORGOTTEN, Guard
from pilotfish.daemon.learning.node_counters import NodeCounters
from pilotfish.daemon.learning.profile_drift import Drifted, ProfileDrift, with_renewed_profile
from pilotfish.daemon.learning.profile_learning import DriftRenewal, LearnedProfiles
from pilotfish.daemon.planning.problem import Options
from pilotfish.daemon.report import metrics as error_metrics
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.forecasts import Forecaster
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.queue import Submission
from pilotfish.profiles.identity import signature
from pilotfish.profiles.measure.neighbour_counters import NeighbourCounters
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.capacity import EmptyNodes
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Profile, Provenance, ThreadGroup, Workflow

SITE = Cluster("lab", (Node("n1", NodeType("t", 2, 1e10, 1e12)),))
WINDOW = 3
JOB = Job("j", DEFAULT_PROFILE)
ALIGN = Profile((ThreadGroup(1, 10.0, bandwidth=1e9),), name="align", provenance=Provenance("measured", runs=4))


def thrice(job: Job) -> Profile:
    return Profile((ThreadGroup(1, 30.0),))


class World:
    """A daemon's cycle on the simulated adapter, with learned profiles."""

    def __init__(self, folder: Path, truth: Callable[[Job], Profile]) -> None:
        self.adapter, self.journal, self.metrics = SimulatedAdapter(SITE, truth=truth), Journal(folder / "j"), Metrics()
        self.store = ProfileStore(folder / "profiles.sqlite")
        self.profiles = LearnedProfiles(self.store.path)
        guard = Guard(bound=0.5, window=20, fallback="slf")
        drift = ProfileDrift(bound=0.25, window=WINDOW)
        self.cycle = assemble(
            self.adapter, Live(self.adapter), self.journal, self.metrics, Deciding(guard, Options(policy="mom")),
            lambda: self.adapter.time, profiles=self.profiles, drift=drift, observers=lambda tracker: [
                NodeCounters(NeighbourCounters(()), self.profiles, tracker.queue),
                DriftRenewal(drift, self.profiles, self.metrics, tracker.queue, tracker.renew_profile),
            ],
        )  # fmt: skip

    def run(self, *jobs: Job) -> Submission:
        submission = Submission("w.1", self.profiles.with_profiles(Workflow("w", jobs)), self.adapter.time)
        self.journal.submit(submission, None)
        self.cycle.tracker.add(submission)
        while not submission.state.ended:
            self.cycle.run()
            if not self.cycle.trigger.changed and not submission.state.ended:
                assert self.adapter.wait(1e6)
        return submission

    def errors(self) -> list[float]:
        return [round(job.error, 5) for job in self.journal.forecasts(100)]


def chain(profile: Profile, count: int) -> list[Job]:
    """Return jobs that run one after another."""
    return [Job(f"j{i}", profile, after=(f"j{i - 1}",) if i else (), command=("align", "x")) for i in range(count)]


def test_waiting_jobs_are_planned_with_the_renewed_profile(tmp_path, caplog):
    world = World(tmp_path, thrice)
    world.store.put(ALIGN)
    done = world.run(*chain(ALIGN, 6))
    assert world.errors() == [3.0] * WINDOW + [1.0] * 3
    found = world.store.get("align")
    assert found.groups[0].demand == 30.0 and found.provenance.runs == WINDOW
    assert found.groups[0].bandwidth == 1e9, "a value that no run measured stays"
    assert done.entries["j5"].job.profile == found
    assert "profile align was off by 3.0x in the median of its last 3 jobs: learned again from 3 runs" in caplog.text
    assert any(record["kind"] == "relearned" for record in world.journal.records("w.1/j5"))
    assert world.metrics.registry.get_sample_value("pilotfish_profiles_relearned_total") == 1


OTHER = 4242


def owned(jobs: list[Job], owner: int | None) -> list[Job]:
    return [replace(job, owner=owner) for job in jobs]


def test_runs_of_another_user_never_replace_a_named_profile(tmp_path):
    """The other user's next jobs are planned with what they showed, everybody else's as before."""
    world = World(tmp_path, thrice)
    world.store.put(ALIGN)
    done = world.run(*owned(chain(ALIGN, 6), OTHER))
    assert world.store.get("align") == ALIGN and world.store.history("align") == []
    apart = world.store.get("align of uid 4242")
    assert apart.groups[0].demand == 30.0 and apart.groups[0].bandwidth == 1e9
    assert done.entries["j5"].job.profile == apart and world.errors()[-1] == 1.0
    assert (world.store.owner_of("align"), world.store.owner_of(apart.name)) == (os.geteuid(), OTHER)
    asked = Job("x", replace(DEFAULT_PROFILE, name="align", provenance=Provenance("default")))
    planned = {uid: world.profiles.with_profile(replace(asked, owner=uid)).profile for uid in (OTHER, 7, os.geteuid())}
    assert planned == {OTHER: apart, 7: ALIGN, os.geteuid(): ALIGN}


def test_the_owners_own_jobs_change_a_named_profile(tmp_path):
    world = World(tmp_path, thrice)
    world.store.put(ALIGN)
    world.run(*owned(chain(ALIGN, 6), os.geteuid()))
    assert world.store.get("align").groups[0].demand == 30.0


def test_jobs_that_borrow_a_profile_do_not_trip_the_guard(tmp_path):
    world = World(tmp_path, thrice)
    world.store.put(ALIGN)
    world.run(*owned(chain(ALIGN, 2), OTHER))
    assert world.errors() and world.journal.last_errors(100) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from([OTHER, 7, 123456, 2**31]), st.sampled_from(["align", "align of uid 7", "cmd: sim", "x"])
        ),
        max_size=6,
    )
)
@settings(max_examples=20, deadline=None)
def test_whatever_others_name_nobody_elses_profile_changes(jobs):
    """Of the profiles in the store, a user's runs change only those with the user's uid."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), thrice)
        for name in ("align", "align of uid 7", "cmd: sim", "job: a of lab/7, 1 core"):
            world.store.put(replace(ALIGN, name=name))
        before = {name: world.store.get(name) for name in world.store.own_names()}
        for number, (owner, name) in enumerate(jobs):
            measured = replace(ALIGN, name=name)
            world.run(*owned(chain(measured, 4), owner)) if number == 0 else None
            job = replace(JOB, profile=measured, owner=owner)
            stored = world.profiles.stored_as(job)
            assert stored == "" or stored.endswith(f" of uid {owner}")
            run = Measurement((ThreadGroup(1, 1.0),), 1.0, 1.0, 1.0, method="rusage")
            world.profiles.store_runs([(stored, run)] * 5 if stored else [])
            world.profiles.relearn({world.profiles.learned_as(job): Drifted(job, 9.0)}, 3)
        uids = {owner for owner, _ in jobs}
        for name, profile in before.items():
            assert world.store.get(name) == profile or (name == "align of uid 7" and 7 in uids)
        assert len(world.store.own_names()) <= len(before) + 2 * len(uids)


def test_a_given_profile_that_drifts_stays_and_is_logged(tmp_path, caplog):
    world = World(tmp_path, thrice)
    world.run(*chain(replace(ALIGN, provenance=Provenance()), 7))
    assert set(world.errors()) == {3.0}
    assert caplog.text.count("it was not measured, so it stays") == 2
    assert world.store.get("align") is None


def test_runs_of_a_command_age_when_the_command_changes(tmp_path):
    world = World(tmp_path, thrice)
    jobs = chain(DEFAULT_PROFILE, 5)
    name = signature(jobs[0])
    for _ in range(20):
        world.store.record(name, Measurement((ThreadGroup(1, 10.0),), 10.0, 10.0, 10.0, method="rusage"))
    world.run(*jobs)
    assert world.errors()[-2:] == [1.0, 1.0]
    assert [bool(run.aged) for run in world.store.history(name)] == [True] * 20 + [False] * 5


def test_a_profile_without_drift_stays(tmp_path):
    world = World(tmp_path, lambda job: job.profile)
    world.store.put(ALIGN)
    world.run(*chain(ALIGN, 6))
    assert world.store.get("align") == ALIGN and world.store.history("align") == []


def test_a_store_that_cannot_be_used_costs_a_warning(tmp_path, caplog):
    (tmp_path / "profiles.sqlite").write_text("no store, and long enough to be taken for something" * 20)
    done = World(tmp_path, thrice).run(*chain(ALIGN, 4))
    assert done.exit_code == 0 and "the profile store cannot be used" in caplog.text


def test_runs_age_once_and_stay_in_the_history(tmp_path):
    store = ProfileStore(tmp_path / "s")
    for demand in (1.0, 1.0, 5.0, 6.0):
        store.record("x", Measurement((ThreadGroup(1, demand),), demand, demand, demand))
    assert store.relearn("x", 2, "2026-01-01").groups[0].demand == 5.5
    assert store.relearn("x", 1, "2026-02-02").groups[0].demand == 6.0
    assert [run.aged for run in store.history("x")] == ["2026-01-01", "2026-01-01", "2026-02-02", ""]
    assert store.statistics("x").used == 1 and store.relearn("unheard of", 3, "2026-01-01") is None


@given(st.lists(st.floats(0.0, 2.0), max_size=60), st.integers(1, 5))
def test_drift_needs_a_full_window_of_errors_over_the_bound(errors, window):
    drift, since = ProfileDrift(bound=0.5, window=window), []
    for error in errors:
        since.append(error)
        if drift.add("p", JOB, error):
            assert len(since) >= window and sum(one > 0.5 for one in since[-window:]) >= window / 2
            since = []


def test_the_number_of_watched_profiles_is_bounded(monkeypatch):
    monkeypatch.setattr(profile_drift, "MOST_PROFILES", 2)
    drift = ProfileDrift(bound=0.5, window=2)
    for name in ("a", "b", "c"):
        assert not drift.add(name, JOB, 1.0)
    assert not drift.add("a", JOB, 1.0) and drift.add("c", JOB, 1.0)
    assert {name: drifted.median for name, drifted in drift.take_drifted().items()} == {"c": 1.0}
    assert drift.take_drifted() == {}


@pytest.mark.parametrize(
    ("threads", "memory", "fits"), [(1, 0.0, True), (2, 0.0, True), (3, 0.0, False), (1, 1e12, False)]
)
def test_a_waiting_job_keeps_its_cores_and_never_gets_stuck(threads, memory, fits):
    job = Job("a", Profile((ThreadGroup(2, 9.0),)))
    found = with_renewed_profile(job, Profile((ThreadGroup(threads, 5.0),), memory=memory), EmptyNodes(SITE))
    assert (found is not None) is fits and (not fits or found.profile.threads == 2)


def test_each_forecaster_is_judged_by_its_own_jobs():
    guard = Guard(bound=0.5, window=2, fallback="slf")
    mine, other = Forecaster("max-min", "measured"), Forecaster("none", "measured")
    for error in (0.9, 0.1, 0.1):
        assert not guard.add(error, mine) and not guard.add(0.0, other)
    assert not guard.tripped
    guard.add(0.9, mine)
    assert guard.add(0.9, mine) and (guard.worst, guard.median(mine)) == (mine, 0.9)
    for _ in range(FORGOTTEN * guard.window - 1):
        assert not guard.add(0.0, other)
    assert guard.add(0.0, other) and not guard.tripped, "a model without jobs is forgotten"


def labels(metrics):
    """Return the number of errors by the label of their profile."""
    return {
        sample.labels["profile"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "pilotfish_profile_forecast_error_log_count"
    }


def test_few_profiles_have_a_label_and_none_shows_arguments(monkeypatch):
    monkeypatch.setattr(error_metrics, "MOST_PROFILES", 3)
    metrics = Metrics()
    names = ("align", "cmd: login --password=secret", "job: secret of secret/5, 1 core", "third", "fourth", "align")
    for name in names:
        metrics.errors.observe(Forecaster("max-min", "measured"), name, 0.5)
    found = labels(metrics)
    assert len(found) == 4 and (found["align"], found["others"]) == (2, 2)
    assert not any("secret" in label for label in found)
    name = "pilotfish_model_forecast_error_factor_count"
    assert (
        metrics.registry.get_sample_value(name, {"model": "max-min", "source": "measured", "direction": "shorter"}) == 6
    )


@given(st.lists(st.tuples(st.sampled_from(["cmd: ", "job: ", ""]), st.text(min_size=1), st.sampled_from(" =/:\n#"))))
@settings(max_examples=50, deadline=None)
def test_no_label_contains_what_a_user_wrote_or_a_checksum_of_it(texts):
    """Two daemons that meet other commands show the same labels: a label says nothing of a command."""
    one, other = Metrics(), Metrics()
    for number, (kind, text, sign) in enumerate(texts):
        one.errors.observe(Forecaster("max-min", "measured"), f"{kind}t{text}{sign}{number}", 0.5)  # "job: " is no text
        other.errors.observe(Forecaster("max-min", "measured"), f"{kind}tx{sign}{number}", 0.5)
    assert labels(one) == labels(other) and len(labels(one)) <= error_metrics.MOST_PROFILES + 1
