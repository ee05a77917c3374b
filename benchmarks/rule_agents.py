"""IRMaSim's agents, which choose pairs of rules: the tables of `pilotfish evaluate --as irmasim`, and their time."""

from __future__ import annotations

import time

from pilotfish.benchmarks.show import heading, number, table
from pilotfish.learning.irmasim_tables import SEEDS, TRACE_TRAINING, TRACES, irmasim_tables


def measure(quick: bool) -> None:
    """Print the tables."""
    began = time.process_time()
    sizes = (2, 5, 20) if quick else (SEEDS, TRACES, TRACE_TRAINING.updates)
    for one in irmasim_tables(*sizes):
        heading(one.title)
        table(one.columns, one.rows)
    print(f"{number(time.process_time() - began)} s of CPU time")
