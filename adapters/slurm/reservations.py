"""Reservations: when which nodes are somebody's.

Rule: pure, and on the safe side: a job that has no reservation stays off the nodes of every one that begins before the
job's time limit is over, whatever its flags, and whoever may use it.
Source: scontrol(1) of Slurm 22.05, `show reservation`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from . import scontrol
from .squeue import nodes as node_names
from .values import moment, word


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that are kept from `start` to `end`, epoch seconds."""

    name: str
    start: float
    end: float
    nodes: frozenset[str]


def parse(text: str) -> list[Reservation]:
    """The reservations that keep nodes. Raises ParseError; ValueError for a time that cannot be read."""
    found = []
    for words in scontrol.lines(text, "ReservationName"):
        names = frozenset(node_names(word(words.get("Nodes", ""))))
        start, end = (moment(words.get(key, "")) for key in ("StartTime", "EndTime"))
        if names:
            found.append(Reservation(words["ReservationName"], start or 0.0, end or math.inf, names))
    return found
