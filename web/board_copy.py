"""The copy of the board from which all pages are served, its changes, and the past that it has seen.

Rule: a page is never the reason for a request to the resource manager. What is kept is bounded. A viewer gets the rows
that the service lets them see, and no others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .facts import service_facts

Row = list[Any]
#: Whether the jobs of a uid may be shown; None: its user is not known.
Sees = Callable[[int | None], bool]
#: The past that is kept: most jobs, and for how long, seconds.
MOST_PAST, PAST_S = 20_000, 86_400.0
#: Parts of a board that are not of the whole service.
_PARTS = frozenset({"ok", "jobs", "users", "columns", "nodes"})


@dataclass(frozen=True)
class BoardChange:
    """Changes of one step: the rows that are new or different, and what they and those that are gone were, by key."""

    rows: dict[str, Row]
    before: dict[str, Row]
    past: list[Row]
    nodes_changed: bool


@dataclass
class BoardCopy:
    """The latest board, as `daemon.report.board` makes it; `version` counts its changes.

    `past` has the rows of jobs that ran and are gone, the oldest first: each ended between the boards that had it and
    the next one, so that its end is at most one question late.
    """

    version: int = 0
    mark: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    nodes: dict[str, list[Any]] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    past: deque[Row] = field(default_factory=lambda: deque(maxlen=MOST_PAST))
    change: BoardChange = BoardChange({}, {}, [], nodes_changed=False)

    def take(self, reply: dict[str, Any]) -> bool:
        """Take the next board in; return whether it is another one. O(jobs)."""
        if reply["mark"] == self.mark or "jobs" not in reply:
            return False
        before, now = self.rows, reply["time"]
        rows, nodes = {row[0]: row for row in reply["jobs"]}, reply["nodes"]
        self.columns, self.users, self.rows = tuple(reply["columns"]), reply["users"], rows
        missing = {key: row for key, row in before.items() if key not in self.rows}
        ended = [self._ended(row, now) for row in missing.values() if self._ran(row, now)]
        self.past.extend(ended)
        finish = self._at("finish_time")
        while self.past and self.past[0][finish] < now - PAST_S:
            self.past.popleft()
        changed = {key: row for key, row in self.rows.items() if before.get(key) != row}
        earlier = missing | {key: before[key] for key in changed if key in before}
        self.change = BoardChange(changed, earlier, ended, nodes_changed=self.nodes != nodes)
        self.nodes = nodes
        self.about = {name: value for name, value in reply.items() if name not in _PARTS}
        self.mark = reply["mark"]  # at the end: an answer that is not understood is asked for again
        self.version += 1
        return True

    def document(self, sees: Sees) -> dict[str, Any]:
        """Return all that a viewer may see."""
        rows, past = self._shown(self.rows.values(), sees), self._shown(self.past, sees)
        return self._part(rows) | {"nodes": self.nodes, "columns": self.columns, "jobs": rows, "past": past}

    def difference(self, sees: Sees) -> dict[str, Any]:
        """Return what the last step changed for a viewer: `jobs` are new or different, `gone` are keys."""
        rows = self._shown(self.change.rows.values(), sees)
        visible = {row[0] for row in rows}
        keys = [row[0] for row in self._shown(self.change.before.values(), sees) if row[0] not in visible]
        part = self._part(rows) | {"jobs": rows, "gone": keys, "past": self._shown(self.change.past, sees)}
        return part | ({"nodes": self.nodes} if self.change.nodes_changed else {})

    def _part(self, rows: Iterable[Row]) -> dict[str, Any]:
        uid = self._at("uid") if self.columns else 0
        users = {str(row[uid]): self.users.get(str(row[uid])) for row in rows if row[uid] is not None}
        return {"version": self.version, "about": self.about, "facts": service_facts(self.about), "users": users}

    def _shown(self, rows: Iterable[Row], sees: Sees) -> list[Row]:
        uid = self._at("uid") if self.columns else 0
        return [row for row in rows if sees(row[uid])]

    def _ran(self, row: Row, now: float) -> bool:
        start = row[self._at("start_time")]
        return start is not None and row[self._at("state")] != "pending" and start <= now

    def _ended(self, row: Row, now: float) -> Row:
        row = list(row)
        row[self._at("state")], row[self._at("finish_time")] = "ended", round(now)
        return row

    def _at(self, column: str) -> int:
        return self.columns.index(column)
