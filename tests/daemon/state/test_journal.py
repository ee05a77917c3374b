"""The journal: what was written can be read, and an unreadable file is never replaced."""

import os
import sqlite3
from contextlib import closing

import pytest

from pilotfish.daemon.state import journal_db, journal_rows
from pilotfish.daemon.state.audit import Decision
from pilotfish.daemon.state.forecasts import Forecaster, JobForecast
from pilotfish.daemon.state.job_stages import JobStage
from pilotfish.daemon.state.journal import Journal, JournalError
from pilotfish.daemon.state.profile_labels import ProfileLabel
from pilotfish.daemon.state.queue import Submission
from pilotfish.daemon.state.unsaved import Unsaved
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.job import Workflow
from pilotfish.simulate.model.plan import Cancel, Submit
from pilotfish.simulate.model.snapshot import JobState


@pytest.fixture
def filled(tmp_path, kit):
    path = tmp_path / "deep" / "journal.sqlite"
    journal = Journal(path)
    jobs = (kit.job("a", memory=5.0, environment=(("X", "1"),)), kit.job("b", "a"))
    submission = Submission("w.1", Workflow("w", jobs), 100.5)
    journal.submit(submission, "nightly")
    entry = submission.entries["a"]
    entry.move(JobStage.RUNNING, JobState.RUNNING)
    entry.nodes, entry.start_time = ("n1", "n2"), 101.0
    entry.forecast, entry.promised, entry.expected = JobForecast(101.0, 111.0, 9.0, 1.25, (109.0, 114.0)), 111.0, 112.5
    entry.label, entry.released = ProfileLabel("align", "measured", None, "no bandwidth"), "it gains nothing"
    entry.cancel_wanted, entry.attempts, entry.not_before, entry.since = True, 2, 7.5, 99.0
    errors = [(Forecaster("max-min", "given"), 0.25, 7), (Forecaster(), 0.5, None)]
    journal.save([entry], unsaved=Unsaved([("w.1/a", 101.0, 4, "chosen", "n1", {"x": 1})], errors=errors))
    yield path, journal, submission
    journal.close()


def test_a_restart_finds_every_field_again(filled):
    path, journal, submission = filled
    journal.close()
    again = Journal(path)
    loaded = again.load().submissions["w.1"]
    assert loaded == submission
    assert loaded.workflow == submission.workflow
    assert again.records("w.1/a") == [{"time": 101.0, "cycle": 4, "kind": "chosen", "text": "n1", "data": {"x": 1}}]
    assert again.last_errors(1) == [(Forecaster(), 0.5, None)]
    assert again.last_errors(9) == [(Forecaster("max-min", "given"), 0.25, 7), (Forecaster(), 0.5, None)]
    again.close()


def test_intents_stay_open_until_their_outcome_is_known(filled):
    path, journal, submission = filled
    start = Submit("w.1/b", submission.entries["b"].job, ("n1",))
    intents = journal.intend([Decision(start), Decision(Cancel("w.1/a"))], [], cycle=3, time=102.0)
    journal.close()
    again = Journal(path)
    queue = again.load()
    assert queue.find("w.1/b").intent == intents["w.1/b"]
    assert queue.find("w.1/a").intent is None
    again.save([], unsaved=Unsaved(outcomes={intents["w.1/b"]: "started"}))
    assert again.load().find("w.1/b").intent is None
    again.close()


def test_a_submission_is_written_whole_or_not_at_all(filled, kit):
    _, journal, _ = filled
    twice = Submission("w.2", Workflow("w", (kit.job("x"),)), 1.0)
    with pytest.raises(JournalError):
        journal.submit(twice, "nightly")
    assert journal.find("w.2") is None
    assert journal.submitted_as("nightly", 7)[0] == "w.1"
    assert journal.submitted_as("other", 7) is None


def test_two_daemons_cannot_share_it(filled):
    path, _, _ = filled
    with pytest.raises(ConfigError, match="another pilotfish daemon"):
        Journal(path)


