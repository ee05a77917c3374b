"""Answers of OAR's database to the statement of `world`, as recorded from an OAR 2.5.9, with variations."""

from __future__ import annotations

import json
from typing import Any

from pilotfish.adapters.oar.records.world import ROW_END, OarState, world_in

NOW = 1795471990.5
ORDINARY = "type = 'default'"
PROPERTIES = "(desktop_computing = 'NO') AND drain='NO'"


def job(number: int = 5, **other: Any) -> dict[str, Any]:
    """A waiting job of one core."""
    recorded = {
        "id": number, "state": "Waiting", "name": "", "user": "games", "project": "default", "queue": "pilot",
        "command": "sleep 1", "properties": PROPERTIES, "kind": "PASSIVE", "reservation": "None",
        "submitted": 1795471944, "decided": 0, "stop": 0, "exit": None, "message": "", "first": number, "types": [],
        "events": [], "holding": False, "began": None, "ended": None, "after": [], "on": [],
        "forms": [[60, [[ORDINARY, [["core", 1]]]]]],
    }  # fmt: skip
    return recorded | other


def answer(
    *jobs: dict[str, Any], resources: list[list[Any]] | None = None, planned: dict[str, Any] | None = None
) -> str:
    """The answer with these jobs, on four nodes of two cores; `planned` as the database has it."""
    four = [[n, f"node{(n + 1) // 2}", "Alive", "NO", 2147483647, str(n)] for n in range(1, 9)]
    queues = {
        "pilot": ["Active", "pilotfish_sched", 5], "default": ["Active", "oar_sched_gantt_with_timesharing", 2],
    }  # fmt: skip
    head = {"now": NOW, "passed": 1795471980, "queues": queues, "jobs": len(jobs), "planned": planned or {}}
    return "".join(json.dumps(row) + ROW_END for row in (head, resources or four, *jobs))


def world(*jobs: dict[str, Any], **other: Any) -> OarState:
    """The world with these jobs; `other` as for `answer`."""
    return world_in(answer(*jobs, **other))
