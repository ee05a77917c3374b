"""The bound of the store: only old entries are dropped, they are counted, and no profile rests on them."""

from contextlib import closing
from dataclasses import replace

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.profiles import store as bounded
from pilotfish.profiles.estimate import LATEST
from pilotfish.profiles.identity import signature
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.prediction.similar_jobs import traits_of
from pilotfish.profiles.store import MOST_FAILED, MOST_RUNS, Dropped, ProfileStore, drop_commands, excess_runs
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Profile, ThreadGroup


def run(demand=2.0, code=0):
    return Measurement((ThreadGroup(1, demand),), demand, demand, demand, exit_code=code, date="2026-01-02T03:04:05Z")


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    with closing(ProfileStore(tmp_path / "profiles.sqlite")) as opened:
        yield opened


def test_more_runs_are_stored_than_count():
    assert MOST_RUNS >= 2 * LATEST
    assert excess_runs([run()] * MOST_RUNS + [run(code=1)] * MOST_FAILED) == []
    failed_then_well = [run(code=1)] * (MOST_FAILED + 2) + [run()] * (MOST_RUNS + 1)
    assert excess_runs(failed_then_well) == [0, 1, MOST_FAILED + 2]


def test_failed_runs_do_not_displace_successful_ones(store, monkeypatch):
    monkeypatch.setattr(bounded, "MOST_RUNS", 3)
    monkeypatch.setattr(bounded, "MOST_FAILED", 2)
    for demand in (1.0, 2.0, 3.0, 4.0):
        store.record("job", run(demand))
    for _ in range(5):
        store.record("job", run(9.0, code=1))
    assert [one.cpu_s for one in store.history("job")] == [2.0, 3.0, 4.0, 9.0, 9.0]
    assert store.get("job").groups[0].demand == 3.0
    assert store.dropped() == [Dropped("runs", 4, "2026-01-02")]


def test_the_longest_unused_commands_are_dropped_and_named_profiles_stay(store):
    for name in ("cmd: old", "job: old, 1 core", "named", "cmd: given", "cmd: new", "cmd: newer"):
        store.record(name, run())
    store.put(Profile((ThreadGroup(1, 1.0),), name="cmd: given"))
    with store._file.writing() as connection:
        drop_commands(connection, "2026-02-03", most=2)
    assert store.own_names() == ["cmd: given", "cmd: new", "cmd: newer", "named"]
    assert store.history("cmd: old") == [] and len(store.history("named")) == 1
    assert store.dropped() == [Dropped("commands", 3, "2026-02-03")]


def test_commands_are_checked_every_so_many_runs(store, monkeypatch):
    monkeypatch.setattr("pilotfish.profiles.store.CHECK_EVERY", 5)
    monkeypatch.setattr(bounded, "MOST_COMMANDS", 3)
    monkeypatch.setattr(drop_commands, "__defaults__", (3,))
    for i in range(10):
        store.record(f"cmd: c{i}", run())
    assert store.own_names() == ["cmd: c7", "cmd: c8", "cmd: c9"]


def test_dropped_runs_are_reported(store, monkeypatch, capsys):
    monkeypatch.setattr(bounded, "MOST_RUNS", 2)
    for _ in range(5):
        store.record("job", run())
    assert main(["profile", "list"]) == 0
    assert "3 runs have been dropped" in capsys.readouterr().err


def owned(user, demand=2.0):
    return replace(run(demand), owner=user)


def test_the_commands_of_the_user_with_the_most_are_dropped_first(store):
    for number in range(5):
        store.record(f"cmd: ada {number}", owned(1))
    for number in range(30):
        store.record(f"cmd: eve {number}", owned(2))
        store.record(f"job: eve{number} of lab/2, 1 core", run())
    with store._file.writing() as connection:
        drop_commands(connection, "2026-02-03", most=20)
    kept = store.own_names()
    assert len(kept) == 20 and [name for name in kept if "ada" in name] == [f"cmd: ada {n}" for n in range(5)]
    assert "cmd: eve 29" in kept and "cmd: eve 0" not in kept and "job: eve29 of lab/2, 1 core" in kept


def test_jobs_of_one_user_do_not_displace_the_predictions_of_others_after_a_restart(store, monkeypatch):
    monkeypatch.setattr("pilotfish.profiles.prediction.similar_jobs.MOST", 20)
    job = Job("1", DEFAULT_PROFILE, known_as="sim of lab/ada", traits=(("user", "ada"), ("executable", "sim")))
    store.record_all([(signature(job), replace(run(7.0), traits=traits_of(job, float(i)))) for i in range(6)])
    eve = replace(job, traits=(("user", "eve"), ("executable", "x")))
    store.record_all([(f"job: x{i} of lab/eve, 1 core", replace(run(), traits=traits_of(eve, 9.0))) for i in range(60)])
    with closing(ProfileStore(store.path)) as again:
        assert again.similar(job).isolated_time == pytest.approx(7.0)
