"""IRMaSim's agents, which choose pairs of rules (Herrera et al., CCGrid 2021, VII-B, and the authors' examples).

Rule: the paper does not state its trace or the subset of its policies. Here traces are batches of serial NPB jobs on
the heterogeneous cluster, and the subset is the six rules for cores with the first job. An agent is judged by its most
probable actions, on other traces than those of its training. "Without" is the paper's baseline: independent cores.
The authors' agents learn from one episode an update; here they also learn from many.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pilotfish.benchmarks.show import heading, number, table
from pilotfish.learning.agents.rule_agents import RuleTraining, train
from pilotfish.learning.environments import irmasim as setting
from pilotfish.learning.environments.rule_choice import RuleChoiceEnvironment, RuleOptions
from pilotfish.learning.evaluation import interval
from pilotfish.simulate.arrays import Array
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import RESOURCES

#: Jobs of a trace: fewer than there are cores, so that each decision is where a job goes, and more.
FEW, MANY = 30, 100
#: Pairs of the traces: table II's rules for cores.
PAIRS = tuple(("first", core) for core in RESOURCES)
#: Traces of the verdict and of the training, and the first generator seed of each. The settings of the agents were
#: chosen on traces with smaller seeds, and judged once on these.
TRACES, TRAINING_TRACES, FIRST_VERDICT, FIRST_TRAINING = 200, 100, 10_000, 20_000
#: First seed of the agents; settings were chosen with those before.
FIRST_SEED = 10
TRACE_TRAINING, TRACE_COPIES = RuleTraining(updates=200, hidden=16, rate=0.003, paired=True), 30


@dataclass(frozen=True, slots=True)
class Example:
    """An example of the authors.

    Args:
        objective: of its agent.
        printed: rule for cores -> seconds and joules in the authors' text; the best rule is the first.
        training: of the authors.
        careful: a training from several episodes an update.
    """

    objective: str
    printed: dict[str, tuple[float, float]]
    training: RuleTraining
    careful: RuleTraining

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The actions."""
        return tuple(("first", core) for core in self.printed)


EXAMPLES = {
    "save": Example(
        "energy", {"peak_power": (39.21, 834.45), "peak_gflops": (35.34, 985.68)}, RuleTraining(10, 16, 0.5),
        RuleTraining(30, 16, 0.02),
    ),
    "spread": Example(
        "makespan", {"high_core": (5.32, 492.97), "peak_gflops": (14.75, 837.53)}, RuleTraining(50, 5, 0.05),
        RuleTraining(50, 5, 0.05),
    ),
}  # fmt: skip


def costs(jobs: Sequence[Workload], machine: Cluster, pair: tuple[str, str]) -> tuple[Array, Array]:
    """Return seconds and joules of a pair of rules on each workload [workloads] each."""
    world = RuleChoiceEnvironment(jobs, machine, RuleOptions("makespan", "minimal", (pair,)), copies=len(jobs))
    world.reset(range(len(jobs)))
    seconds, joules = np.full(len(jobs), math.nan), np.full(len(jobs), math.nan)
    while np.isnan(seconds).any():
        world.step([0] * len(jobs))
        ends = world.done & np.isnan(seconds)
        seconds[ends], joules[ends] = world.last_makespan[ends], world.last_joules[ends]
    return seconds, joules


def judged(
    traces: tuple[Sequence[Workload], Sequence[Workload]], machines: tuple[Cluster, Cluster], options: RuleOptions,
    training: RuleTraining, copies: int, seed: int,
) -> tuple[Array, Array]:  # fmt: skip
    """Return what a trained agent pays on each workload of the verdict, and how often it chooses each action.

    Args:
        traces: workloads of the training, and of the verdict.
        machines: that of the training, and that of the verdict.
        options: of both environments.
        training: of the agent.
        copies: episodes of an update.
        seed: of the agent.
    """
    world = RuleChoiceEnvironment(traces[0], machines[0], options, copies=copies, seed=seed)
    agent, count = train(world, training, seed), len(traces[1])
    verdict = RuleChoiceEnvironment(traces[1], machines[1], options, copies=count, seed=seed)
    returns, counts = agent.play(verdict, range(count))
    return -returns, counts / counts.sum()


def measure(quick: bool) -> None:
    """Print the tables."""
    seeds = 2 if quick else 10
    _measure_examples(seeds)
    traces = 5 if quick else TRACES
    for jobs in (FEW, MANY):
        _measure_rules(jobs, traces)
    _measure_agents(seeds, traces, 20 if quick else TRACE_TRAINING.updates)


