"""The audit: every write to the resource manager, and every change of what the daemon may do, with who decided it.

Rule: a write is a row of `intents`, which is on disk before it is sent. A write that a daemon in shadow would have made
is a row of `would_be`, one for each job and action, which no restart takes for an intent. A change of mode, and a
request that changes something, is a row of `changes`. Rows are kept for as long as the jobs (`keep_days`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...formats.hostlist import fold
from ...simulate.model.plan import Action, Cancel, PowerOn, PowerSwitch, Start, SubmitAhead
from ...simulate.model.snapshot import JobView
from .damage import REAL, TEXT, WHOLE, Damage, checked, json_object, optional

Run = Callable[..., sqlite3.Cursor]
#: Most characters of an outcome or a reason, and of a folded list of nodes.
LONGEST_TEXT, LONGEST_NODES = 300, 1000
#: Outcomes of a write. None in the journal: it is not known whether the resource manager has carried it out.
DONE, UNKNOWN, NOT_SENT, NOT_STARTED = "done", "unknown", "not sent", "the job did not start"
#: What an action is called in the audit.
NAMES = {
    "place": "start", "submit": "start", "submitahead": "submit ahead", "cancel": "cancel", "release": "release",
    "poweroff": "power off", "poweron": "power on",
}  # fmt: skip
#: The tables of the journal that the audit reads.
TABLES = ("intents", "would_be", "changes")
SCHEMA = """
-- writes to the resource manager; without an outcome: not known yet
CREATE TABLE intents (
    id INTEGER PRIMARY KEY, cycle INTEGER, key TEXT NOT NULL, action TEXT NOT NULL, time REAL NOT NULL,
    owner INTEGER, by TEXT NOT NULL DEFAULT '', before TEXT, after TEXT, outcome TEXT);
CREATE INDEX open_intents ON intents (key) WHERE outcome IS NULL;
CREATE INDEX intents_at ON intents (time);
CREATE INDEX intents_of ON intents (owner, time);
CREATE INDEX intents_on ON intents (key, time);
-- writes that a daemon would have made that may not write: the last of each job and action, and how many in all
CREATE TABLE would_be (
    key TEXT NOT NULL, action TEXT NOT NULL, time REAL NOT NULL, since REAL NOT NULL, number INTEGER NOT NULL,
    owner INTEGER, by TEXT NOT NULL, before TEXT, after TEXT, PRIMARY KEY (key, action)) WITHOUT ROWID;
CREATE INDEX would_be_at ON would_be (time);
CREATE INDEX would_be_of ON would_be (owner, time);
-- changes of mode, and requests over the socket that changed something
CREATE TABLE changes (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, owner INTEGER,
    by TEXT NOT NULL, before TEXT, after TEXT, why TEXT NOT NULL);
CREATE INDEX changes_at ON changes (time);
CREATE INDEX changes_of ON changes (owner, time);
CREATE INDEX changes_on ON changes (target, time);
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """An action with what the audit says of it.

    Args:
        action: what is to be done.
        by: what or who decided it.
        owner: uid of the job's user; None: not known, or it concerns no job.
        before: the job, as the snapshot shows it: state, nodes, held_until, pinned_since (epoch seconds).
        after: the job, as it is to become: state, nodes, begin (epoch seconds).
    """

    action: Action
    by: str = ""
    owner: int | None = None
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditedChange:
    """A change of mode, or a request that changed something.

    Args:
        time: epoch seconds of the resource manager's clock.
        kind: start, stop, reload, mode, pause, resume, submit or cancel.
        by: who or what made it.
        target: a job, a workflow, or a partition; "": the whole daemon.
        owner: uid of the user whose jobs it changes; None: those of all, so that only administrators see it.
        before: the mode before; after: the mode after; "": neither changes.
        why: the reason, or "".
    """

    time: float
    kind: str
    by: str
    target: str = ""
    owner: int | None = None
    before: str = ""
    after: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class AuditQuestion:
    """A selection of the audit.

    Args:
        keys: of jobs, or of their workflows; None: all.
        owner: uid of the user whose lines are shown; None: all, also those of no user.
        since: no earlier ones, epoch seconds.
        most: the newest ones, at most so many.
    """

    keys: tuple[str, ...] | None = None
    owner: int | None = None
    since: float = 0.0
    most: int = 1000


def decide(action: Action, by: str, view: JobView | None, owner: int | None, now: float) -> Decision:
    """Return an action with what the audit says of it.

    Args:
        action: what is to be done.
        by: what or who decided it.
        view: its job in the snapshot; None: it is not there.
        owner: uid of the job's user.
        now: time of the snapshot, epoch seconds.
    """
    before, after = dict[str, Any](), dict[str, Any]()
    if isinstance(action, PowerSwitch):
        states = ("off", "on") if isinstance(action, PowerOn) else ("on", "off")
        return Decision(action, by, owner, {"state": states[0]}, {"state": states[1], "nodes": _nodes(action.nodes)})
    if view is not None:
        facts = {"nodes": _nodes(view.nodes), "held_until": view.due, "pinned_since": view.pinned_since}
        before = {"state": str(view.state)} | {name: fact for name, fact in facts.items() if fact}
    if isinstance(action, Start):
        after = {"nodes": _nodes(action.nodes), "begin": now}
    elif isinstance(action, Cancel):
        after = {"state": "cancelled"}
    elif not isinstance(action, SubmitAhead):
        after = {"state": "the resource manager's"} | ({"why": action.why[:LONGEST_TEXT]} if action.why else {})
    return Decision(action, by, owner, before, after)


