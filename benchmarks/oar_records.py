"""Synthetic answers of OAR's database for a large site, deterministic and in the exact form of the adapter's statement.

Rule: it replaces only the database and `oarnodes`; all other code is the product's.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from pilotfish.adapters.oar.commands import OarCommands
from pilotfish.adapters.oar.records.requests import ORDINARY
from pilotfish.adapters.oar.records.world import ROW_END

NOW = 1_900_000_000
CORES = 16
QUEUE = "pilotfish"
#: OAR's own property of a job whose user asks for none, and one that its user asks for.
PLAIN, FAST = "(desktop_computing = 'NO') AND drain='NO'", "(fast = 'YES') AND desktop_computing = 'NO' AND drain='NO'"
_WHERE = max(ORDINARY, key=len)


class Site(OarCommands):
    """A site; every second node is fast.

    Args:
        nodes: number of nodes, with CORES cores each.
        jobs: number of jobs.
        waiting: how many of them wait; the others run. Nine of ten are handed over.
    """

    def __init__(self, nodes: int, jobs: int, waiting: int) -> None:
        super().__init__(15.0)
        self.names = [f"c{number:04}" for number in range(1, nodes + 1)]
        self._resources = [
            [n + 1, self.names[n // CORES], "Alive", "NO", 2147483647, str(n + 1)] for n in range(nodes * CORES)
        ]
        draw, free = random.Random(11), list(range(1, nodes * CORES + 1))
        self._rows = [self._row(number, number >= jobs - waiting, free, draw) for number in range(jobs)]

    def psql(self, argv: Sequence[str], environment: Mapping[str, str]) -> str:
        """Return the answer to the statement."""
        return self.answer

    def oar(self, call: str, argv: Sequence[str], *, accepted: Sequence[int] = (0,)) -> str:
        """Return the nodes with a property."""
        chosen = self.names[::2] if FAST in argv else self.names
        return json.dumps({str(number): {"network_address": name} for number, name in enumerate(chosen)})

    def write(self) -> None:
        """Write the answer, as the database does outside of pilotfish."""
        queues = {QUEUE: ["Active", "pilotfish_sched", 5], "default": ["Active", "oar_sched_gantt", 2]}
        head = {"now": NOW, "passed": NOW - 3, "queues": queues, "jobs": len(self._rows), "planned": {}}
        self.answer = "".join(json.dumps(row) + ROW_END for row in (head, self._resources, *self._rows))

    def go_on(self) -> None:
        """End the first ten running jobs, and hand one more job over."""
        for row in [row for row in self._rows if row["state"] == "Running"][:10]:
            row.update(state="Terminated", stop=NOW, ended=NOW, exit=0)
        self._rows.append({**self._rows[-1], "id": 1 + self._rows[-1]["id"], "first": 1 + self._rows[-1]["id"]})
        self.write()

    def _row(self, number: int, waits: bool, free: list[int], draw: random.Random) -> dict[str, Any]:
        cores, limit = draw.choice((1, 1, 2, 4, 8)), draw.choice((600, 3600, 14400))
        on = [] if waits or len(free) < cores else [free.pop() for _ in range(cores)]
        waits, submitted = not on, NOW - draw.randrange(60, 500)
        return {
            "id": 100_000 + number, "state": "Waiting" if waits else "Running", "name": f"step-{number % 97}",
            "user": f"u{draw.randrange(200)}", "project": "default",
            "queue": QUEUE if draw.random() < 0.9 else "default",
            "command": f"./step {number} --input /data/{number:08}", "properties": draw.choice((PLAIN, PLAIN, FAST)),
            "kind": "PASSIVE", "reservation": "None", "submitted": submitted,
            "decided": 0 if waits else submitted + 10, "stop": 0, "exit": None, "message": "",
            "first": 100_000 + number, "types": [], "events": [], "holding": False,
            "began": None if waits else submitted + 12, "ended": None, "after": [], "on": sorted(on),
            "forms": [[limit, [[_WHERE, [["network_address", 1], ["core", cores]]]]]],
        }  # fmt: skip
