"""Options of the commands that replay traces: the jobs, the machine, the results.

Rule: each group checks its own options, before any trace is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from ...formats.documents.atomic_write import check_folder
from ...formats.replays.job_selection import parse_selection
from ...simulate.errors import ConfigError
from ...simulate.model.network import SOLVERS
from ...simulate.model.workload import LONGEST
from ...simulate.replay.replay import LARGEST
from ...simulate.replay.select import Select
from ...simulate.world.known_run_times import RUNTIMES
from .. import options
from ..options import flag, option
from ..usage_errors import bad, bad_value, not_among

RESOURCES = ("core", "node")
#: Orders of the ids of jobs that are submitted at one instant: 10 before 2, as Batsim has it, or 2 before 10.
TIES = ("text", "natural")


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The jobs of a replay: traces, whose jobs are joined, and what is taken from them."""

    HEADING: ClassVar = "Jobs"
    traces: options.Traces
    select: Annotated[
        list[str] | None,
        option("KEY=VALUE,...", "Only some jobs: from, until (seconds of the trace), users, min_size, max_size; or "
               "load=X: X times as fast."),
    ] = None  # fmt: skip
    ties: Annotated[
        str, option("ORDER", "Order of a Batsim workload's jobs of one instant: ids as text, or natural.", words=TIES)
    ] = TIES[0]
    skip_invalid: options.SkipInvalid = False
    store: options.Store = None

    def __post_init__(self) -> None:
        if self.ties not in TIES:
            raise not_among("--ties", self.ties, "an order of ids", TIES)
        _ = self.selection

    @property
    def selection(self) -> Select:
        """The selected jobs, and how much faster they arrive. Raises typer.BadParameter."""
        try:
            return parse_selection(self.select or ())
        except ConfigError as error:
            raise bad_value("--select", ConfigError("", "", f"{error.key}: {error.problem}", error.allowed)) from None

    @property
    def natural(self) -> bool:
        """Jobs that a Batsim workload submits at one instant come in the natural order of their ids."""
        return self.ties == "natural"


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """The machine of a replay: the nodes of a cluster file, or a number of processors, or as the traces say."""

    HEADING: ClassVar = "Machine"
    cluster: options.ClusterFile = None
    procs: options.Procs = None
    resource: Annotated[str, option("KIND", "What jobs request of a cluster: core or node.", words=RESOURCES)] = "core"
    contention: Annotated[
        bool, flag("--contention", "Jobs on one node slow each other down, as the cluster file says.")
    ] = False
    network_solver: Annotated[
        str | None,
        option("KIND", "How jobs share links: max-min, or simgrid (as its solver).", words=SOLVERS, default=SOLVERS[0]),
    ] = None

    def __post_init__(self) -> None:
        if self.contention and not self.has_cores:
            raise bad("--contention", "jobs contend on the nodes of a cluster (needed: --cluster, resource core)")
        if self.procs is not None and self.cluster is not None:
            raise bad("--procs", "not together with --cluster")
        if self.procs is not None and not 1 <= self.procs <= LARGEST:
            raise bad("--procs", f"{self.procs} (allowed: 1 to {LARGEST})")
        if self.resource not in RESOURCES:
            raise not_among("--resource", self.resource, "a kind of resource", RESOURCES)
        if self.network_solver is not None and self.network_solver not in SOLVERS:
            raise not_among("--network-solver", self.network_solver, "a way to share links", SOLVERS)
        if self.network_solver is not None and self.cluster is None:
            raise bad("--network-solver", "a number of processors has no network (needed: --cluster)")

    @property
    def has_cores(self) -> bool:
        """The resources are the cores of a cluster's nodes."""
        return self.cluster is not None and self.resource != "node"


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Destination of the results of a replay."""

    HEADING: ClassVar = "Output"
    out: Annotated[Path | None, option("DIR", "Write jobs.csv, schedule.csv, summary.json.", "--out", "-o")] = None
    as_batsim: Annotated[
        bool, flag("--as-batsim", "Write them as Batsim does: jobs as they end, states from second 0.")
    ] = False
    as_json: options.Json = False

    def __post_init__(self) -> None:
        if self.out is not None:
            check_folder(self.out)
        elif self.as_batsim:
            raise bad("--as-batsim", "nothing is written (needed: --out)")


def check_run_times(kind: str) -> None:
    """Check the value of --runtimes. Raises typer.BadParameter."""
    if kind not in RUNTIMES:
        raise not_among("--runtimes", kind, "a kind of run time", RUNTIMES)


def decision_seconds(text: str) -> float | None:
    """Return simulated seconds of each decision; None = as measured. Raises typer.BadParameter."""
    if text in ("ignore", "measured"):
        return 0.0 if text == "ignore" else None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= LONGEST:
        raise bad("--decision-time", f"{text!r} (allowed: ignore, measured, or seconds from 0 to {LONGEST:g})")
    return seconds
