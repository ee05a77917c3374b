"""Reduction of the makespan by `lookahead` relative to `mom`, and share of the gap to the lower bound that it closes.

Rule: both are whole plans of the product; means are over instances with equal weights.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pilotfish.benchmarks.paper_servers import MODELS, servers
from pilotfish.benchmarks.show import heading, number, table
from pilotfish.formats.workflows.workflow import read_workflow
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.generate.published_workflows import SHAPES
from pilotfish.simulate.generate.workflows import stream
from pilotfish.simulate.model.job import Workflow
from pilotfish.simulate.model.plan import Plan
from pilotfish.simulate.planning.planner import plan


def instances(quick: bool) -> dict[str, list[tuple[Workflow, int]]]:
    """Return workflows with their number of servers, by kind."""
    count, draw = (4 if quick else 30), random.Random(7)
    wide = [(stream(draw.choice((50, 75, 100)), shape="shallow", seed=seed), 2 + seed % 4) for seed in range(count)]
    shapes = list(SHAPES)
    derived = [
        (stream(draw.choice((50, 75, 100)), shape=shapes[seed % len(shapes)], seed=seed), 2 + seed // 4 % 4)
        for seed in range(count)
    ]
    return {"random wide": wide, "WfCommons-derived": derived}


def _traces(folder: Path, most: int = 1000) -> list[Workflow]:
    """Return the workflows of WfFormat files below a folder with at most `most` jobs; other JSON files are ignored."""
    workflows = list[Workflow]()
    for path in sorted(folder.rglob("*.json")):
        with suppress(ConfigError):
            workflows.append(read_workflow(path))
    return [workflow for workflow in workflows if len(workflow.jobs) <= most]


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the tables."""
    heading("lookahead against mom; targets: 10 % lower on wide DAGs (paper's model), half of the gap (ours)")
    kinds = instances(quick)
    if traces is not None:
        kinds["WfCommons traces"] = [(workflow, 3) for workflow in _traces(traces)]
    rows = [_row(kind, cases, paper) for paper in (True, False) for kind, cases in kinds.items()]
    table(
        ("model", "DAGs", "instances", "mean reduction", "median", "least", "most", "gap closed", "mom over bound",
         "lookahead over bound", "mom s", "lookahead s"),
        rows,
    )  # fmt: skip
    print(f"paper's: {MODELS[True]}; ours: {MODELS[False]}; 2 to 5 servers, 50 to 100 jobs, default budget.")
    print("gap closed: mean share of (mom - lower bound) that lookahead takes away; s: mean seconds for a plan.")


def _row(kind: str, cases: Sequence[tuple[Workflow, int]], paper: bool) -> list[object]:
    reductions, closed, seconds = list[float](), list[float](), dict[str, list[float]]()
    over: dict[str, list[float]] = {"mom": [], "lookahead": []}
    for workflow, count in cases:
        cluster, plans = servers(count, paper), dict[str, Plan]()
        for policy in over:
            began = time.perf_counter()
            plans[policy] = plan(workflow, cluster, policy=policy, explain=False)
            seconds.setdefault(policy, []).append(time.perf_counter() - began)
            over[policy].append(plans[policy].makespan / plans[policy].lower_bound - 1.0)
        mom, lookahead, bound = plans["mom"].makespan, plans["lookahead"].makespan, plans["mom"].lower_bound
        reductions.append(1.0 - lookahead / mom)
        if mom > bound * (1.0 + 1e-9):
            closed.append((mom - lookahead) / (mom - bound))
    return [
        "paper's" if paper else "ours", kind, len(cases), percent(statistics.mean(reductions)),
        percent(statistics.median(reductions)), percent(min(reductions)), percent(max(reductions)),
        percent(statistics.mean(closed)) if closed else "-", percent(statistics.mean(over["mom"])),
        percent(statistics.mean(over["lookahead"])), number(statistics.mean(seconds["mom"])),
        number(statistics.mean(seconds["lookahead"])),
    ]  # fmt: skip


def percent(share: float) -> str:
    """Format a share in percent with one decimal."""
    return f"{round(share * 100, 1) + 0.0:.1f} %"
