"""A backup has what a service must not lose, while that runs; a restore puts all of it back, or changes nothing."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.daemon.config import load_config
from pilotfish.daemon.state import backup, journal_db, restore
from pilotfish.daemon.state.audit import AuditedChange, AuditQuestion
from pilotfish.daemon.state.journal import Journal
from pilotfish.formats.documents.file_version import copy_before
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.job import Profile, ThreadGroup

CONFIG = """\
schema: pilotfish/daemon/v1
cluster: {folder}/cluster.yaml
state_dir: {folder}/state
adapter:
  name: slurm
  options: {{rest_token_file: /etc/token, rest_token_command: "vault read -field=token=s3cret-1 x", partition_token: s3cret-2}}
# the password is s3cret-3
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The configuration of a service that has run."""
    (tmp_path / "cluster.yaml").write_text("name: lab\n")
    path = tmp_path / "pilotfish.yaml"
    path.write_text(CONFIG.format(folder=tmp_path))
    note(path, "first")
    put_profile(path, "solver")
    (tmp_path / "state/slurm/deep").mkdir(parents=True)
    (tmp_path / "state/slurm/deep/pins").write_text("17\n")
    (tmp_path / "state/delays.json").write_text("{}")
    return path


def note(config: Path, why: str) -> None:
    """Write a line into the journal of a service."""
    with closing(Journal(config.parent / "state/journal.sqlite")) as journal:
        journal.note_change(AuditedChange(1000.0, "start", "service", after="live", why=why))


def put_profile(config: Path, name: str) -> None:
    with closing(ProfileStore(config.parent / "state/profiles.sqlite")) as store:
        store.put(Profile((ThreadGroup(1, 10.0),), name=name))


def profiles(config: Path) -> list[str]:
    with closing(ProfileStore(config.parent / "state/profiles.sqlite")) as store:
        return store.own_names()


def notes(config: Path) -> list[str]:
    with closing(Journal(config.parent / "state/journal.sqlite")) as journal:
        return sorted(line["why"] for line in journal.audited(AuditQuestion(None, None, 0.0, 100)))


def state_of(config: Path) -> dict[str, bytes]:
    """Return the files of the state, but for what restores left."""
    folder = config.parent / "state"
    paths = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.relative_to(folder).parts[0].startswith("before-")
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def run(config: Path, *words: str) -> int:
    return main([*words, "--config", str(config)])


def test_what_was_there_is_there_again(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "b.tar.gz"
    assert run(config, "backup", str(file), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "pilotfish/backup/v1" and document["journal_version"] == journal_db.VERSION
    assert {"state/journal.sqlite", "profiles.sqlite", "state/slurm/deep/pins", "state/delays.json",
            "configuration/pilotfish.yaml", "configuration/cluster.yaml"} == set(document["files"])  # fmt: skip
    assert file.stat().st_mode & 0o777 == 0o600 and not list(tmp_path.glob(".*"))
    note(config, "second")
    (tmp_path / "state/slurm/deep/pins").unlink()
    put_profile(config, "other")
    assert run(config, "restore", str(file)) == 0
    message = capsys.readouterr().err
    assert notes(config) == ["first"] and (tmp_path / "state/slurm/deep/pins").read_text() == "17\n"
    assert profiles(config) == ["solver"]
    (aside,) = (tmp_path / "state").glob("before-restore-*")
    assert str(aside) in message and (aside / "state/journal.sqlite").is_file()


def test_the_python_of_debian_12_makes_one(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """3.11.2 lacks what came with 3.11.4."""
    monkeypatch.delattr(tarfile.TarInfo, "replace", raising=False)
    assert run(config, "backup", str(tmp_path / "b.tar.gz")) == 0
    with tarfile.open(tmp_path / "b.tar.gz") as packed:
        assert {(member.mode, member.uid, member.uname) for member in packed} == {(0o600, 0, "")}
    assert run(config, "restore", str(tmp_path / "b.tar.gz"), "--check") == 0


def test_no_secret_goes_into_a_backup(config: Path, tmp_path: Path) -> None:
    assert run(config, "backup", str(tmp_path / "b.tar.gz")) == 0
    content = gzip.decompress((tmp_path / "b.tar.gz").read_bytes())
    assert b"s3cret" not in content and b"/etc/token" in content and b"lab" in content
    text = "db: postgres://oar:pw1@host/x\nlist: [{password: pw2}, 'host=h password=pw3 user=u']\n"
    cleaned = backup.without_secrets(text)
    assert "pw" not in cleaned.replace("password", "") and "user=u" in cleaned and "postgres://oar:" in cleaned
    assert "left out" in backup.without_secrets("a: [")


def test_a_backup_that_is_cut_short_changes_nothing(config: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    run(config, "backup", str(file))
    note(config, "second")
    before, content = state_of(config), file.read_bytes()
    lengths = {0, 1, 10, 11, 100, *range(300, len(content) - 40, len(content) // 25)}
    for length in sorted(lengths):
        file.write_bytes(content[:length])
        with pytest.raises(ConfigError, match="nothing was changed"):
            restore.restore(load_config(config), file)
        assert state_of(config) == before
    for place in range(50, len(content), len(content) // 25):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            restore.restore(load_config(config), file, only_check=True)
        except ConfigError as error:
            assert str(file) in str(error)
        assert state_of(config) == before


@pytest.mark.parametrize("name", ["../state/x", "/etc/x", "state/extra", "state/link"])
def test_a_part_that_no_manifest_names_is_refused(config: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / "b.tar.gz"
    run(config, "backup", str(file))
    with tarfile.open(file) as packed:
        members = [(member, packed.extractfile(member).read()) for member in packed]
    member = tarfile.TarInfo(name)
    if name.endswith("link"):
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(file, "w:gz") as packed:
        for member_of, content in [*members, (member, b"")]:
            packed.addfile(member_of, io.BytesIO(content))
    before = state_of(config)
    with pytest.raises(ConfigError, match="manifest does not name"):
        restore.restore(load_config(config), file)
    assert state_of(config) == before


def test_other_files_and_other_versions_are_refused(config: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    nothing = load_config(config).model_copy(update={"state_dir": str(tmp_path / "none")})
    with pytest.raises(ConfigError, match="there is no such file"):
        backup.write_backup(nothing, config, file, 0.0)
    with tarfile.open(file, "w:gz") as packed:
        packed.addfile(tarfile.TarInfo("x"))
    with pytest.raises(ConfigError, match="no backup of pilotfish"):
        restore.restore(load_config(config), file)
    with closing(sqlite3.connect(tmp_path / "state/journal.sqlite")) as database:
        database.execute("PRAGMA user_version=9")
    run(config, "backup", str(file))
    with pytest.raises(ConfigError, match=r"its journal has version 9 \(allowed: version 1.*install a newer one"):
        restore.restore(load_config(config), file)


def add_colour(database: sqlite3.Connection) -> None:
    database.execute("ALTER TABLE jobs ADD COLUMN colour TEXT")


def test_the_guide_walked_both_ways(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Backup, upgrade, work, go back by the message of the old program, and upgrade again."""
    assert run(config, "backup", str(tmp_path / "b.tar.gz")) == 0
    journal = tmp_path / "state/journal.sqlite"
    with monkeypatch.context() as newer:
        newer.setattr(journal_db, "VERSION", 2)
        newer.setattr(journal_db, "UPGRADES", {1: add_colour})
        note(config, "by the newer program")
        assert notes(config) == ["by the newer program", "first"]
    capsys.readouterr()
    assert run(config, "log") == 1
    message = " ".join(capsys.readouterr().err.split())
    copy = copy_before(journal, 2)
    assert "version 2, of another pilotfish (allowed: version 1, which pilotfish 1.0.0 reads" in message
    assert message.endswith(f"or go back: pilotfish restore {copy})")
    named = message.rpartition("pilotfish restore ")[2].rstrip(")")
    assert run(config, "restore", named) == 0
    assert notes(config) == ["first"]
    (aside,) = (tmp_path / "state").glob("before-restore-*")
    with closing(sqlite3.connect(aside / "state/journal.sqlite")) as replaced:
        assert replaced.execute("SELECT count(*) FROM changes").fetchone() == (2,)
    with monkeypatch.context() as newer:
        newer.setattr(journal_db, "VERSION", 2)
        newer.setattr(journal_db, "UPGRADES", {1: add_colour})
        assert notes(config) == ["first"]
        assert run(config, "restore", str(tmp_path / "b.tar.gz")) == 0  # an older backup is upgraded at the next start
        assert notes(config) == ["first"]


