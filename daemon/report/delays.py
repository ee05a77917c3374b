"""The delays of this site as distributions, kept in a file: what real time adds to a simulated schedule.

Rule: a delay is kept as it was measured, also below 0 where times are stated in whole seconds: those errors cancel out
in sums. Only the NEWEST of each phase count. A file that cannot be read counts as missing.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...formats.documents.atomic_write import write_whole
from ...trust import open_file

SCHEMA = "pilotfish/delays/v1"
#: `submitted`: until a snapshot shows a job; `seen`: until one shows an end; the others as in `placement_latency`.
PHASES = ("submitted", "seen", "decided", "sent", "started")
NEWEST = 500
#: Name of the file in the service's state directory; most of its bytes that are read.
FILE, LARGEST = "delays.json", 2**20


class Delays:
    """The newest delays of each phase, seconds.

    Args:
        samples: by phase, the oldest first; other phases are ignored.
    """

    def __init__(self, samples: Mapping[str, Iterable[float]] = {}) -> None:
        self.samples = {phase: deque(samples.get(phase, ()), maxlen=NEWEST) for phase in PHASES}

    def add(self, phase: str, seconds: float) -> None:
        """Add a measured delay of one of PHASES."""
        self.samples[phase].append(seconds)

    def median(self, phase: str, newest: int) -> float:
        """Return the median of the newest of a phase, which has one at least, seconds."""
        return statistics.median([*self.samples[phase]][-newest:])

    @property
    def complete(self) -> bool:
        """True if each phase was measured."""
        return all(self.samples.values())

    def write(self, path: Path) -> None:
        """Write the file. Raises OSError."""
        rounded = {phase: [round(delay, 4) for delay in delays] for phase, delays in self.samples.items()}
        write_whole(path, json.dumps({"schema": SCHEMA, "seconds": rounded}) + "\n")


def read_delays(path: Path) -> Delays:
    """Return the delays of a file; none if it does not exist, cannot be read or is damaged."""
    try:
        with os.fdopen(open_file(path), "rb") as file:
            document: Any = json.loads(file.read(LARGEST))
        samples = {phase: [float(delay) for delay in document["seconds"].get(phase, ())] for phase in PHASES}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Delays()
    if not all(math.isfinite(delay) for values in samples.values() for delay in values):
        return Delays()
    return Delays(samples)
