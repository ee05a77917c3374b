"""Time of the steps of a daemon cycle over Slurm's output for 10,000 nodes and 10,000 jobs.

Rule: the daemon's own cycle in a dry run with its own planner; only the output of the commands is synthetic
(`slurm_records`). No job is started, so every repetition sees the same state.
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

from pilotfish.adapters.base import Adapter
from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.benchmarks.show import heading, ms, table
from pilotfish.benchmarks.slurm_records import CPUS, MEMORY_MIB, NOW, Site
from pilotfish.daemon.apply import Recording
from pilotfish.daemon.assembly import Deciding, assemble
from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.loop import Cycle
from pilotfish.daemon.planning.guarded_planner import simulate_plan
from pilotfish.daemon.planning.problem import WINDOW, Options
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.journal import Journal
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.plan import Action

_Result = TypeVar("_Result")


class Watch:
    """Seconds spent in each step of a cycle since the last `clear`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def of(self, step: str, call: Callable[..., _Result]) -> Callable[..., _Result]:
        """Return the call with its time added to `step`."""

        def timed(*arguments: Any, **options: Any) -> _Result:
            began = time.perf_counter()
            try:
                return call(*arguments, **options)
            finally:
                self.seconds[step] += time.perf_counter() - began

        return timed


class TimedRecording(Recording):
    """A dry run whose printing is timed."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(lambda line: None)
        self._watch = watch

    def apply(self, action: Action) -> None:
        """See `Recording`."""
        self._watch.of("recorded", super().apply)(action)


def cycle_on(runner: Callable[..., str], cluster: Cluster, folder: Path, watch: Watch, **options: Any) -> Cycle:
    """Return a daemon's cycle in a dry run.

    Args:
        runner: runs Slurm's commands.
        cluster: the cluster.
        folder: folder of the journal.
        watch: receives the times of the steps.
        options: options of the planner.
    """
    transport = CommandTransport(watch.of("command", runner))
    for name in ("jobs", "nodes", "excluded"):
        setattr(transport, name, watch.of("read", getattr(transport, name)))
    return dry_cycle(SlurmAdapter(cluster, transport, SlurmSelection()), folder, watch, **options)


def dry_cycle(adapter: Adapter, folder: Path, watch: Watch, **options: Any) -> Cycle:
    """Return a daemon's cycle in a dry run.

    Args:
        adapter: of the resource manager.
        folder: folder of the journal.
        watch: receives the times of the steps.
        options: options of the planner.
    """
    adapter.snapshot = watch.of("snapshot", adapter.snapshot)  # type: ignore[method-assign]
    journal = Journal(folder / "journal.sqlite", in_memory=True)
    journal.keep_handed_over(adapter.name, NOW)
    guard = Guard(bound=1.0, window=50, fallback="loadavg")
    planner = watch.of("plan", simulate_plan)
    settings = Options(**{"window": WINDOW, **options})
    recording = TimedRecording(watch)
    cycle = assemble(adapter, recording, journal, Metrics(), Deciding(guard, settings), time.monotonic, planner=planner)
    for name in ("intend", "conclude"):
        setattr(cycle.tracker, name, watch.of("recorded", getattr(cycle.tracker, name)))
    return cycle


def measure(quick: bool) -> None:
    """Print the table."""
    heading("A cycle with Slurm, 10,000 nodes and 10,000 jobs (5,000 run), dry run; target: a decision in 500 ms")
    logging.getLogger("pilotfish").setLevel(logging.ERROR)
    rows = list[list[Any]]()
    for handed_over in (100, 1_000, 5_000):
        site = Site(10_000, 10_000, handed_over)
        kind = NodeType("c", CPUS, MEMORY_MIB * 2.0**20, 2e11)
        cluster = Cluster("large", tuple(Node(name, kind) for name in site.names))
        with tempfile.TemporaryDirectory() as folder:
            watch = Watch()
            cycle = cycle_on(site, cluster, Path(folder), watch)
            rows += rows_of(f"{handed_over:,}", cycle, watch, site.go_on, 2 if quick else 5)
    table(
        ("handed over", "cycle", "text ms", "parse ms", "snapshot", "plan", "rest", "decision ms", "recorded",
         "all ms"),
        [[*row[:2], *map(ms, row[2:])] for row in rows],
    )  # fmt: skip
    print("text: generating the commands' output, not included in the others; parse: reading their tables;")
    print("snapshot: records to views; plan: the search; rest: update the state, build the problem, check, report;")
    print("decision: snapshot, plan and rest; recorded: intents written and printed, for up to 256 starts a cycle;")
    print("all: decision, recorded and parse. Median of 5 except for the first.")


def rows_of(name: str, cycle: Cycle, watch: Watch, news: Callable[[], object], repeats: int) -> list[list[Any]]:
    """Return the rows of a site: its first cycle, and the medians of later ones without and with news, seconds."""
    rows: list[list[Any]] = [[name, "first", *steps_of(cycle, watch)]]
    while cycle.trigger.unfinished:  # each cycle takes in a bounded number of jobs
        cycle.run()
    steps: tuple[tuple[str, Callable[[], object]], ...] = (("nothing new", int), ("1 more, 10 end", news))
    for step, change in steps:
        samples = []
        for _ in range(repeats):
            change()
            samples.append(steps_of(cycle, watch))
        rows.append([name, step, *(statistics.median(column) for column in zip(*samples, strict=True))])
    return rows


def steps_of(cycle: Cycle, watch: Watch) -> list[float]:
    """Run a cycle; return the seconds of its steps, as the table has them."""
    watch.seconds.clear()
    began = time.perf_counter()
    cycle.run()
    total, seconds = time.perf_counter() - began, watch.seconds
    text, parse = seconds["command"], seconds["read"] - seconds["command"]
    snapshot = seconds["snapshot"] - seconds["read"]
    remainder = total - text - parse - snapshot - seconds["plan"] - seconds["recorded"]
    decision = snapshot + seconds["plan"] + remainder
    return [text, parse, snapshot, seconds["plan"], remainder, decision, seconds["recorded"], total - text]
