"""A cycle over what Slurm prints of 10,000 nodes and 10,000 jobs, step by step: read, snapshot, take in, plan.

Rule: the daemon's own cycle in a dry run with its own planner; only the commands' texts are made up
(`slurm_records`). Nothing is started, so that every repetition finds the same world.
"""

from __future__ import annotations

import logging
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.handover import Selection
from pilotfish.adapters.slurm.transport import ByCommands
from pilotfish.daemon.apply import Recording
from pilotfish.daemon.cycle import Cycle
from pilotfish.daemon.exporter import Metrics
from pilotfish.daemon.guard import Guard
from pilotfish.daemon.journal import Journal
from pilotfish.daemon.planning import Options, simulate_plan
from pilotfish.daemon.window import WINDOW
from pilotfish.simulate.plan import Action
from pilotfish.simulate.platform import Cluster, Node, NodeType

from .show import heading, ms, table
from .slurm_records import CPUS, MEMORY_MIB, NOW, Site

_Result = TypeVar("_Result")


class Watch:
    """Seconds of the steps of a cycle, each since `clear`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def of(self, step: str, call: Callable[..., _Result]) -> Callable[..., _Result]:
        """The call, its time counted under `step`."""

        def timed(*arguments: Any, **options: Any) -> _Result:
            began = time.perf_counter()
            try:
                return call(*arguments, **options)
            finally:
                self.seconds[step] += time.perf_counter() - began

        return timed


class Told(Recording):
    """A dry run whose printing is timed."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(lambda line: None)
        self._watch = watch

    def apply(self, action: Action) -> None:
        """See `Recording`."""
        self._watch.of("told", super().apply)(action)


def cycle_on(runner: Callable[..., str], cluster: Cluster, folder: Path, watch: Watch, **options: Any) -> Cycle:
    """A daemon's cycle that only tells what it would do, over commands that `runner` runs."""
    transport = ByCommands(watch.of("command", runner))
    for name in ("jobs", "nodes", "excluded"):
        setattr(transport, name, watch.of("read", getattr(transport, name)))
    adapter = SlurmAdapter(cluster, transport, Selection())
    adapter.snapshot = watch.of("snapshot", adapter.snapshot)  # type: ignore[method-assign]
    journal = Journal(folder / "journal.sqlite", in_memory=True)
    journal.keep_offers(adapter.name, NOW)
    guard = Guard(bound=1.0, window=50, fallback="loadavg")
    planner = watch.of("plan", simulate_plan)
    wanted = Options(**{"window": WINDOW, **options})
    recording = Told(watch)
    cycle = Cycle(adapter, recording, journal, Metrics(), guard, wanted, time.monotonic, planner=planner)
    for name in ("intend", "conclude"):
        setattr(cycle.ledger, name, watch.of("told", getattr(cycle.ledger, name)))
    return cycle


def measure(quick: bool) -> None:
    """Print the table."""
    heading("A cycle beside Slurm, 10,000 nodes and 10,000 jobs (5,000 run), recorded; target: decided in 500 ms")
    logging.getLogger("pilotfish").setLevel(logging.ERROR)
    rows = []
    for ours in (100, 1_000, 5_000):
        site = Site(10_000, 10_000, ours)
        kind = NodeType("c", CPUS, MEMORY_MIB * 2.0**20, 2e11)
        cluster = Cluster("large", tuple(Node(name, kind) for name in site.names))
        with tempfile.TemporaryDirectory() as folder:
            watch = Watch()
            cycle = cycle_on(site, cluster, Path(folder), watch)
            rows.append([f"{ours:,}", "first", *_one(cycle, watch)])
            for what, news in (("nothing new", lambda: None), ("1 more, 10 end", site.go_on)):
                found = []
                for _ in range(2 if quick else 5):
                    news()
                    found.append(_one(cycle, watch))
                rows.append([f"{ours:,}", what, *(_median(column) for column in zip(*found, strict=True))])
    table(
        ("handed over", "cycle", "text ms", "parse ms", "snapshot", "plan", "rest", "decision ms", "told", "all ms"),
        [[*row[:2], *map(ms, row[2:])] for row in rows],
    )  # fmt: skip
    print("text: making up what the commands print, not counted in the others; parse: reading their tables;")
    print("snapshot: records to views; plan: the search; rest: take in, follow, pose, check, report;")
    print("decision: the three together; told: intents written down and printed, of up to 256 starts a cycle;")
    print("all: and parsing. Median of 5 but for the first.")


def _one(cycle: Cycle, watch: Watch) -> list[float]:
    watch.seconds.clear()
    began = time.perf_counter()
    cycle.run()
    whole, seen = time.perf_counter() - began, watch.seconds
    text, parse = seen["command"], seen["read"] - seen["command"]
    snapshot = seen["snapshot"] - seen["read"]
    rest = whole - text - parse - snapshot - seen["plan"] - seen["told"]
    decision = snapshot + seen["plan"] + rest
    return [text, parse, snapshot, seen["plan"], rest, decision, seen["told"], whole - text]


def _median(values: tuple[float, ...]) -> float:
    return statistics.median(values)