@pytest.mark.parametrize("damage", [b"this is no database at all, but long enough to be read as one" * 9, b"SQLite"])
def test_a_damaged_journal_is_reported_and_left_unchanged(tmp_path, damage):
    path = tmp_path / "journal.sqlite"
    path.write_bytes(damage)
    with pytest.raises(ConfigError, match=r"journal is damaged.*left as it is"):
        Journal(path)
    assert path.read_bytes() == damage


def test_damage_inside_is_found(filled):
    path, journal, _ = filled
    journal.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="damaged"):
        Journal(path).load()
    assert path.read_bytes() == bytes(data)


@pytest.mark.parametrize(
    "read",
    [
        lambda journal: journal.last_errors(1),  # on a reload, too
        lambda journal: journal.prune(1.0),  # once a day
        lambda journal: journal.usage_due(1.0, 1),
        lambda journal: journal.submitted_as("nightly", 1),
        lambda journal: journal.records("w.1/a"),
    ],
)
def test_a_file_that_cannot_be_read_any_more_is_an_error_that_its_users_expect(filled, read):
    path, journal, _ = filled
    for table in ("errors", "workflows", "accounting", "story"):
        journal._db.execute(f"ALTER TABLE {table} RENAME TO gone_{table}")
    with pytest.raises(JournalError, match=f"{path}: cannot be read"):
        read(journal)


def test_an_invalid_definition_is_damage(filled):
    path, journal, _ = filled
    journal.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE workflows SET definition = '{}'")
    with pytest.raises(ConfigError, match="damaged"):
        Journal(path).load()


@pytest.mark.parametrize("about", ["[]", "{", '{"let_go": 1}', '{"label": ["a"]}', '{"label": {}}', '{"traits": []}'])
def test_a_record_of_a_job_that_cannot_be_read_is_damage(filled, about):
    path, journal, _ = filled
    journal.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE jobs SET about = ? WHERE job = 'b'", (about,))
    with closing(Journal(path)) as again, pytest.raises(ConfigError, match="damaged"):
        again.load()


