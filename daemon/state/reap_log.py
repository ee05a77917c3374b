"""The record of what the reaper did, for the audit: it works without the daemon, whose journal it cannot write.

Rule: a line is one write, on disk when the reaper has made it. What the reaper did while the file could not be written
is not known; it releases jobs nevertheless. Two files of at most LARGEST bytes are kept.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ...adapters.base import Reaped
from ...trust import open_file
from .audit import LONGEST_TEXT, AuditQuestion

#: Name of the file in the adapter's state directory, and of the one before it.
FILE, EARLIER = "reaped.jsonl", "reaped.1.jsonl"
#: Bytes after which a new file is begun.
LARGEST = 2**20


def note_reaped(folder: Path, reaped: Reaped, time: float) -> None:
    """Write down what the reaper did. Raises OSError.

    Args:
        folder: the adapter's state directory.
        reaped: what was done.
        time: epoch seconds.
    """
    path = folder / FILE
    if path.exists() and path.stat().st_size > LARGEST:
        os.replace(path, folder / EARLIER)
    line = {
        "time": time,
        "target": reaped.key,
        "owner": reaped.owner,
        "why": reaped.why,
        "before": dict(reaped.before),
        "outcome": f"refused: {reaped.error}"[:LONGEST_TEXT] if reaped.error else "done",
    }
    with os.fdopen(open_file(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as file:
        file.write(json.dumps(line).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_reaped(folder: Path, question: AuditQuestion) -> list[dict[str, Any]]:
    """Return what the reaper did as lines of the audit, the oldest first; a line that is cut off is left out.

    Args:
        folder: the adapter's state directory.
        question: the selection.
    """
    lines = list[dict[str, Any]]()
    for name in (EARLIER, FILE):
        try:
            with os.fdopen(open_file(folder / name), "rb") as file:
                rows = file.read(2 * LARGEST).splitlines()
        except OSError:
            continue
        lines += (line for row in rows if (line := _line(row)) is not None and _is_asked_for(line, question))
    return lines[-question.most - 1 :]


def _is_asked_for(line: dict[str, Any], question: AuditQuestion) -> bool:
    is_of = question.owner is None or line["owner"] == question.owner
    return is_of and line["time"] >= question.since and (question.keys is None or line["target"] in question.keys)


def _line(row: bytes) -> dict[str, Any] | None:
    """Return a row as a line of the audit, None if it cannot be read."""
    try:
        line = json.loads(row)
        time, owner = float(line["time"]), line["owner"]
        texts = {name: str(line[name])[:LONGEST_TEXT] for name in ("target", "why", "outcome")}
        before = {str(name): value for name, value in line["before"].items() if isinstance(value, str | int | float)}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    if owner is not None and not isinstance(owner, int):
        return None
    facts = {"time": time, "kind": "write", "action": "release", "owner": owner, "by": "reaper", "since": time}
    return facts | {"before": before, "after": {"state": "the resource manager's"}, "number": 1, **texts}
