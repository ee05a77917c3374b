"""The profile store: runs refine profiles, processes share the file, and no run is lost."""

import multiprocessing
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from pilotfish.formats.documents.files import parse_document
from pilotfish.profiles import library, store_db
from pilotfish.profiles import store as store_module
from pilotfish.profiles.estimate import estimate
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.errors import ConfigError, InvalidJobError
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Profile, ThreadGroup


def run(demand=2.0, **more):
    return Measurement((ThreadGroup(1, demand, 0.9),), demand / 0.9, demand / 0.9, demand, 0.0, **more)


@pytest.fixture
def store(tmp_path):
    return ProfileStore(tmp_path / "deep" / "profiles.sqlite")


BROKEN = ["CAST(x'fe41' AS TEXT)", "'{no'", "x'00ff'", "'[1]'", "12.5"]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_damaged_run_is_left_out_and_logged_once_and_a_damaged_profile_has_a_remedy(store, broken, caplog):
    for demand in (1.0, 2.0, 3.0):
        store.record("align", run(demand))
    store.close()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
        database.execute(f"UPDATE run SET document = {broken} WHERE id = 2")
    assert [each.groups[0].service_demand for each in store.history("align")] == [1.0, 3.0] and len(store.runs()) == 2
    assert store.record("align", run(4.0)) is not None and store.relearn("align", 1, "2026-01-01") is not None
    (line,) = caplog.messages
    assert str(store.path) in line and "row 2 of the table run is left out: a run of 'align' cannot be read" in line
    store.close()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as database:
        database.execute(f"UPDATE profile SET document = {broken}")
    with pytest.raises(ConfigError, match=r"the profile 'align' cannot be read.*move it away"):
        store.get("align")


def test_reading_an_absent_store_makes_no_file(store):
    assert store.get("nothing") is None
    assert store.own_names() == []
    assert store.history("nothing") == []
    assert not store.path.exists()


def test_the_library_is_the_fallback_of_the_store(store):
    assert store("bt.C") is library.profiles()["bt.C"]
    assert "bt.C" in store.names()
    store.put(Profile((ThreadGroup(2, 5.0),), name="bt.C"))
    assert store("bt.C").threads == 2


def test_a_stored_profile_is_read_by_another_process(store):
    profile = Profile((ThreadGroup(4, 1.5, 0.7, 0.1, 2e9), ThreadGroup(1, 3.0)), name="four and one", memory=1e9)
    store.put(profile)
    assert ProfileStore(store.path).get("four and one") == profile


def test_invalid_names_are_rejected(store):
    for name in ("", " x", "a\nb", "x" * 300):
        with pytest.raises(ConfigError, match="name"):
            store.put(Profile((ThreadGroup(1, 1.0),), name=name))
        with pytest.raises(ConfigError, match="name"):
            store.record(name, run())
    assert not store.path.exists()


def test_runs_are_stored_and_refine_the_profile(store):
    for demand in (2.0, 2.1, 1.9, 20.0, 2.05):
        profile = store.record("job", run(demand))
    assert profile.groups[0].demand == pytest.approx(2.05)
    assert profile.provenance.source == "measured"
    assert profile.provenance.runs == 5
    assert [found.cpu_s for found in store.history("job")] == [2.0, 2.1, 1.9, 20.0, 2.05]
    facts = store.statistics("job")
    assert facts.used == 5
    assert facts.spread_cpu_s < 0.2


def test_record_all_equals_single_records_and_makes_each_profile_once(store, tmp_path, monkeypatch):
    runs = [(f"job {i % 2}", run(2.0 + i % 7 / 10, exit_code=int(i % 5 == 0))) for i in range(60)]
    for name, measurement in runs:
        store.record(name, measurement)
    together, made = ProfileStore(tmp_path / "together.sqlite"), []
    monkeypatch.setattr(store_module, "estimate", lambda name, *rest: made.append(name) or estimate(name, *rest))
    together.record_all(runs)
    assert made == ["job 0", "job 1"], "a cycle in which a thousand jobs of one name end has time for no more"
    for name in made:
        assert together.get(name) == store.get(name) and together.history(name) == store.history(name)


def test_a_failed_run_is_stored_without_a_profile(store):
    assert store.record("job", run(exit_code=1)) is None
    assert store.get("job") is None
    assert len(store.history("job")) == 1


def test_given_values_that_are_not_measured_stay(store):
    store.put(Profile((ThreadGroup(1, 9.0, bandwidth=3e9),), name="job", ipc=1.5))
    profile = store.record("job", run(2.0))
    assert profile.groups[0].bandwidth == 3e9
    assert profile.groups[0].demand == 2.0
    assert profile.ipc == 1.5


