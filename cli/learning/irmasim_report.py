"""`pilotfish evaluate --as irmasim`: agents that choose rules, next to the figures of IRMaSim's paper and examples."""

from __future__ import annotations

from dataclasses import asdict

from ...learning.irmasim_tables import SEEDS, TRACE_TRAINING, TRACES, count_of_agents, irmasim_tables
from ...simulate.world.rule_options import KERNEL
from ..kernel_loading import load_kernels
from ..output.documents import print_json
from ..output.text import Screen, TextColumn, numbers, progress_bar

#: Updates of the agents of the batches.
UPDATES = TRACE_TRAINING.updates


def show_irmasim(*, as_json: bool) -> int:
    """Train the agents and print the tables, each as soon as it is known; or a document."""
    load_kernels(KERNEL)
    bar = progress_bar(count_of_agents(SEEDS), "agents")
    screen, documents = Screen(), []
    try:
        for table in irmasim_tables(SEEDS, TRACES, UPDATES, lambda: bar.advance(bar.task_ids[0]) if bar else None):
            documents.append(asdict(table))
            if not as_json:
                screen.title(table.title)
                screen.named_table([TextColumn(table.columns[0]), *numbers(*table.columns[1:])], table.rows)
                screen.put("")
    finally:
        if bar is not None:
            bar.stop()
    if as_json:
        print_json("irmasim", {"seeds": SEEDS, "tables": documents})
    return 0
