"""Rows of Slurm's answers, read one by one.

Rule: a stand-in takes the place of a row that cannot be read. The job behind it is never changed, and its nodes, if
they can be read, count as taken. Other rows are read as usual. Each such row is counted, and reported once.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ....simulate.model.snapshot import JobState
from ..records import SlurmJob

log = logging.getLogger("pilotfish.slurm")
Row = TypeVar("Row")
Record = TypeVar("Record")
#: Longest part of a name or a problem in the log, characters.
SHOWN = 120
#: Slurm knows so many nodes at most.
MOST_NODES = 2**16
#: Shortest bound of a node list, names.
LEAST_BOUND = 1024


class Unreadable:
    """Rows that cannot be read: `now` is their number in the newest answer, by what they describe.

    A node list of more than `most_names` names cannot be read either, because it would take long.
    """

    def __init__(self) -> None:
        self.most_names = MOST_NODES
        self.now: dict[str, int] = {}
        self._reported: dict[str, set[str]] = {}

    def bound(self, nodes: int) -> None:
        """Let a node list have twice as many names as there are nodes, because nodes may be added."""
        self.most_names = min(MOST_NODES, max(LEAST_BOUND, 2 * nodes))

    def note(self, kind: str, problems: dict[str, str], *, whole: bool) -> None:
        """Note the unreadable rows of an answer, and report new ones in one line.

        Args:
            kind: What a row describes, such as `job`.
            problems: Name of a row -> why it cannot be read.
            whole: The answer shows every row, not a selection.
        """
        reported = self._reported.get(kind, set())
        if new := sorted(problems.keys() - reported):
            subject = f"{len(new)} {kind}s" if len(new) > 1 else f"{kind} {new[0][:SHOWN]}"
            why = f"{new[0]}: {problems[new[0]]}" if len(new) > 1 else problems[new[0]]
            log.warning(
                "Slurm's answer about %s cannot be read, so nothing is known of it: %r", subject, why[: 2 * SHOWN]
            )
        earlier = set[str]() if whole or len(reported) > MOST_NODES else reported
        self._reported[kind] = earlier | problems.keys()
        if whole:
            self.now[kind] = len(problems)


def read_rows(
    rows: Iterable[Row],
    read: Callable[[Row], Record],
    stand_in: Callable[[Row], Record | None],
    name: Callable[[Row], str],
    problems: dict[str, str],
) -> list[Record]:
    """Return a record of each row in order; a row without a record and without a stand-in is left out. O(rows).

    Args:
        rows: The rows of an answer.
        read: Converts a row to a record. Whatever it raises makes the row unreadable.
        stand_in: Returns what is known of an unreadable row, None if not even what it describes is known.
        name: Names a row in reports.
        problems: Receives the name of each unreadable row, and why it cannot be read.
    """
    records: list[Record] = []
    for row in rows:
        try:
            records.append(read(row))
        except Exception as problem:  # the text is a user's: no parser is proof against all of them
            problems[name(row)[:SHOWN]] = f"{type(problem).__name__}: {problem}"[:SHOWN]
            if (substitute := _attempt(lambda row=row: stand_in(row))) is not None:  # type: ignore[misc]
                records.append(substitute)
    return records


def unknown_job(fields: dict[str, Callable[[], Any]]) -> SlurmJob | None:
    """Return the stand-in of a job: UNKNOWN, on its nodes unless it is known to wait or to have ended.

    Args:
        fields: Name of a field of `SlurmJob` -> function that reads it and may raise anything. Required: `id`, `state`,
            `placed`. Without `cpus`, `memory` and `nodes` the job has its nodes for itself.
    """
    values: dict[str, Any] = {name: value for name, read in fields.items() if (value := _attempt(read)) is not None}
    if "id" not in values:
        return None
    state = values.pop("state", JobState.UNKNOWN)
    if state.ended or state is JobState.PENDING:
        values.pop("placed", None)
    if not ({"cpus", "memory", "nodes"} <= values.keys() and math.isfinite(values["memory"])):
        values["shares"] = "NO"
    return SlurmJob(**values, state=JobState.UNKNOWN, reason="Slurm's answer about it cannot be read")


def _attempt(read: Callable[[], Record]) -> Record | None:
    try:
        return read()
    except Exception:  # as in `read_rows`
        return None