def version_of(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        return database.execute("PRAGMA user_version").fetchone()[0]


def test_the_first_version_is_1_and_a_newer_one_is_refused(filled):
    path, journal, _ = filled
    journal.close()
    assert version_of(path) == 1
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA user_version=2")
    for in_memory in (False, True):
        with pytest.raises(
            ConfigError,
            match=r"version 2, of another pilotfish \(allowed: version 1, which .* again, or go back: pilotfish restore FILE",
        ):
            Journal(path, in_memory=in_memory)
    assert version_of(path) == 2


def workflow_in(journal):
    (submission,) = journal.load().submissions.values()
    return submission.workflow


def add_colour(database):
    database.execute("ALTER TABLE jobs ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'")


def test_a_journal_is_upgraded_to_the_next_version_with_all_that_it_holds(filled, monkeypatch):
    path, journal, submission = filled
    journal.close()
    monkeypatch.setattr(journal_db, "VERSION", 2)
    monkeypatch.setattr(journal_db, "UPGRADES", {1: add_colour})
    with closing(Journal(path, in_memory=True)) as copy:
        assert workflow_in(copy) == submission.workflow and version_of(path) == 1
    for _ in range(2):  # the second time, there is nothing to upgrade
        with closing(Journal(path)) as again:
            assert workflow_in(again) == submission.workflow
            assert {row[0] for row in again._read("SELECT colour FROM jobs")} == {"grey"}
    assert version_of(path) == 2


def fail_halfway(database):
    add_colour(database)
    database.execute("ALTER TABLE no_such_table ADD COLUMN colour TEXT")


@pytest.mark.parametrize(
    ("upgrades", "error"), [({1: fail_halfway}, "no such table"), ({}, "version 1 "), ({2: add_colour}, "version 1 ")]
)
def test_a_journal_that_cannot_be_upgraded_is_left_as_it_is(filled, monkeypatch, upgrades, error):
    path, journal, submission = filled
    journal.close()
    with monkeypatch.context() as context:
        context.setattr(journal_db, "VERSION", 3 if 2 in upgrades else 2)
        context.setattr(journal_db, "UPGRADES", upgrades)
        with pytest.raises(ConfigError, match=error):
            Journal(path)
    with closing(Journal(path)) as again:
        assert workflow_in(again) == submission.workflow
        with pytest.raises(JournalError, match="colour"):
            again._read("SELECT colour FROM jobs")


def test_a_folder_in_its_place_is_one_clear_error(tmp_path):
    (tmp_path / "journal.sqlite").mkdir()
    with pytest.raises(ConfigError, match="cannot be opened"):
        Journal(tmp_path / "journal.sqlite")


def test_old_workflows_are_dropped_with_all_their_records(filled):
    _, journal, submission = filled
    for entry in submission.entries.values():
        entry.state, entry.finish_time = JobState.COMPLETED, 200.0
    journal.save(submission.entries.values(), ended=[submission])
    journal.prune(before=200.0)
    assert journal.find("w.1") is not None
    journal.prune(before=201.0)
    assert journal.find("w.1") is None and journal.records("w.1/a") == []
    assert journal._read("SELECT count(*) FROM jobs") == [(0,)]


def test_in_memory_it_reads_the_file_and_writes_nothing(filled, kit):
    path, journal, _ = filled
    journal.close()
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    dry = Journal(path, in_memory=True)
    assert set(dry.load().submissions) == {"w.1"}
    dry.submit(Submission("w.2", Workflow("w", (kit.job("x"),)), 1.0), None)
    dry.close()
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_only_the_owner_can_read_it_under_any_umask(tmp_path, kit):
    path = tmp_path / "x" / "y" / "journal.sqlite"
    before = os.umask(0)
    try:
        journal = Journal(path)
        journal.submit(Submission("w.1", Workflow("w", (kit.job("x"),)), 1.0), None)
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == {"journal.sqlite": 0o600, "journal.sqlite-wal": 0o600}
    assert {folder.stat().st_mode & 0o777 for folder in path.parents[:2]} == {0o700}
    journal.close()


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("companion", ["journal.sqlite-wal", "journal.sqlite-shm", "local/jobs/w.1%2Fa"])
def test_an_emptied_journal_is_damage(tmp_path, companion, in_memory):
    path = tmp_path / "journal.sqlite"
    path.touch()
    (tmp_path / companion).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / companion).touch()
    with pytest.raises(ConfigError, match=r"journal is damaged.*empty"):
        Journal(path, in_memory=in_memory)
    assert path.stat().st_size == 0 and (tmp_path / companion).exists()


def test_an_empty_file_without_other_traces_is_a_new_journal(tmp_path):
    (tmp_path / "local" / "jobs").mkdir(parents=True)
    path = tmp_path / "journal.sqlite"
    path.touch()
    journal = Journal(path)
    assert not journal.load().submissions
    journal.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_removed_file_takes_no_submission(filled, kit, replaced):
    path, journal, _ = filled
    if replaced:
        (path.parent / "other").write_bytes(path.read_bytes())
        (path.parent / "other").replace(path)
    else:
        path.unlink()
    with pytest.raises(JournalError, match="was removed or replaced while in use"):
        journal.submit(Submission("w.2", Workflow("w", (kit.job("x"),)), 1.0), None)


def test_a_start_reads_no_job_of_the_resource_manager_that_has_ended(tmp_path, monkeypatch):
    path = tmp_path / "journal.sqlite"
    with closing(Journal(path)) as journal:
        journal.keep_handed_over("slurm", 1000.0)
        insert = (
            "INSERT INTO jobs (workflow, job, state, nodes, finish_time, reason, handed, cancel_wanted, attempts,"
            " not_before) VALUES ('slurm', ?, ?, '[]', ?, '', 0, 0, 0, 0.0)"
        )
        rows = [(str(number), "completed", 2000.0 + number) for number in range(500)]
        journal._db.executemany(insert, [*rows, ("w", "pending", None), ("x", "failed", None)])
    names, plain = [], journal_rows.handed_over_entry
    monkeypatch.setattr(journal_rows, "handed_over_entry", lambda row: names.append(row[1]) or plain(row))
    with closing(Journal(path)) as journal:
        journal.load()
    assert sorted(names) == ["w", "x"]