def _measure_examples(seeds: int) -> None:
    heading("IRMaSim's examples: ours, the same without processors that have not begun, and printed")
    rows = []
    for name, example in EXAMPLES.items():
        jobs, machine = setting.EXAMPLES[name]()
        for core, (seconds, joules) in example.printed.items():
            ours = [float(values[0]) for values in costs([jobs], machine, ("first", core))]
            begun = ours[1] - setting.unused_joules(name, core)
            rows.append(
                [
                    f"{name}, {core}",
                    f"{ours[0]:.2f}",
                    f"{seconds:.2f}",
                    f"{ours[1]:.2f}",
                    f"{begun:.2f}",
                    f"{joules:.2f}",
                ]
            )
    table(("example, rule for cores", "s", "printed", "J", "J of begun", "printed"), rows)
    heading(f"Agents of the examples: how many of {seeds} seeds end at the best rule")
    rows = []
    for name, example in EXAMPLES.items():
        jobs, machine = setting.EXAMPLES[name]()
        options = RuleOptions(example.objective, "minimal", example.pairs)
        for critic in (True, False):
            row = [f"{name}, {'actor-critic' if critic else 'REINFORCE'}"]
            for training, copies in ((example.training, 1), (example.careful, 10)):
                chosen = RuleTraining(training.updates, training.hidden, training.rate, critic=critic)
                ends = [
                    judged(([jobs], [jobs]), (machine, machine), options, chosen, copies, seed)[1][0]
                    for seed in range(seeds)
                ]
                row.append(str(sum(share > 0.5 for share in ends)))
            rows.append(row)
    table(("example, agent", "one episode an update, as printed", "ten episodes"), rows)


def _measure_rules(size: int, traces: int) -> None:
    heading(f"Figure 9: energy of each rule for cores, {size} jobs, mean of {traces} traces, kJ")
    jobs = [setting.batch(size, "heterogeneous", seed) for seed in range(traces)]
    lab = setting.cluster("heterogeneous")
    worlds = {"with": lab, "without": setting.independent(lab)}
    joules = {(name, pair): costs(jobs, machine, pair)[1] for name, machine in worlds.items() for pair in PAIRS}
    rows = []
    best = {name: min(PAIRS, key=lambda pair: joules[name, pair].mean()) for name in worlds}
    for pair in PAIRS:
        row = [pair[1]]
        for name in worlds:
            ratio, low, high, _ = interval(np.log(joules[name, pair] / joules[name, best[name]])[None])
            row += [number(float(joules[name, pair].mean()) / 1e3), f"{ratio:.3f} [{low:.3f}, {high:.3f}]"]
        rows.append(row)
    table(("rule", "with contention", "to the best", "without", "to the best"), rows)


def _measure_agents(seeds: int, traces: int, updates: int) -> None:
    example, training = EXAMPLES["spread"], replace(TRACE_TRAINING, updates=updates)
    jobs, machine = setting.EXAMPLES["spread"]()
    batches = tuple(
        [setting.batch(FEW, "heterogeneous", first + number) for number in range(count)]
        for first, count in ((FIRST_TRAINING, TRAINING_TRACES), (FIRST_VERDICT, traces))
    )
    spread = RuleOptions("makespan", "minimal", example.pairs), example.careful, 10
    trace = RuleOptions("energy", "minimal", PAIRS), training, TRACE_COPIES
    _measure_case(f"spread, {seeds} seeds", ([jobs], [jobs]), machine, *spread, seeds)
    title = f"{traces} traces of {FEW} jobs, {seeds} seeds"
    _measure_case(title, (batches[0], batches[1]), setting.cluster("heterogeneous"), *trace, seeds)


def _measure_case(
    title: str, traces: tuple[Sequence[Workload], Sequence[Workload]], machine: Cluster, options: RuleOptions,
    training: RuleTraining, copies: int, seeds: int,
) -> None:  # fmt: skip
    """Print where agents end that were trained with contention and without, and what they pay with it."""
    began, energy = time.process_time(), int(options.objective == "energy")
    rules = {pair[1]: costs(traces[1], machine, pair)[energy] for pair in options.pairs}
    best = min(rules, key=lambda core: rules[core].mean())
    ends, logs = list[str](), list[Array]()
    for trained in (machine, setting.independent(machine)):
        agents = [
            judged(traces, (trained, machine), options, training, copies, seed)
            for seed in range(FIRST_SEED, FIRST_SEED + seeds)
        ]
        logs.append(np.log([costs_of_one for costs_of_one, _ in agents]))
        main = [list(rules)[int(shares.argmax())] for _, shares in agents]
        ends.append(", ".join(f"{core} {main.count(core)}" for core in rules if core in main))
    heading(f"Trained with contention and without, judged with it: {options.objective}, {title}")
    rows = [["ends at, trained with contention", ends[0]], ["ends at, trained without", ends[1]]]
    for name, ratios in (
        (f"with / best rule, {best}", logs[0] - np.log(rules[best])),
        ("with / mean of the rules", logs[0] - np.mean([np.log(one) for one in rules.values()], axis=0)),
        ("without / with", logs[1] - logs[0]),
    ):
        ratio, low, high, _ = interval(ratios)
        rows.append([name, f"{ratio:.3f} [{low:.3f}, {high:.3f}]"])
    rows.append(["CPU s", number(time.process_time() - began)])
    table((options.objective, "result"), rows)