def test_other_openings_see_new_values(store):
    other = ProfileStore(store.path)
    store.put(Profile((ThreadGroup(1, 1.0),), name="x"))
    assert other.get("x").groups[0].demand == 1.0
    store.put(Profile((ThreadGroup(1, 2.0),), name="x"))
    assert other.get("x").groups[0].demand == 2.0


def _record_many(path, name):
    store = ProfileStore(path)
    for i in range(8):
        store.record("shared", run(1.0 + i / 100))
        store.put(Profile((ThreadGroup(1, 1.0),), name=f"{name}-{i}"))


@pytest.mark.real
def test_processes_write_at_once_and_nothing_is_lost(store):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_record_many, args=(store.path, str(i))) for i in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert len(store.history("shared")) == 32
    assert len(store.own_names()) == 33


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to look at" * 50, b"{}"])
def test_an_invalid_store_is_named_and_unchanged(tmp_path, content):
    path = tmp_path / "profiles.sqlite"
    path.write_bytes(content)
    for use in (lambda s: s.get("x"), lambda s: s.record("x", run()), lambda s: s.names()):
        with pytest.raises(ConfigError, match=r"profiles\.sqlite.*not a sound profile store"):
            use(ProfileStore(path))
    assert path.read_bytes() == content


def test_a_damaged_store_is_an_error_not_a_loss(store):
    store.record("x", run())
    store.close()
    content = bytearray(store.path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    store.path.write_bytes(content)
    with pytest.raises(ConfigError, match="left as it is"):
        ProfileStore(store.path).get("x")
    assert store.path.read_bytes() == content


def test_foreign_files_and_later_versions_are_rejected(tmp_path, store):
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (a)")
    with pytest.raises(ConfigError, match="another program"):
        ProfileStore(other).get("x")
    store.put(Profile((ThreadGroup(1, 1.0),), name="x"))
    store.close()
    with sqlite3.connect(store.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigError, match="version 99"):
        ProfileStore(store.path).get("x")


def test_a_store_is_upgraded_to_the_next_version(store, monkeypatch):
    store.record("x", run(4.0))
    store.close()
    before = store.path.read_bytes()
    monkeypatch.setattr(store_db, "VERSION", 2)
    with pytest.raises(ConfigError, match=r"found schema version 1, this pilotfish reads 2"):
        ProfileStore(store.path).get("x")
    assert store.path.read_bytes() == before
    monkeypatch.setattr(store_db, "UPGRADES", {1: lambda database: database.execute("ALTER TABLE run ADD site TEXT")})
    for _ in range(2):
        again = ProfileStore(store.path)
        assert len(again.history("x")) == 1
        again.close()
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert connection.execute("SELECT site FROM run").fetchone() == (None,)


def test_an_unwritable_path_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be used"):
        ProfileStore(tmp_path / "file" / "profiles.sqlite").record("x", run())


def test_jobs_are_identified_by_their_command(store):
    job = Job("align-7", DEFAULT_PROFILE, command=("./align.sh", "-n", "8", "/data/one.fastq"))
    assert store.for_job(job) is None
    store.record_jobs([(job, run(4.0))])
    again = replace(job, id="align-8", command=("/opt/align.sh", "-n", "8", "/data/two.fastq"))
    assert store.for_job(again).groups[0].demand == 4.0
    assert store.for_job(replace(job, command=("./align.sh", "-n", "9", "x.fastq"))) is None


def test_a_job_without_a_command_has_no_profile(store):
    job = Job("simulated", DEFAULT_PROFILE)
    assert store.for_job(job) is None
    with pytest.raises(InvalidJobError, match="simulated"):
        store.record_jobs([(job, run())])


def test_export_and_import(store, tmp_path):
    store.record("a: odd name #1", run())
    store.put(Profile((ThreadGroup(2, 1.0, bandwidth=1e9),), name="b", memory=5e8))
    for as_json in (False, True):
        path = tmp_path / ("out.json" if as_json else "out.yaml")
        path.write_text(store.export_text(as_json=as_json))
        copy = ProfileStore(tmp_path / f"{as_json}.sqlite")
        assert sorted(copy.import_file(path)) == ["a: odd name #1", "b"]
        assert [copy.get(name) for name in copy.own_names()] == [store.get(name) for name in store.own_names()]
    assert parse_document(store.export_text(), "x")["schema"] == "pilotfish/profiles/v1"


def test_an_invalid_file_imports_nothing(store, tmp_path):
    path = tmp_path / "in.yaml"
    path.write_text("schema: pilotfish/profiles/v1\nprofiles: {good: {service_demand: 1}, bad: {service_demnd: 1}}")
    with pytest.raises(ConfigError, match=r"in\.yaml: profiles\.bad\.service_demnd.*service_demand"):
        store.import_file(path)
    assert store.own_names() == []
