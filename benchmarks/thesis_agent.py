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
from pilotfish.learning.agents.squared import TrainingOptions, train
from pilotfish.learning.environments import thesis
from pilotfish.learning.environments.pair_rules import BLOCKING, NODE_ORDERS, PairRule, masked_rules
from pilotfish.learning.environments.pairs import OBJECTIVES, PairEnvironment
from pilotfish.learning.evaluation import interval
from pilotfish.simulate.arrays import Array
from pilotfish.simulate.model.workload import Workload

TRACE = "lublin_256.swf.gz"
#: Means over the windows, printed in the thesis: (objective, job, node), with "agent" for the squared agent.
PUBLISHED = {
    ("bsld", "random"): (26.9, 61.3, 40.7), ("bsld", "first"): (35.9, 68.4, 38.7),
    ("bsld", "shortest"): (14.0, 25.1, 18.3), ("bsld", "smallest"): (16.5, 27.5, 20.1),
    ("sld", "random"): (42.7, 98.2, 68.0), ("sld", "first"): (58.1, 109.8, 63.4),
    ("sld", "shortest"): (21.6, 39.1, 28.8), ("sld", "smallest"): (26.7, 44.3, 33.4),
    ("wait", "random"): (943, 2164, 1415), ("wait", "first"): (1207, 2395, 1327),
    ("wait", "shortest"): (650, 1261, 856), ("wait", "smallest"): (643, 1136, 789),
}  # fmt: skip
PUBLISHED_AGENT = {"bsld": 9.70, "sld": 13.9, "wait": 439.0}
#: Seeds of rules that draw, and of the agent.
DRAWN_SEEDS, AGENT_SEEDS = 5, 5
#: Episodes of an epoch, as long as the test windows; the thesis has 20 of 256 jobs, which never see a long queue.
COPIES = 5


def rule_costs(jobs: Workload, objective: str, due: str, rule: PairRule) -> Array:
    """Return the mean objective of a rule in each window; of one that draws, the mean over some seeds."""
    costs = list[Array]()
    for seed in range(DRAWN_SEEDS if "random" in (rule.job, rule.node) else 1):
        world = PairEnvironment([jobs], thesis.NODES, thesis.options(objective, due), copies=20, seed=seed)
        world.reset(thesis.WINDOWS)
        costs.append(-rule.returns(world, seed))
    mean: Array = np.mean(costs, axis=0)
    return mean


def agent_costs(jobs: Workload, objective: str, seed: int, epochs: int) -> tuple[Array, float]:
    """Train an agent; return its mean objective in each window, and the seconds of CPU time of the training."""
    starts = np.arange(256, len(jobs) - thesis.WINDOW_JOBS - 1)
    options = thesis.options(objective, "largest")
    world = PairEnvironment([jobs], thesis.NODES, options, copies=COPIES, seed=seed, starts=starts)
    windows = PairEnvironment([jobs], thesis.NODES, thesis.options(objective, "largest"), copies=20)
    begin = time.process_time()
    agent = train(world, TrainingOptions(epochs=epochs), seed, judging=windows)
    took_s = time.process_time() - begin
    windows.reset(thesis.WINDOWS)
    return -agent.returns(windows), took_s


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the table of each objective."""
    trace = read_workload(traces / TRACE) if traces is not None else lublin(10_000, 256, seed=0)
    jobs = thesis.jobs_of(trace)
    for objective in list(OBJECTIVES)[:1] if quick else OBJECTIVES:
        _measure_objective(jobs, objective, (1, 10) if quick else (AGENT_SEEDS, 80), published=traces is not None)


def _measure_objective(jobs: Workload, objective: str, effort: tuple[int, int], *, published: bool) -> None:
    seeds, epochs = effort
    heading(f"Squared agent, {objective}, 20 windows of 1,024 jobs: {seeds} seeds, {epochs} epochs of {COPIES} windows")
    blocking = [PairRule(job, node) for job in BLOCKING for node in list(NODE_ORDERS)[:3]]
    costs = {f"{rule.name}, blocks": rule_costs(jobs, objective, rule.job, rule) for rule in blocking}
    blocked = list(costs)
    costs |= {rule.name: rule_costs(jobs, objective, "largest", rule) for rule in masked_rules()}
    trained = [agent_costs(jobs, objective, seed, epochs) for seed in range(1, seeds + 1)]
    agent = np.array([one for one, _ in trained])
    known = {
        f"{rule.name}, blocks": PUBLISHED[objective, rule.job][list(NODE_ORDERS).index(rule.node)] for rule in blocking
    } | {"squared agent": PUBLISHED_AGENT[objective]}
    rows = []
    for name, result in [*costs.items(), ("squared agent", agent)]:
        windows = result if result.ndim == 1 else result.mean(axis=0)
        ratios = np.log(agent) - np.log(windows)
        ratio, low, high, _ = interval(ratios)
        against = "" if result is agent else f"{ratio:.2f} [{low:.2f}, {high:.2f}]"
        shown = number(known[name]) if published and name in known else "-"
        figures = [number(float(one)) for one in (windows.mean(), np.median(windows), windows.max())]
        rows.append((float(windows.mean()), (name, *figures, shown, against)))
    head = (objective, "mean", "median", "max", "thesis", "agent / it")
    table(head, [row for _, row in sorted(rows)])
    print(f"seeds of the agent: {', '.join(number(float(one.mean())) for one in agent)}")
    print(f"training: {number(sum(took_s for _, took_s in trained) / seeds)} s of CPU time a seed")
    for text, names in (("that block", blocked), ("of all", list(costs))):
        best = min(names, key=lambda name: costs[name].mean())
        ratio, low, high, _ = interval(np.log(agent) - np.log(costs[best]))
        print(f"best rule {text}: {best}; agent / it {ratio:.2f} [{low:.2f}, {high:.2f}]")
