"""The cost of a replay under Slurm's rules against the length of the queue, the nodes and bf_max_job_test, as a plot.

Rule: the queue keeps its length: large jobs run for longer than the measured hours, and a short job comes every minute,
so that no pass can be left out. The figure is the CPU time of one simulated hour, the least of several.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from pilotfish.cli.charts.colours import SERIES
from pilotfish.cli.charts.figure import Axis, Figure, Line, Panel, Points
from pilotfish.cli.charts.terminal_backend import draw
from pilotfish.simulate.kernels.object_cache import load
from pilotfish.simulate.slurm.site import Site, SiteJob, SiteNode, SitePartition, SiteRules
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from pilotfish.simulate.slurm.twin import ADVANCE

from .show import heading, number, table

#: Simulated seconds before the measurement, and in it.
WARM_S, MEASURED_S = 1800.0, 3600.0
QUEUE, NODES, TESTS = 1000, 1000, 500
CHOICES = {
    "waiting jobs": (100, 300, 1000, 3000),
    "nodes": (250, 1000, 4000, 8000),
    "bf_max_job_test": (50, 200, 500, 1000),
}


def measure(quick: bool) -> None:
    """Print and draw the CPU time of a simulated hour."""
    heading("Slurm's twin: CPU time of one simulated hour, ms, least of several")
    panels, rows = [], []
    for (title, choices), colour in zip(CHOICES.items(), SERIES, strict=False):
        values = choices[:3] if quick else choices
        costs = []
        for value in values:
            sizes = {"waiting jobs": QUEUE, "nodes": NODES, "bf_max_job_test": TESTS} | {title: value}
            site = site_of(*sizes.values())
            costs.append(1e3 * min(cost_s(site) for _ in range(1 if quick else 3)))
            rows.append((title, f"{value:,}", number(costs[-1])))
        x, y = np.array(values, float), np.array(costs)
        x_axis = Axis(title, x[0], x[-1], log=True, marks=[(float(value), f"{value:,}") for value in values])
        panels.append([Panel(x_axis, Axis("ms"), [Line(title, colour, x, y), Points(title, colour, x, y)], title)])
    table(("varied", "value", "ms"), rows)
    notes = [f"else {QUEUE:,} waiting jobs, {NODES:,} nodes, bf_max_job_test={TESTS}"]
    for line in draw(Figure("CPU time of one simulated hour", panels, notes=notes, shared=False), 80):
        print(line.plain)


def site_of(waiting: int, nodes: int, tests: int) -> Site:
    """Return a machine that is 95 % full, with waiting jobs that need more, and a short job each minute.

    Args:
        waiting: number of jobs in the queue.
        nodes: of the machine.
        tests: bf_max_job_test.
    """
    draw_sizes = np.random.default_rng(0)
    sizes = np.exp(draw_sizes.uniform(np.log(nodes / 15), np.log(nodes / 3), waiting)).astype(int) + 1
    limits = draw_sizes.integers(600, 1440, waiting)

    def job(number: int, submit: float, size: int, limit_min: int, run_s: float) -> SiteJob:
        return SiteJob(
            f"{number}", f"j{number}", f"u{number % 50}", "a", "", ("all",), submit, limit_min=limit_min,
            min_nodes=size, max_nodes=size, tasks=size, is_exclusive=True, run_s=run_s,
        )  # fmt: skip

    jobs = [job(number, 0.0, max(1, nodes // 20), 1440, 80_000.0) for number in range(19)]
    jobs += [
        job(19 + number, 1.0, size, limit, 60.0 * limit)
        for number, (size, limit) in enumerate(zip(sizes.tolist(), limits.tolist(), strict=True))
    ]
    jobs += [job(len(jobs) + minute, 60.0 * minute + 2.0, 1, 5, 120.0) for minute in range(240)]
    names = tuple(f"n{number:05d}" for number in range(nodes))
    rules = SiteRules(version=(22, 5))
    rules = replace(rules, scheduler=replace(rules.scheduler, bf_max_job_test=tests, bf_continue=True))
    return Site(
        rules, tuple(SiteNode(name, cpus=32, cores=32) for name in names),
        (SitePartition("all", names, is_default=True),), jobs=tuple(sorted(jobs, key=lambda one: one.submit)),
    )  # fmt: skip


def cost_s(site: Site) -> float:
    """Return the CPU seconds of the measured hour."""
    site = completed(site)
    block = site_block(site, Phases.drawn(site, 0), seed=0)
    call = load("slurm.site_requests")
    call(block.address, ADVANCE, WARM_S)
    began = time.process_time()
    call(block.address, ADVANCE, WARM_S + MEASURED_S)
    return time.process_time() - began