def test_a_copy_in_the_folder_of_another_service_is_refused(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As root types it, the folder may be one in root's home; it would be made, and the service go on without it."""
    copy = tmp_path / "state/before-version-2-journal.sqlite"
    copy.write_bytes((tmp_path / "state/journal.sqlite").read_bytes())
    config.write_text(config.read_text().replace("state_dir:", "# "))
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path / "home/state"))
    assert run(config, "restore", str(copy)) == 1
    assert f"state_dir: {tmp_path / 'state'} in the" in capsys.readouterr().err and not (tmp_path / "home").exists()
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path / "state"))
    assert run(config, "restore", str(copy)) == 0 and notes(config) == ["first"]


def test_a_copy_before_an_upgrade_that_cannot_be_made_stops_it(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "state/journal.sqlite"
    copy_before(journal, 2).mkdir()  # nothing can be renamed to it
    monkeypatch.setattr(journal_db, "VERSION", 2)
    monkeypatch.setattr(journal_db, "UPGRADES", {1: add_colour})
    with pytest.raises(ConfigError, match="cannot be opened"):
        Journal(journal)
    copy_before(journal, 2).rmdir()
    with closing(sqlite3.connect(journal)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)


# --- other processes ---
HAMMER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=OFF", "wal_autocheckpoint=7"):
    database.execute(f"PRAGMA {statement}")
database.execute("CREATE TABLE IF NOT EXISTS one (number INTEGER, padding BLOB)")
database.execute("CREATE TABLE IF NOT EXISTS two (number INTEGER, padding BLOB)")
print("ready", flush=True)
number = 0
while True:
    number += 1
    database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT INTO one VALUES (?, zeroblob(?))", (number, number % 9000))
    database.execute("INSERT INTO two VALUES (?, zeroblob(?))", (number, number % 7000))
    database.execute("DELETE FROM one WHERE number = ?", (number - 300,))
    database.execute("DELETE FROM two WHERE number = ?", (number - 300,))
    database.execute("COMMIT")
"""


@pytest.mark.real
def test_each_copy_is_a_state_that_was_committed_while_a_service_writes_without_a_pause(tmp_path: Path) -> None:
    file = tmp_path / "live.sqlite"
    writer = subprocess.Popen([sys.executable, "-c", HAMMER, str(file)], stdout=subprocess.PIPE)
    try:
        writer.stdout.readline()
        latest, copies = 0, 0
        for attempt in range(40):
            folder = tmp_path / str(attempt)
            folder.mkdir()
            try:
                copy = journal_db.copy_database(file, folder)
            except sqlite3.OperationalError:
                continue  # it said so, which a backup passes on
            with closing(sqlite3.connect(copy)) as database:
                assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                first = database.execute("SELECT max(number), count(*), sum(number) FROM one").fetchone()
                assert first == database.execute("SELECT max(number), count(*), sum(number) FROM two").fetchone()
                assert first[0] is None or first[0] >= latest
                latest, copies = first[0] or 0, copies + 1
        assert copies > 10 and latest > 100
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()


HOLD = "import sys; from pathlib import Path; from pilotfish.daemon.state.journal import Journal\n"
HOLD += "held = Journal(Path(sys.argv[1])); print('ready', flush=True); sys.stdin.read()"


@pytest.mark.real
def test_a_service_that_runs_is_backed_up_and_not_replaced(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [sys.executable, "-c", HOLD, str(tmp_path / "state/journal.sqlite")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as service:
        service.stdout.readline()
        assert run(config, "backup", str(tmp_path / "b.tar.gz")) == 0
        before = state_of(config)
        assert run(config, "restore", str(tmp_path / "b.tar.gz")) == 1
        assert "in use, so the service runs (allowed: a service that is stopped" in " ".join(
            capsys.readouterr().err.split()
        )
        assert state_of(config) == before
        assert run(config, "restore", str(tmp_path / "b.tar.gz"), "--check") == 0
        service.stdin.close()
    assert run(config, "restore", str(tmp_path / "b.tar.gz")) == 0


def forked(do: Callable[[], int]) -> int:
    """Run something in a child, and return its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = do()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


STEPS = ("replace", "link", "fsync", "unlink", "rmdir", "mkdir", "ftruncate")


def killed_at(number: int, words: list[str], config: Path) -> int:
    """Run a command that is killed before its step of this number; return its exit code."""

    def do() -> int:
        steps = iter(range(10**6))
        for name in STEPS:
            plain = getattr(os, name)

            def counted(*args, plain=plain, **options):
                if next(steps) == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return plain(*args, **options)

            setattr(os, name, counted)
        return run(config, *words)

    return forked(do)


@pytest.mark.real
def test_a_kill_at_any_step_of_a_restore_leaves_a_whole_journal_and_it_is_made_again(
    config: Path, tmp_path: Path
) -> None:
    file = tmp_path / "b.tar.gz"
    run(config, "backup", str(file))
    note(config, "second")
    kills = 0
    for number in range(200):
        code = killed_at(number, ["restore", str(file)], config)
        assert code in (0, -signal.SIGKILL)
        assert notes(config) in (["first"], ["first", "second"])
        if code == 0:
            break
        kills += 1
        assert run(config, "restore", str(file)) == 0 and notes(config) == ["first"]
        note(config, "second")
    assert kills > 10 and not (tmp_path / "state/.restoring").exists()
    saved = list((tmp_path / "state").glob("before-restore-*/state/journal.sqlite"))
    assert len(saved) >= kills


@pytest.mark.real
def test_a_kill_or_a_full_disk_leaves_the_backup_before_as_it_was(
    config: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "b.tar.gz"
    run(config, "backup", str(file))
    before = file.read_bytes()
    note(config, "second")
    kills = 0
    for number in range(100):
        if killed_at(number, ["backup", str(file)], config) == 0:
            break
        kills += 1
        assert file.read_bytes() == before or restore.restore(load_config(config), file, only_check=True).manifest
        if file.read_bytes() != before:
            file.write_bytes(before)
    assert kills > 5

    def on_a_full_disk() -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
        return run(config, "backup", str(file))

    before = file.read_bytes()
    capfd.readouterr()
    assert forked(on_a_full_disk) == 1
    message = capfd.readouterr().err
    assert "File too large" in message and message.count("\n") <= 2 and "Traceback" not in message
    assert file.read_bytes() == before and not list(tmp_path.glob(".b*"))

    def restored_on_a_full_disk() -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
        return run(config, "restore", str(file))

    state = notes(config)
    assert forked(restored_on_a_full_disk) == 1 and notes(config) == state
