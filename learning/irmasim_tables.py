"""The tables of IRMaSim's agents, which choose pairs of rules (Herrera et al., CCGrid 2021, VII-B, and their examples).

Rule: the paper does not state its trace or the subset of its policies. Here traces are batches of serial NPB jobs on
the heterogeneous cluster, and the subset is the six rules for cores with the first job. An agent is judged by its most
probable actions, on other traces than those of its training. "Without" is the paper's baseline: independent cores.
The authors' agents learn from one episode an update; here they also learn from many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..simulate.arrays import Array
from ..simulate.model.cluster import Cluster
from ..simulate.model.workload import Workload
from ..simulate.queue_policies.policy_specs import RESOURCES
from ..simulate.world.rule_options import RuleOptions
from .agents.rule_agents import RuleTraining, train
from .environments import irmasim as setting
from .environments.rule_choice import RuleChoiceEnvironment
from .evaluation import interval

#: Jobs of a trace: fewer than there are cores, so that each decision is where a job goes, and more.
FEW, MANY = 30, 100
#: Pairs of the traces: table II's rules for cores.
PAIRS = tuple(("first", core) for core in RESOURCES)
#: Traces of the verdict and of the training, and the first generator seed of each. The settings of the agents were
#: chosen on traces with smaller seeds, and judged once on these.
TRACES, TRAINING_TRACES, FIRST_VERDICT, FIRST_TRAINING = 200, 100, 10_000, 20_000
#: Agents of each kind, and the first seed of them; settings were chosen with those before.
SEEDS, FIRST_SEED = 10, 10
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


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """Our figures next to those of a paper.

    Args:
        title: what they are.
        columns: their headings; the first is of names.
        rows: one text for each column.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def count_of_agents(seeds: int) -> int:
    """Return how many agents the tables train."""
    return seeds * (4 * len(EXAMPLES) + 4)


def irmasim_tables(
    seeds: int, traces: int, updates: int, progress: Callable[[], None] = lambda: None
) -> Iterator[PublishedTable]:
    """Yield the tables: the authors' examples, their agents, figure 9, and where agents end (figures 10 and 11).

    Args:
        seeds: agents of each kind.
        traces: batches of the verdict.
        updates: of the agents of the batches.
        progress: called after each agent.
    """
    yield _examples()
    yield _example_agents(seeds, progress)
    for jobs in (FEW, MANY):
        yield _figure_9(jobs, traces)
    example, (jobs_of_example, machine) = EXAMPLES["spread"], setting.EXAMPLES["spread"]()
    batches = tuple(
        [setting.batch(FEW, "heterogeneous", first + number) for number in range(count)]
        for first, count in ((FIRST_TRAINING, TRAINING_TRACES), (FIRST_VERDICT, traces))
    )
    spread = RuleOptions("makespan", "minimal", example.pairs), example.careful, 10
    trace = RuleOptions("energy", "minimal", PAIRS), replace(TRACE_TRAINING, updates=updates), TRACE_COPIES
    title = f"spread, {seeds} seeds"
    yield _ends(title, ([jobs_of_example],) * 2, machine, *spread, seeds, progress)
    title = f"{traces} traces of {FEW} jobs, {seeds} seeds"
    yield _ends(title, (batches[0], batches[1]), setting.cluster("heterogeneous"), *trace, seeds, progress)


def _examples() -> PublishedTable:
    rows = []
    for name, example in EXAMPLES.items():
        jobs, machine = setting.EXAMPLES[name]()
        for core, (seconds, joules) in example.printed.items():
            ours = [float(values[0]) for values in costs([jobs], machine, ("first", core))]
            begun = ours[1] - setting.unused_joules(name, core)
            figures = (ours[0], seconds, ours[1], begun, joules)
            rows.append((f"{name}, {core}", *(f"{figure:.2f}" for figure in figures)))
    title = "IRMaSim's examples: ours, the same without processors that have not begun, and printed"
    return PublishedTable(title, ("example, rule for cores", "s", "printed", "J", "J of begun", "printed"), rows)


