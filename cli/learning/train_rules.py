"""`pilotfish train rules`: train agents that choose a pair of rules at each decision, and write the best as a model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from ... import __version__
from ...formats.model_file import write_model
from ...formats.models.rule_model import RuleModel
from ...formats.replays.machines import read_machine
from ...learning.agents.rule_agents import RuleTraining
from ...learning.environments.irmasim import independent
from ...learning.rule_training import JUDGED, JUDGED_EACH, pair_costs
from ...simulate.queue_policies.learned_order import MODEL_SUFFIX
from ...simulate.queue_policies.policy_specs import JOBS, RESOURCES, Pairs, text_of
from ...simulate.world.rule_options import KERNEL, LEVELS, OBJECTIVES, VOID, RuleOptions
from ...simulate.world.task_tables import processors_of
from .. import options
from ..charts import picture_files
from ..charts.learning_figure import Course, save_curves
from ..inputs import note_left_out
from ..kernel_loading import load_kernels
from ..options import flag, option
from ..output.text import Screen, TextColumn, numbers
from ..usage_errors import not_among
from .learning_tasks import PARTS
from .model_outputs import check_outputs, judging_words, note_if_no_better, note_written
from .rule_tasks import RuleInput, RuleTrainingTask, rule_training_task
from .staged_training import Stages

if TYPE_CHECKING:
    from collections.abc import Sequence

AGENTS = ("actor-critic", "reinforce")
#: Pairs of rules with different costs that are shown.
_SHOWN = 6


def rules(
    workload: Annotated[Path, option("FILE", "Jobs of one-core tasks (IRMaSim, Batsim, SWF).", "--workload")],
    out: Annotated[Path, option("FILE", f"Write the model into FILE (*{MODEL_SUFFIX}).", "--out", "-o")],
    cluster: Annotated[
        Path,
        option("FILE", "Cluster file (YAML); replays also read SimGrid and IRMaSim platforms.", "--cluster", "-c"),
    ],
    no_contention: Annotated[
        bool, flag("--no-contention", "Train as if tasks did not contend for memory; judge the model with it.")
    ] = False,
    objective: Annotated[str, option("NAME", "What is to be small.", words=OBJECTIVES)] = "energy",
    observation: Annotated[
        str, option("NAME", "What it sees: the queue; also nodes and processors; also cores.", words=LEVELS)
    ] = "minimal",
    job_rules: Annotated[
        str, option("NAME,...", f"Rules for the next job: {', '.join(JOBS)}.", default="all")
    ] = ",".join(JOBS),
    core_rules: Annotated[
        str, option("NAME,...", f"Rules for the cores of its tasks: {', '.join(RESOURCES)}.", default="all")
    ] = ",".join(RESOURCES),
    no_void: Annotated[bool, flag("--no-void", "It cannot choose to start nothing until the next decision.")] = False,
    episode: Annotated[int, option("N", "Jobs of an episode.", min=1, max=100_000)] = 100,
    agent: Annotated[str, option("NAME", "How it learns.", words=AGENTS)] = AGENTS[0],
    updates: Annotated[int, option("N", "Updates of each training.", min=1, max=100_000)] = 200,
    hidden: Annotated[int, option("N", "Width of each hidden layer.", min=1, max=256)] = 16,
    rate: Annotated[float, option("RATE", "Size of a step.", min=1e-6, max=1.0)] = 0.003,
    seeds: options.Seeds = 5,
    seed: options.Seed = 1,
    workers: options.Workers = None,
    dask: options.Dask = None,
    resume: options.Resume = None,
    picture: picture_files.PlotFile = None,
) -> int:
    """Train an agent that chooses a rule for the next job and one for its cores, or starts nothing (IRMaSim).

    Tasks contend for the memory of their processor, as under the policy pairs. An update plays 30 episodes of the
    first half of the workload, each on an empty machine; all play the same jobs. Each ten updates the agent is judged
    in twenty other episodes, and the best network is kept, also of a training that is interrupted. The table compares
    it with each pair of rules alone. Judge it on later jobs: `pilotfish evaluate --part second-half --cluster`.

    \b
    Examples:
      pilotfish train rules -c lab.yaml --workload a.json -o m.pfmodel.json
      pilotfish train rules -c c.yaml --workload a.swf --no-void -o b.pfmodel.json
    """
    for name, word, kind, words in (
        ("--objective", objective, "an objective", OBJECTIVES), ("--agent", agent, "an agent", AGENTS),
        ("--observation", observation, "an observation", LEVELS),
    ):  # fmt: skip
        if word not in words:
            raise not_among(name, word, kind, words)
    check_outputs(out, resume, picture)
    pairs = [(job, core) for job in _named("--job-rules", job_rules, JOBS)
             for core in _named("--core-rules", core_rules, RESOURCES)]  # fmt: skip
    choices = RuleOptions(objective, observation, (*pairs, *([] if no_void else [VOID])))
    nodes = read_machine(cluster)
    source = RuleInput.of(workload, independent(nodes) if no_contention else nodes)
    load_kernels("swf.parser", KERNEL)
    _, judging = source.worlds(choices, episode)  # errors before any training
    note_left_out(source.name, source.jobs())
    settings = RuleTraining(updates, hidden, rate, critic=agent == AGENTS[0], paired=True)
    first = [RuleTrainingTask(source, choices, episode, settings, seed + number) for number in range(seeds)]
    stages = Stages(first, rule_training_task, _value, updates, JUDGED_EACH, "update")
    trained = stages.run(objective, workers, resume, dask)
    states = list(trained.states.values())
    costs = {
        pair: float(np.exp(np.log(cost).mean()))
        for pair, cost in pair_costs(judging.workloads, source.cluster, choices).items()
    }
    best, rival = min(states, key=_value), min(costs, key=lambda pair: _place(pair, costs))
    model = _model(first[0], states, best, text_of(Pairs(*rival)), costs[rival], contends=not no_contention)
    write_model(out, model)
    _report(objective, states, best, costs)
    note_written(out, [*judging_words(out, [workload], PARTS[1]), f"--cluster {quote(str(cluster))}"])
    note_if_no_better(_value(best), costs[rival], model.baseline)
    save_curves(picture, states, objective, Course("update", "mean of the episodes that it played"))
    return trained.code


def _named(name: str, text: str, words: dict[str, str]) -> list[str]:
    """Return the rules of an option, each once. Raises typer.BadParameter: one is not known."""
    chosen = list(dict.fromkeys(text.split(",")))
    for word in chosen:
        if word not in words:
            raise not_among(name, word, "a rule", words)
    return chosen


def _value(state: dict[str, Any]) -> float:
    return float(state["value"])


def _place(pair: tuple[str, str], costs: dict[tuple[str, str], float]) -> tuple[float, bool]:
    """Return what pairs are sorted by: their cost, and of equal ones last those that draw."""
    return costs[pair], "random" in pair


def _model(
    task: RuleTrainingTask, states: Sequence[dict[str, Any]], best: dict[str, Any], baseline: str,
    baseline_value: float, *, contends: bool,
) -> RuleModel:  # fmt: skip
    source = task.source
    processors = processors_of(source.cluster)
    cores = tuple(processors.template.nodes["limit"].astype(int).tolist())
    row = {
        "name": source.name, "sha256": source.digest, "jobs": len(source.half()), "processors": sum(cores),
    }  # fmt: skip
    trained = {
        "pilotfish": __version__, "agent": AGENTS[0] if task.options.critic else AGENTS[1], "traces": [row],
        "part": PARTS[1], "episode": task.episode, "contention": contends, "epochs": best["epochs"],
        "options": asdict(task.options), "seed": best["seed"],
        "seeds": [{"seed": one["seed"], "value": _value(one), "epochs": one["epochs"]} for one in states],
        "value": _value(best), "baseline_value": baseline_value,
    }  # fmt: skip
    layers = tuple((tuple(map(tuple, weights)), tuple(biases)) for weights, biases in best["layers"])
    return RuleModel(layers, task.choices, cores, len(processors.base), trained, baseline=baseline)


def _report(
    objective: str, states: Sequence[dict[str, Any]], best: dict[str, Any], costs: dict[tuple[str, str], float]
) -> None:  # fmt: skip
    least = min(costs.values())
    rows = [
        (
            f"seed {one['seed']}",
            f"{_value(one):,.5g}",
            f"{_value(one) / least - 1.0:+.1%}",
            "kept" if one is best else "",
        )
        for one in states
    ]
    distinct = dict[float, tuple[str, str]]()
    for pair in sorted(costs, key=lambda pair: _place(pair, costs)):
        distinct.setdefault(costs[pair], pair)
    rows += [
        (" + ".join(pair), f"{cost:,.5g}", f"{cost / least - 1.0:+.1%}", "")
        for cost, pair in list(distinct.items())[:_SHOWN]
    ]
    screen = Screen()
    screen.title(f"mean {objective} in the {JUDGED} episodes that judged the training, and of the best pairs alone")
    screen.table([TextColumn("AGENT OR PAIR"), *numbers(objective.upper(), "TO THE BEST PAIR"), TextColumn("")], rows)
