"""The journal and the profiles at the begin of a record with other names.

Rule: a table or column that is not named here stays empty, and so does what decides nothing: the stories of jobs, the
audit, and the keys under which workflows were submitted.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import Any

from ...simulate.errors import ConfigError
from ..canary.groups import KEPT as HANDOVER
from ..state.pauses import KEPT as PAUSES
from .anonymous_lines import AnonymousLines, only

Row = Mapping[str, Any]
#: What becomes of a column; it gets the row, too.
Column = Callable[[Any, Row], Any]
_OPEN = "outcome IS NULL OR action = 'submitahead'"
_MEASURED = (
    "groups", "wall_s", "isolated_s", "cpu_s", "waiting", "exit_code", "date", "cpu_model", "interval_s",
    "memory_bytes", "read_bytes", "written_bytes", "node_type", "company", "method", "bandwidth", "instructions", "ipc",
    "power_watts", "sources", "strain", "aged", "inputs", "request", "threads",
)  # fmt: skip


def _stays(value: Any, row: Row) -> Any:
    return value


def _columns(names: str, **others: Column) -> dict[str, Column]:
    return {**dict.fromkeys(names.split(), _stays), **others}


class AnonymousState:
    """Gives the files of a state other names.

    Args:
        lines: gives the parts of their rows other names.
    """

    def __init__(self, lines: AnonymousLines) -> None:
        self._lines, self._names = lines, lines.names
        names = lines.names

        def plain(change: Callable[[Any], Any]) -> Column:
            return lambda value, row: None if value is None else change(value)

        key, uid, text = plain(names.key), plain(names.uid), plain(names.text)
        profile, account, job_name = plain(names.profile), plain(names.account), plain(partial(names.one, "job"))
        self._journal: Mapping[str, Mapping[str, Column]] = {
            "workflows": _columns(
                "number submit_time state finish_time size", id=plain(names.workflow), owner=uid,
                name=lambda name, row: name if name == names.manager else names.one("name", name),
                definition=lambda definition, row: lines.workflow(definition, row["id"]),
            ),
            "jobs": _columns(
                "position state nodes start_time finish_time exit_code signal forecast_start forecast_finish "
                "isolated_run_time contention_slowdown promised expected handed cancel_wanted attempts not_before "
                "since plain_end forecast_earliest forecast_latest",
                workflow=plain(names.workflow), job=lambda job, row: names.job(job, row["workflow"]), reason=text,
                owner=uid, about=plain(self._about),
            ),
            "intents": _columns("id cycle action time", key=key, owner=uid),
            "errors": _columns("id ratio model source", user=uid),
            "accounting": _columns(
                "since ended due tries", key=key, name=profile,
                traits=plain(lambda traits: traits and json.dumps(lines.traits(json.loads(traits)))),
            ),
            "queued": _columns(
                "queue size walltime submit_time said_time said_start said_early said_late compared_time "
                "compared_start manager_start start_time finish_time learned said_guessed",
                key=key, name=job_name, owner=uid, account=account,
            ),
            "members": _columns(
                "side share compared queue cores walltime submit_time start_time finish_time state", key=key, unit=key,
                why=text, owner=uid,
            ),
            "kept": _columns("name", state=self._kept),
        }  # fmt: skip
        self._store: Mapping[str, Mapping[str, Column]] = {
            "profile": _columns("", name=profile, document=plain(self._entry), given=plain(self._entry)),
            "run": _columns("id", name=profile, document=plain(self._run)),
            "score": _columns("cpu_model", name=profile, document=plain(self._score)),
            "dropped": _columns("what number latest"),
        }

    def files(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the files of a state by name, see `formats.record.state`. Raises ConfigError: one is damaged."""
        after = dict[str, bytes]()
        for name, content in files.items():
            try:
                match name:
                    case "journal.sqlite":
                        after[name] = _database(content, self._journal, {"intents": _OPEN})
                    case "profiles.sqlite":
                        after[name] = _database(content, self._store, {})
                    case "delays.json":
                        after[name] = content
            except (sqlite3.Error, ValueError, KeyError, TypeError, IndexError) as error:
                raise ConfigError(name, "", f"this file of the record's state is damaged: {error}") from None
        return after

    def _about(self, text: str) -> str:
        about = json.loads(text)
        after = dict[str, Any]()
        after |= {name: self._names.text(about[name]) for name in ("let_go", "released") if name in about}
        if "traits" in about:
            after["traits"] = self._lines.traits(about["traits"])
        if "label" in about:
            profile, source, kind, _ = about["label"]
            after["label"] = [self._names.profile(profile), source, kind, ""]
        return json.dumps(after)

    def _kept(self, text: str, row: Row) -> str:
        state = json.loads(text)
        match row["name"]:
            case "policy" | "cost":
                return text
            case name if name == PAUSES:
                return json.dumps(self._lines.pauses(state))
            case name if name == HANDOVER:
                return json.dumps(state | {"why": self._names.text(state.get("why", ""))})
        return "{}"

    def _entry(self, text: str) -> str:
        entry = json.loads(text)
        return text if isinstance(entry, list) else json.dumps({k: v for k, v in entry.items() if k != "note"})

    def _run(self, text: str) -> str:
        run = json.loads(text)
        names = self._names
        changes = {
            **dict.fromkeys(_MEASURED), "command": names.profile, "traits": self._lines.traits, "owner": names.uid,
        }  # fmt: skip
        return json.dumps(only(run, changes))

    def _score(self, text: str) -> str:
        score = json.loads(text)
        stays = dict.fromkeys(("levels", "pressure", "rounds", "date", "cpu_model", "node_type"))
        return json.dumps(only(score, {**stays, "name": self._names.profile}))


def _database(content: bytes, tables: Mapping[str, Mapping[str, Column]], of_rows: Mapping[str, str]) -> bytes:
    """Return a SQLite file with the tables of another one, and their rows as `tables` changes them.

    Args:
        content: of the file.
        tables: the changes of each column, by table.
        of_rows: which rows of a table there are; the others: all.
    """
    with closing(sqlite3.connect(":memory:")) as source, closing(sqlite3.connect(":memory:")) as target:
        # A file with a write-ahead log says so here (SQLite, file format, 1.3.3), and cannot be read from memory.
        source.deserialize(content[:18] + b"\x01\x01" + content[20:])
        objects = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type DESC"
        for (statement,) in source.execute(objects).fetchall():
            target.execute(statement)
        for pragma in ("user_version", "application_id"):
            target.execute(f"PRAGMA {pragma}={source.execute(f'PRAGMA {pragma}').fetchone()[0]}")
        for table, changes in tables.items():
            infos = [info[1:4] for info in source.execute(f"PRAGMA table_info({table})")]
            names = [name for name, _, _ in infos]
            written = [name for name, _, is_needed in infos if is_needed or name in changes]
            insert = f"INSERT INTO {table} ({', '.join(written)}) VALUES ({', '.join('?' * len(written))})"
            for values in source.execute(f"SELECT * FROM {table} WHERE {of_rows.get(table, '1')}"):
                row = dict(zip(names, values, strict=True))
                target.execute(insert, [changes[name](row[name], row) if name in changes else "" for name in written])
        target.commit()
        return target.serialize()