def _example_agents(seeds: int, progress: Callable[[], None]) -> PublishedTable:
    rows = []
    for name, example in EXAMPLES.items():
        jobs, machine = setting.EXAMPLES[name]()
        options = RuleOptions(example.objective, "minimal", example.pairs)
        for critic in (True, False):
            cells = [f"{name}, {'actor-critic' if critic else 'REINFORCE'}"]
            for training, copies in ((example.training, 1), (example.careful, 10)):
                chosen = RuleTraining(training.updates, training.hidden, training.rate, critic=critic)
                ends = 0
                for seed in range(seeds):
                    shares = judged(([jobs], [jobs]), (machine, machine), options, chosen, copies, seed)[1]
                    ends += int(shares[0] > 0.5)
                    progress()
                cells.append(str(ends))
            rows.append(tuple(cells))
    title = f"Agents of the examples: how many of {seeds} seeds end at the best rule"
    return PublishedTable(title, ("example, agent", "one episode, as printed", "ten episodes"), rows)


def _figure_9(size: int, traces: int) -> PublishedTable:
    jobs = [setting.batch(size, "heterogeneous", seed) for seed in range(traces)]
    lab = setting.cluster("heterogeneous")
    worlds = {"with": lab, "without": setting.independent(lab)}
    joules = {(name, pair): costs(jobs, machine, pair)[1] for name, machine in worlds.items() for pair in PAIRS}
    best = {name: min(PAIRS, key=lambda pair: joules[name, pair].mean()) for name in worlds}
    rows = []
    for pair in PAIRS:
        cells = [pair[1]]
        for name in worlds:
            energy = joules[name, pair]
            cells += [f"{energy.mean() / 1e3:.1f}", _ratio(np.log(energy / joules[name, best[name]])[None])]
        rows.append(tuple(cells))
    title = f"Figure 9: kJ of each rule for cores with contention and without, {size} jobs, mean of {traces} traces"
    return PublishedTable(title, ("rule", "with", "to the best", "without", "to the best"), rows)


def _ends(
    title: str, traces: tuple[Sequence[Workload], Sequence[Workload]], machine: Cluster, options: RuleOptions,
    training: RuleTraining, copies: int, seeds: int, progress: Callable[[], None],
) -> PublishedTable:  # fmt: skip
    """Return where agents end that were trained with contention and without, and what they pay with it."""
    energy = int(options.objective == "energy")
    rules = {pair[1]: costs(traces[1], machine, pair)[energy] for pair in options.pairs}
    best = min(rules, key=lambda core: rules[core].mean())
    ends, logs = list[str](), list[Array]()
    for trained in (machine, setting.independent(machine)):
        agents = []
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            agents.append(judged(traces, (trained, machine), options, training, copies, seed))
            progress()
        logs.append(np.log([costs_of_one for costs_of_one, _ in agents]))
        main = [list(rules)[int(shares.argmax())] for _, shares in agents]
        ends.append(", ".join(f"{core} {main.count(core)}" for core in rules if core in main))
    mean_of_rules = np.mean([np.log(one) for one in rules.values()], axis=0)
    return PublishedTable(
        f"Trained with contention and without, judged with it: {options.objective}, {title}",
        (options.objective, "result"),
        [
            ("ends at, trained with", ends[0]),
            ("ends at, trained without", ends[1]),
            (f"with / best rule, {best}", _ratio(logs[0] - np.log(rules[best]))),
            ("with / mean of the rules", _ratio(logs[0] - mean_of_rules)),
            ("without / with", _ratio(logs[1] - logs[0])),
        ],
    )


def _ratio(logs: Array) -> str:
    ratio, low, high, _ = interval(logs)
    return f"{ratio:.3f} [{low:.3f}, {high:.3f}]"