def _nodes(names: Iterable[str]) -> str:
    text = fold(names)
    return text if len(text) <= LONGEST_NODES else f"{text[:LONGEST_NODES]}..."


def outcome_of(error: str, *, transient: bool, sent: bool) -> str:
    """Return the outcome of a write as the audit shows it.

    Args:
        error: of the adapter; "": the resource manager has carried it out.
        transient: the resource manager may have carried it out nevertheless.
        sent: whether a request was sent.
    """
    if not error:
        return DONE
    kind = NOT_SENT if not sent else UNKNOWN if transient else "refused"
    return f"{kind}: {error}"[:LONGEST_TEXT]


def kind_of(action: Action) -> str:
    """Return the name of an action in the journal."""
    return type(action).__name__.lower()


def write_intent(run: Run, decision: Decision, *, cycle: int, time: float) -> int:
    """Write an intent; return its row.

    Args:
        run: runs a statement.
        decision: the action.
        cycle: number of the cycle.
        time: of its snapshot, epoch seconds.
    """
    query = "INSERT INTO intents (cycle, key, action, time, owner, by, before, after) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    action, before, after = decision.action, json.dumps(decision.before), json.dumps(decision.after)
    values = (cycle, action.key, kind_of(action), time, decision.owner, decision.by, before, after)
    return int(run(query, values).lastrowid or 0)


def write_would_be(run: Run, decision: Decision, time: float) -> None:
    """Write what would have been done, in place of the last such decision of its job.

    Args:
        run: runs a statement.
        decision: the action.
        time: of its snapshot, epoch seconds.
    """
    query = (
        "INSERT INTO would_be (key, action, time, since, number, owner, by, before, after)"
        " VALUES (?1, ?2, ?3, ?3, 1, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET time = excluded.time,"
        " number = number + 1, by = excluded.by, before = excluded.before, after = excluded.after"
    )
    action, before, after = decision.action, json.dumps(decision.before), json.dumps(decision.after)
    run(query, (action.key, kind_of(action), time, decision.owner, decision.by, before, after))


def write_change(run: Run, change: AuditedChange) -> None:
    """Write a change; `run` runs a statement."""
    query = "INSERT INTO changes (time, kind, target, owner, by, before, after, why) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    sides = json.dumps({"mode": change.before}), json.dumps({"mode": change.after})
    why = change.why[:LONGEST_TEXT]
    run(query, (change.time, change.kind, change.target, change.owner, change.by, *sides, why))


def mode_in(row: tuple[Any, ...]) -> tuple[str, str]:
    """Return the kind of a change and the mode after it. Raises ValueError: the row is damaged."""
    kind, after = checked(row, (TEXT, TEXT))
    return kind, str(json_object(after).get("mode", ""))


#: The columns of a line: when, kind, key, action, uid, by, before, after, outcome, why, number, since when.
_LINES = {
    "intents": "id, time, 'write', key, action, owner, by, before, after, outcome, '', 1, time",
    "would_be": "key, time, 'would', key, action, owner, by, before, after, 'would have', '', number, since",
    "changes": "id, time, kind, target, kind, owner, by, before, after, 'done', why, 1, time",
}
_KINDS = (
    *((*TEXT, *WHOLE), REAL, TEXT, TEXT, TEXT, optional(WHOLE), TEXT, optional(TEXT), optional(TEXT)),
    *(optional(TEXT), TEXT, WHOLE, REAL),
)


def read_lines(
    read: Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]], damage: Damage, question: AuditQuestion
) -> list[dict[str, Any]]:
    """Return the lines that are asked for, the oldest first, one more than `most` if there are more. O(most log rows).

    Args:
        read: runs a query and returns its rows.
        damage: notes rows that cannot be read.
        question: the selection.
    """
    lines = list[dict[str, Any]]()
    for table, columns in _LINES.items():
        conditions, values = ["time >= ?"], list[Any]([question.since])
        if question.owner is not None:
            conditions.append("owner = ?")
            values.append(question.owner)
        if question.keys is not None:
            name = "target" if table == "changes" else "key"
            conditions.append(f"{name} IN ({', '.join('?' * len(question.keys))})")
            values += question.keys
        query = f"SELECT {columns} FROM {table} WHERE {' AND '.join(conditions)} ORDER BY time DESC LIMIT ?"
        lines += damage.readable(table, read(query, (*values, question.most + 1)), _line)
    lines.sort(key=lambda line: line["time"])
    return lines[-question.most - 1 :]


def _line(row: tuple[Any, ...]) -> dict[str, Any]:
    """Return a row of _LINES as the audit shows it. Raises ValueError: it is damaged."""
    _, time, kind, key, action, owner, by, before, after, outcome, why, number, since = checked(row, _KINDS)
    return {
        "time": time,
        "kind": kind,
        "target": key,
        "action": NAMES.get(action, action),
        "owner": owner,
        "by": by,
        "before": json_object(before),
        "after": json_object(after),
        "outcome": UNKNOWN if outcome is None else outcome,
        "why": why,
        "number": number,
        "since": since,
    }
