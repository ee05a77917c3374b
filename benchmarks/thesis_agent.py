"""The squared agent against the rules of the thesis that it comes from, on the windows of the thesis.

Without the published trace the jobs are drawn, and the published numbers are not comparable. Rules that block are those
of the thesis; masked rules choose among what fits, as the agent does. Training and test windows overlap, as in the
thesis.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from pilotfish.api import lublin, read_workload
from pilotfish.benchmarks.show import heading, number, table
from pilotfish.learning.agents.squared import SquaredTraining, TrainingOptions
from pilotfish.learning.environments import thesis
from pilotfish.learning.environments.pairs import OBJECTIVES
from pilotfish.learning.thesis_table import ThesisTable, thesis_table
from pilotfish.simulate.learned.pair_network import PairNetwork
from pilotfish.simulate.model.workload import Workload

TRACE = "lublin_256.swf.gz"
SEEDS = 5


def trained(jobs: Workload, objective: str, seed: int, epochs: int) -> tuple[PairNetwork, float]:
    """Train an agent; return its network, and the seconds of CPU time of the training."""
    begin = time.process_time()
    training = SquaredTraining(*thesis.training_worlds(jobs, objective), TrainingOptions(epochs=epochs), seed)
    training.run(epochs)
    return PairNetwork(training.layers), time.process_time() - begin


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the table of each objective."""
    trace = read_workload(traces / TRACE) if traces is not None else lublin(10_000, 256, seed=0)
    jobs, seeds, epochs = thesis.jobs_of(trace), 1 if quick else SEEDS, 10 if quick else TrainingOptions().epochs
    for objective in list(OBJECTIVES)[:1] if quick else OBJECTIVES:
        agents = [trained(jobs, objective, seed, epochs) for seed in range(1, seeds + 1)]
        results = thesis_table(jobs, objective, [network for network, _ in agents])
        heading(f"Squared agent, {objective}, {results.windows} windows of 1,024 jobs: {seeds} seeds, {epochs} epochs")
        _show(results, published=traces is not None)
        print(f"training: {number(sum(took_s for _, took_s in agents) / seeds)} s of CPU time a seed")


def _show(results: ThesisTable, *, published: bool) -> None:
    rows = []
    for one in results.contests:
        figures = [number(float(value)) for value in (one.costs.mean(), np.median(one.costs), one.costs.max())]
        shown = number(one.published) if published and one.blocks else "-"
        against = f"{one.ratio:.2f} [{one.low:.2f}, {one.high:.2f}]"
        rows.append((float(one.costs.mean()), (one.rule.name, "blocks" * one.blocks, *figures, shown, against)))
    table((results.objective, "", "mean", "median", "max", "thesis", "agent / it"), [row for _, row in sorted(rows)])
    figure = f"; in the thesis {number(thesis.PUBLISHED_AGENT[results.objective])}" if published else ""
    print(f"seeds of the agent: {', '.join(number(float(one.mean())) for one in results.agents)}{figure}")
    for text, blocks in (("that block", True), ("with the choice of the agent", False)):
        best = results.best(blocks=blocks)
        print(f"best rule {text}: {best.rule.name}; agent / it {best.ratio:.2f} [{best.low:.2f}, {best.high:.2f}]")
