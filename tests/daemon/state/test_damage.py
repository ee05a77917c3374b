"""A damaged value in any column of the journal: a daemon goes on without what only explains, or says what to do."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pilotfish.daemon.state.audit import AuditedChange, Decision
from pilotfish.daemon.state.damage import EXPLAINING
from pilotfish.daemon.state.forecasts import Forecaster
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.members import Member
from pilotfish.daemon.state.pending_usage import PendingUsage
from pilotfish.daemon.state.recorded_outcome import QueueRecord
from pilotfish.daemon.state.unsaved import Unsaved
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.plan import Action, Cancel, Submit
from tests.support import effort

#: SQL of a value that a column cannot have: not UTF-8, no JSON, another type, too large.
BROKEN = ["CAST(x'fe41' AS TEXT)", "'{no'", "x'00ff'", "9.5e300"]
#: What tells the rows of a table apart, if it is not their number.
KEYS = {"jobs": "workflow || job", "kept": "name", "accounting": "key", "queued": "key", "would_be": "key",
        "members": "key"}  # fmt: skip
#: Tables that a daemon does not need to decide.
WITHOUT = {"accounting", "changes", "errors", "members", "queued", "story", "would_be"}


@pytest.fixture
def lived(kit, offering, tmp_path: Path) -> Any:
    """A daemon that was killed: every table of its journal has rows, of what has ended and of what goes on."""
    bench, queued = offering, offering.manager.apply

    def apply(action: Action) -> None:
        kit.Manager.apply(bench.manager, action) if isinstance(action, Submit | Cancel) else queued(action)

    bench.manager.apply = apply
    ended = bench.submit(kit.job("a", seconds=2.0), kit.job("b", "a", seconds=2.0))
    bench.manager.offer(kit.job("7", seconds=3.0))
    bench.run(12)
    bench.submit(kit.job("c", seconds=500.0), kit.job("d", "c"))
    bench.manager.offer(kit.job("8", seconds=500.0))
    bench.run(3)
    unsaved = Unsaved(
        errors=[(Forecaster("max-min", "measured"), 0.1, 5)] * 3,
        pending=[PendingUsage(f"rjms/{k}", "job: x", 1.0, 2.0, 3.0) for k in range(3)],
        queued={f"rjms/{k}": QueueRecord(f"rjms/{k}", finish_time=9.0, start_time=2.0, learned=True) for k in range(3)},
        kept={"policy": {"consumed_j": 1.0}},
        members={"rjms/9": Member("rjms/9", "rjms/9", "control", 0.1, 1, "drawn", 5, "main", 1, 60.0, 1.0)},
        would_be={("rjms/7", "place"): (3.0, Decision(Cancel("rjms/7"), "policy mom", 5))},
    )
    bench.journal.save([], unsaved=unsaved)
    bench.journal.note_change(AuditedChange(1.0, "submit", "ada (uid 5)", ended, 5))
    bench.cycle.tracker.cancel([], "a user")
    bench.kill()
    bench.ended = ended
    return bench


def columns(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [(table, row[1]) for table in tables for row in database.execute(f"PRAGMA table_info({table})")]


def use(kit: Any, bench: Any) -> None:
    """Start a daemon on the journal, let it decide, and ask it everything."""
    try:
        bench.start()
        bench.run(1)
        ask = kit.requests(bench)
        for do, arguments in (
            ("status", {}), ("status", {"workflow": bench.ended}), ("nodes", {}), ("accuracy", {}), ("log", {}),
            ("explain", {"job": f"{bench.ended}/a"}), ("explain", {"job": "c"}), ("explain", {"job": "rjms/7"}),
        ):  # fmt: skip
            reply = ask(do, **arguments)
            assert reply["ok"] or reply["code"] != 500, (do, reply)
        assert ask("status")["ok"] and ask("accuracy")["ok"]
        bench.journal.usage_due(1e12, 100)
        bench.journal.kept()
        bench.journal.summary(bench.ended)
        bench.journal.prune(1e12)
    finally:
        bench.kill()


def test_every_table_has_rows(lived: Any) -> None:
    with closing(sqlite3.connect(lived.path)) as database:
        for table in {table for table, _ in columns(lived.path)}:
            assert database.execute(f"SELECT count(*) FROM {table}").fetchone()[0], table


@pytest.mark.parametrize("broken", effort.some(BROKEN))
def test_no_damaged_column_stops_a_daemon_without_a_remedy(
    kit: Any, lived: Any, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole = lived.path.with_name("whole.sqlite")
    shutil.copyfile(lived.path, whole)
    views, outcomes = dict(lived.manager.views), []
    for number, (table, column) in enumerate(effort.some(columns(whole), BROKEN.index(broken))):
        for companion in lived.path.parent.glob(f"{lived.path.name}-*"):
            companion.unlink()
        shutil.copyfile(whole, lived.path)
        lived.manager.views = dict(views)
        which = ("min", "max")[(number + BROKEN.index(broken)) % 2]  # the oldest row has ended, the newest goes on
        with closing(sqlite3.connect(lived.path, isolation_level=None)) as database:
            database.execute("PRAGMA synchronous=OFF")
            key, changes = KEYS.get(table, "rowid"), f"UPDATE {table} SET {column} = {broken}"
            try:
                database.execute(f"{changes} WHERE {key} = (SELECT {which}({key}) FROM {table})")
            except sqlite3.IntegrityError:
                continue  # SQLite itself does not let it in
        try:
            use(kit, lived)
        except ConfigError as error:
            assert "restore a copy of it, or move it away" in str(error) and "SELECT" not in str(error)
            assert table not in WITHOUT, (table, column, which)
            outcomes.append("refused")
        else:
            outcomes.append("went on")
    assert outcomes.count("went on") > len(outcomes) / 2
    assert "Traceback" not in caplog.text and "a request for" not in caplog.text


def test_rows_that_only_explain_are_left_out_logged_once_and_counted(
    kit: Any, lived: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(sqlite3.connect(lived.path, isolation_level=None)) as database:
        key = f"{lived.ended}/a"
        database.execute(
            "UPDATE story SET text = CAST(x'fe' AS TEXT) WHERE id = (SELECT min(id) FROM story WHERE key = ?)", (key,)
        )
    lived.start()
    with caplog.at_level(logging.WARNING):
        before = len(lived.journal.records(f"{lived.ended}/b"))
        first = lived.journal.records(key)
        assert len(lived.journal.records(key)) == len(first) and before and first
    (line,) = [line for line in caplog.messages if "cannot be read and is left out" in line]
    assert "of the table story" in line and str(lived.path) in line
    assert lived.value("journal_unreadable_rows_total", table="story") == 1.0
    assert {
        table: lived.value("journal_unreadable_rows_total", table=table) for table in EXPLAINING if table != "story"
    } == dict.fromkeys(set(EXPLAINING) - {"story"}, 0.0)
    lived.kill()


def test_of_many_damaged_rows_the_first_are_named(lived: Any, caplog: pytest.LogCaptureFixture) -> None:
    with closing(sqlite3.connect(lived.path, isolation_level=None)) as database:
        database.executemany("INSERT INTO errors (ratio, model) VALUES (?, 'x')", [("no number",)] * 40)
    with closing(Journal(lived.path)) as journal, caplog.at_level(logging.WARNING):
        assert len(journal.last_errors(100)) == 6
        assert len(caplog.messages) == 5 and caplog.messages[-1].endswith("further ones are only counted")
        assert journal.damage.number()["errors"] == 40
