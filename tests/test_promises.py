"""What 1.0.0 promises stays: the recorded names of the Python interface, commands, configuration, metrics, documents and
the journal. The remedies are in the messages."""

from __future__ import annotations

import pytest

from pilotfish.daemon.state import journal_db
from tests import promises
from tests.promises import Promises


@pytest.fixture(scope="module")
def now() -> Promises:
    return promises.present()


def test_no_promised_name_is_removed_or_renamed(now: Promises) -> None:
    missing = promises.removed(promises.recorded(), now)
    assert not missing, (
        f"promised in docs/reference/promised.yaml, and missing now: {missing}. Bring each back under its name, next to the new"
        " one (docs/reference/stability.md). A changed table of the journal needs a new VERSION and an entry in UPGRADES"
    )


def test_each_addition_is_recorded(now: Promises) -> None:
    new = promises.added(promises.recorded(), now)
    assert not new, f"a promise from the next release on: {new}. Record it: python -m tests.promises"


def test_a_removal_is_seen_and_an_addition_is_told_apart(now: Promises) -> None:
    assert min(map(len, now.values())) >= 1 and sum(map(len, now.values())) > 1000
    for section, names in now.items():
        renamed = now | {section: [f"{names[0]}_new", *names[1:]]}
        assert promises.removed(now, renamed) == [f"{section}: {names[0]}"]
        assert promises.added(now, renamed) == [f"{section}: {names[0]}_new"]
    assert "metrics: pilotfish_build_info{version, commit, python}" in promises.added({}, now)
    assert "configuration: cycle_seconds" in promises.added({}, now)
    assert "documents: pilotfish/log/v1 lines" in promises.added({}, now)
    assert "commands: pilotfish status --json" in promises.added({}, now)


def test_a_changed_table_needs_a_new_version_and_an_upgrade(now: Promises, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_db, "_SCHEMA", journal_db._SCHEMA.replace("exit_code INTEGER", "code INTEGER"))
    assert promises.removed(now, promises.present())
    monkeypatch.setattr(journal_db, "VERSION", journal_db.VERSION + 1)
    assert promises.removed(now, promises.present())
    monkeypatch.setitem(journal_db.UPGRADES, journal_db.VERSION - 1, lambda database: None)
    changed = promises.present()
    assert not promises.removed(now, changed) and len(promises.added(now, changed)) == 1


def test_a_removal_is_not_recorded_by_accident(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = promises.RECORDED.read_text()
    reduced = promises.present()
    del reduced["metrics"][0]
    monkeypatch.setattr(promises, "present", lambda: reduced)
    assert promises.main([]) == 1 and "removed: metrics: " in capsys.readouterr().err
    assert promises.RECORDED.read_text() == before
