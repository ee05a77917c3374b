"""The agents of the thesis against its rules, on its windows: the squared one, and for one objective the others.

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
from pilotfish.learning.agents.pair_training import AGENTS, PairTraining, TrainingOptions
from pilotfish.learning.environments import thesis
from pilotfish.learning.environments.pairs import OBJECTIVES
from pilotfish.learning.thesis_table import Ratio, ThesisTable, thesis_table
from pilotfish.simulate.learned.pair_heads import PairChooser
from pilotfish.simulate.learned.pair_network import PairNetwork
from pilotfish.simulate.model.workload import Workload

TRACE = "lublin_256.swf.gz"
#: Seeds of the squared agent, and of each other.
SEEDS, OTHER_SEEDS = 5, 3


def trained(jobs: Workload, objective: str, agent: str, seed: int, epochs: int) -> tuple[PairChooser, float]:
    """Train an agent; return it, and the seconds of CPU time of the training."""
    begin, options = time.process_time(), TrainingOptions(epochs=epochs, agent=agent)
    training = PairTraining(*thesis.training_worlds(jobs, objective), options, seed)
    training.run(epochs)
    networks = [PairNetwork(layers) for layers in training.networks]
    return PairChooser(options.head, [network.scores for network in networks]), time.process_time() - begin


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the table of each objective."""
    trace = read_workload(traces / TRACE) if traces is not None else lublin(10_000, 256, seed=0)
    jobs, epochs = thesis.jobs_of(trace), 10 if quick else TrainingOptions().epochs
    for objective in list(OBJECTIVES)[:1] if quick else OBJECTIVES:
        seeds = {"squared": 1 if quick else SEEDS}
        if objective == "bsld":
            seeds = dict.fromkeys(AGENTS, 1 if quick else OTHER_SEEDS) | seeds
        agents = {
            agent: [trained(jobs, objective, agent, seed, epochs) for seed in range(1, count + 1)]
            for agent, count in seeds.items()
        }
        choosers = {agent: [chooser for chooser, _ in trainings] for agent, trainings in agents.items()}
        results = thesis_table(jobs, objective, choosers)
        heading(f"Agents, {objective}, {results.windows} windows of 1,024 jobs: {epochs} epochs")
        _show(results, published=traces is not None)
        for agent, trainings in agents.items():
            mean_s = sum(took_s for _, took_s in trainings) / len(trainings)
            print(f"training, {agent}: {number(mean_s)} s of CPU time a seed")


def _show(results: ThesisTable, *, published: bool) -> None:
    rows = []
    for one in results.contests:
        figures = [number(float(value)) for value in (one.costs.mean(), np.median(one.costs), one.costs.max())]
        shown = number(one.published) if published and one.blocks else "-"
        against = _text(one.ratios["squared"])
        rows.append((float(one.costs.mean()), (one.rule.name, "blocks" * one.blocks, *figures, shown, against)))
    table((results.objective, "", "mean", "median", "max", "thesis", "squared / it"), [row for _, row in sorted(rows)])
    for agent, seeds in results.agents.items():
        figure = thesis.PUBLISHED_AGENTS.get((agent, results.objective))
        shown = f"; in the thesis {number(figure)}" if published and figure is not None else ""
        print(f"seeds of {agent}: {', '.join(number(float(one.mean())) for one in seeds)}{shown}")
    for text, blocks in (("that block", True), ("with the choice of the agents", False)):
        best = results.best(blocks=blocks)
        ratios = ", ".join(f"{agent} {_text(ratio)}" for agent, ratio in best.ratios.items())
        print(f"best rule {text}: {best.rule.name}; to it: {ratios}")
    for agent in list(results.agents)[1:]:
        print(f"{agent} / squared: {_text(results.against(agent, 'squared'))}")


def _text(one: Ratio) -> str:
    return f"{one.ratio:.2f} [{one.low:.2f}, {one.high:.2f}]"
