"""`pilotfish train squared`: train networks that choose a waiting job and its node, and write them as a model."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ... import __version__
from ...formats.model_file import write_model
from ...formats.models.pair_model import PairModel
from ...learning.agents.network import plain_layers
from ...learning.agents.pair_training import AGENTS, JUDGED_EACH, TrainingOptions
from ...learning.environments.pairs import KERNEL, OBJECTIVES, PATIENCE_S, nodes_of
from ...learning.environments.site_pairs import JUDGED, net_of
from ...simulate.learned.pair_network import KERNEL as SCORES
from ...simulate.learned.pair_network import PairSight
from ...simulate.queue_policies.learned_order import MODEL_SUFFIX
from .. import options
from ..charts import picture_files
from ..charts.learning_figure import Course, save_curves
from ..inputs import note_left_out, read_cluster
from ..kernel_loading import load_kernels
from ..options import argument, flag, option
from ..output.text import Screen, TextColumn, numbers
from ..usage_errors import bad, not_among
from .learning_tasks import PARTS
from .model_outputs import check_outputs, judging_words, note_if_no_better, note_written
from .pair_tasks import PairInput, TrainingTask, training_task
from .staged_training import Stages

if TYPE_CHECKING:
    from collections.abc import Sequence


THESIS = options.PUBLISHED[0]


def squared(
    trace: Annotated[Path, argument("TRACE", "Trace of jobs (SWF, ...); each runs on one node.")],
    out: Annotated[Path, option("FILE", f"Write the model into FILE (*{MODEL_SUFFIX}).", "--out", "-o")],
    setting: options.Published = None,
    cluster: options.ClusterFile = None,
    objective: Annotated[
        str, option("NAME", "What is to be small: mean bounded slowdown, slowdown or wait.", words=OBJECTIVES)
    ] = "bsld",
    head: Annotated[
        str,
        option("NAME", "How scores come to a pair: squared, or another agent of the thesis.", words=AGENTS),
    ] = "squared",
    seeds: options.Seeds = 5,
    seed: options.Seed = 1,
    every_seed: Annotated[
        bool, flag("--every-seed", "Also write the model of each seed, into FILE with the seed in its name.")
    ] = False,
    epochs: Annotated[int, option("N", "Epochs of each training.", min=1, max=10_000)] = TrainingOptions().epochs,
    workers: options.Workers = None,
    dask: options.Dask = None,
    resume: options.Resume = None,
    picture: picture_files.PlotFile = None,
) -> int:
    """Train a small network that scores each pair of a waiting job and a node (the squared agent, PPO).

    The machine is that of the thesis: 20 nodes of 4 to 64 processors and 2 to 3.5 GHz; or with --cluster that of a
    site. Each job runs on one node; its run time in the trace is that on the slowest. An epoch plays five windows of
    1,024 jobs, not of the first 256 jobs, so the trace must have 1,281 jobs that ran, or more. Each five epochs
    of the second half, the network is judged on twenty others, and the best one is kept. A training that is interrupted
    keeps the best network so far. Judge it: `pilotfish evaluate --as thesis`, with a trace of 9,984 jobs or more.

    With --cluster, windows are of the first half of the trace, a decision is due when any job fits, and jobs that need
    more than one node are left out.

    Other agents of the thesis are heads: the double ones score first the jobs and then the nodes, and
    train both by the sum or the mean of their logarithms (add, mean), or separately (sep); the clustered one scores
    pairs of a job and a cluster of like nodes.

    \b
    Examples:
      pilotfish train squared year.swf.gz --as thesis -o pairs.pfmodel.json
      pilotfish train squared year.swf.gz --head double-sep -o double.pfmodel.json
      pilotfish train squared year.swf.gz --cluster lab.yaml -o lab.pfmodel.json
      pilotfish train squared year.swf.gz --resume state -o b.pfmodel.json
    """
    if setting is not None and setting not in options.PUBLISHED:
        raise not_among("--as", setting, "a published work", options.PUBLISHED)
    if setting is not None and cluster is not None:
        raise bad("--cluster", f"--as {setting} has its own nodes (allowed: one of both)")
    if objective not in OBJECTIVES:
        raise not_among("--objective", objective, "an objective", OBJECTIVES)
    if head not in AGENTS:
        raise not_among("--head", head, "an agent", AGENTS)
    check_outputs(out, resume, picture)
    source = PairInput.of(trace, None if cluster is None else nodes_of(read_cluster(cluster)))
    load_kernels("swf.parser", "mapping.entry", KERNEL, SCORES)
    source.worlds(objective)  # errors before any training
    note_left_out(source.name, source.jobs())
    settings = TrainingOptions(epochs=epochs, agent=head)
    first = [TrainingTask(source, objective, settings, seed + number, 0) for number in range(seeds)]
    stages = Stages(first, training_task, _progress, settings.epochs, JUDGED_EACH)
    trained = stages.run(objective, workers, resume, dask)
    states = list(trained.states.values())
    best = min(states, key=_rank)
    for state in states if every_seed else ():
        write_model(_numbered(out, state["seed"]), _model(first[0], [state], state))
    model = _model(first[0], states, best)
    write_model(out, model)
    _report(objective, states, best)
    of_thesis = ["--as thesis", *judging_words(out, [trace], PARTS[0])]
    note_written(out, of_thesis if cluster is None else judging_words(out, [trace], PARTS[1]))
    note_if_no_better(model.trained["value"], model.trained["baseline_value"], model.baseline)
    save_curves(picture, states, objective, Course("epoch", "mean of the episodes that it played"))
    return trained.code


def _progress(state: dict[str, Any]) -> float:
    """Return the mean objective of a training so far: in the windows that judged it, else in those that it played."""
    return float(state["course"][-1] if state["value"] is None else state["value"])


def _rank(state: dict[str, Any]) -> tuple[bool, float]:
    """Return what trainings are sorted by: one that was not judged comes after all that were."""
    return state["value"] is None, _progress(state)


def _numbered(out: Path, seed: int) -> Path:
    return out.with_name(f"{out.name.removesuffix(MODEL_SUFFIX)}-{seed}{MODEL_SUFFIX}")


def _model(task: TrainingTask, states: Sequence[dict[str, Any]], best: dict[str, Any]) -> PairModel:
    source, part = task.source, PARTS[0] if task.source.nodes is None else PARTS[1]
    jobs = source.trace(part).jobs
    _, judging = source.worlds(task.objective)
    world, machine = judging.options, source.machine
    processors = sum(node.processors for node in machine)
    row = {"name": source.name, "sha256": source.digest, "jobs": len(jobs), "processors": processors}
    trained = {
        "pilotfish": __version__, "agent": task.options.agent, "as": THESIS if source.nodes is None else "",
        "traces": [row], "part": part, "epochs": best["epochs"],
        "options": asdict(task.options), "seed": best["seed"],
        "seeds": [{"seed": one["seed"], "value": one["value"], "epochs": one["epochs"]} for one in states],
    }  # fmt: skip
    sight = PairSight(world.due, world.rows, world.longest, PATIENCE_S, world.logarithmic)
    *job_layers, layers = map(plain_layers, best["networks"])
    model = PairModel(
        layers, sight, task.objective, tuple((node.processors, node.speed) for node in machine), trained,
        head=AGENTS[task.options.agent][0], job_layers=job_layers[0] if job_layers else (),
    )  # fmt: skip
    net = net_of(jobs, machine, model.policy("the model"), model.chooser, judging)
    trained |= {"value": net.value, "baseline_value": net.baseline_value}
    return replace(model, trained=trained, seen=net.seen, max_wait=net.max_wait, baseline=net.baseline)


def _report(objective: str, states: Sequence[dict[str, Any]], best: dict[str, Any]) -> None:
    screen = Screen()
    rows = [
        (
            str(one["seed"]),
            str(one["epochs"]),
            "not judged" if one["value"] is None else f"{one['value']:,.4g}",
            "kept" if one is best else "",
        )
        for one in states
    ]
    screen.title(f"mean {objective} in the {JUDGED} windows that judged the training")
    screen.table([TextColumn("SEED", right=True), *numbers("EPOCHS", objective.upper()), TextColumn("")], rows)
