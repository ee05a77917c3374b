"""Time of the steps of a daemon cycle next to OAR, for 1,000 nodes and 10,000 waiting jobs, and for 5,000 on 4 nodes.

Rule: the daemon's own cycle in a dry run with its own planner; only the answer of the database is synthetic
(`oar_records`), and its time is not counted. No job is started, so every repetition sees the same state.
"""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import Any

from pilotfish.adapters.oar.adapter import OarAdapter
from pilotfish.adapters.oar.job_views import OarSelection
from pilotfish.adapters.oar.placement_file import PlacementFile
from pilotfish.adapters.oar.records.world import Database
from pilotfish.benchmarks.oar_records import CORES, QUEUE, Site
from pilotfish.benchmarks.show import heading, ms, table
from pilotfish.benchmarks.slurm_snapshot import Watch, dry_cycle, rows_of
from pilotfish.daemon.loop import Cycle
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType


def cycle_next_to(site: Site, folder: Path, watch: Watch) -> Cycle:
    """Return a daemon's cycle in a dry run; `watch` receives the times of its steps."""
    kind = NodeType("c", CORES, 6.4e10, 1e11)
    cluster = Cluster("large", tuple(Node(name, kind) for name in site.names))
    site.psql = watch.of("command", site.psql)  # type: ignore[method-assign]
    reader = Database(site.psql, "dbname=oar", None, 15.0)
    reader.world = watch.of("read", reader.world)  # type: ignore[method-assign]
    file = PlacementFile(folder / "placements", [f"queue {QUEUE}"], 600.0)
    file.read_only = True
    selection = OarSelection(frozenset({QUEUE}))
    adapter = OarAdapter(cluster, reader, site, selection, file, server=("127.0.0.1", 9), user="pilotfish")
    return dry_cycle(adapter, folder, watch)


def measure(quick: bool) -> None:
    """Print the table."""
    heading("A cycle next to OAR, dry run; target: 600 ms with the answer of the database, 5,000 jobs waiting")
    logging.getLogger("pilotfish").setLevel(logging.ERROR)
    rows = list[list[Any]]()
    for nodes, jobs, waiting in ((4, 1_000, 990), (4, 5_000, 4_990), (1_000, 13_000, 10_000)):
        site = Site(nodes, jobs, waiting)
        site.write()
        with tempfile.TemporaryDirectory() as folder:
            watch = Watch()
            cycle = cycle_next_to(site, Path(folder), watch)
            rows += rows_of(f"{nodes:,} nodes, {jobs:,} jobs", cycle, watch, site.go_on, 2 if quick else 5)
    names = ("site", "cycle", "parse ms", "snapshot", "plan", "rest", "decision ms", "recorded", "all ms")
    table(names, [[*row[:2], *map(ms, row[3:])] for row in rows])
    print("parse: reading the answer; the others as for Slurm. Median of 5 except for the first.")
