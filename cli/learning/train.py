"""`pilotfish train`: search for an order of the queue on traces, and write it as a model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ... import __version__
from ...formats.model_file import write_model
from ...formats.models.order_model import Baseline, OrderModel
from ...formats.models.verdicts import only_rule
from ...learning.contenders import RULES, contender
from ...learning.objectives import OBJECTIVES
from ...learning.order_kinds import KINDS
from ...learning.order_search import LAST_RESORT, PATIENCE, SearchOptions, Start, seen_quantiles
from ...simulate.queue_policies.learned_order import MODEL_SUFFIX
from ...simulate.queue_policies.policy_specs import text_of
from ...simulate.world.known_run_times import PREDICTED, WALLTIME
from .. import options
from ..charts import picture_files
from ..charts.learning_figure import Course, save_curves
from ..inputs import note_left_out
from ..kernel_loading import load_kernels
from ..lazy import CommandGroup
from ..options import argument, flag, option
from ..output.text import Screen, TextColumn, numbers
from ..streams import note
from ..usage_errors import not_among
from .learning_tasks import PARTS, SearchTask, TraceInput, predicted, score_of, search_stages, search_tasks
from .model_outputs import check_outputs, judging_words, note_if_no_better, note_written
from .priority_weights import priorities
from .train_rules import rules
from .train_squared import squared

if TYPE_CHECKING:
    from collections.abc import Sequence

app = CommandGroup(
    """Learn from traces: an order of the queue, a choice of jobs and nodes or of rules. From a site: Slurm's weights.

    \b
    Examples:
      pilotfish train linear year.swf.gz --part first-half -o mine.pfmodel.json
      pilotfish train priorities site --objective wait
      pilotfish train squared year.swf.gz -o pairs.pfmodel.json
      pilotfish train rules -c lab.yaml --workload a.json -o m.pfmodel.json
      pilotfish simulate year.swf.gz --policy easy:order=mine.pfmodel.json
    """
)
_DAYS_S = 86_400.0
app.command()(priorities)
app.command()(squared)
app.command()(rules)


def search_order(
    context: typer.Context,
    traces: Annotated[list[Path], argument("TRACE...", "Traces of rigid jobs (SWF, ...), or folders of sites.")],
    out: Annotated[Path, option("FILE", f"Write the model into FILE (*{MODEL_SUFFIX}).", "--out", "-o")],
    objective: Annotated[
        str, option("NAME", "What is to be small: mean bounded slowdown, mean wait, or both.", words=OBJECTIVES)
    ] = "bsld",
    seeds: options.Seeds = 5,
    generations: options.Generations = 24,
    population: Annotated[int, option("N", "Points that each generation tries.", min=4, max=200)] = 14,
    windows: Annotated[int, option("N", "Cut each trace into N parts of as many jobs.", min=1, max=100)] = 1,
    part: Annotated[str, option("PART", "Jobs of each trace that count.", words=PARTS)] = PARTS[0],
    wait_factor: Annotated[
        float, option("FACTOR", "A search avoids waits above FACTOR times the baseline's longest.", min=0.01, max=1e6)
    ] = PATIENCE,
    max_wait: Annotated[
        float | None,
        option("DAYS", f"A job goes first after DAYS, and not after {LAST_RESORT} such waits.", min=0.01, max=36_525),
    ] = None,
    no_predictions: Annotated[
        bool, flag("--no-predictions", "Use no predicted run times, which take most of the time.")
    ] = False,
    procs: options.Procs = None,
    workers: options.Workers = None,
    dask: options.Dask = None,
    resume: options.Resume = None,
    picture: picture_files.PlotFile = None,
) -> int:
    """Search for an order of the kind that the command names, and write it as a model."""
    if objective not in OBJECTIVES:
        raise not_among("--objective", objective, "an objective", OBJECTIVES)
    if part not in PARTS:
        raise not_among("--part", part, "a part of a trace", PARTS)
    check_outputs(out, resume, picture)
    load_kernels("swf.parser", "queue.easy_rich")
    source = TraceInput.of(traces, procs, part)
    bound = None if max_wait is None else max_wait * _DAYS_S
    kind = str(context.info_name)
    settings = SearchOptions(objective, generations, population, max_wait=bound, patience=wait_factor, kind=kind)
    tasks = search_tasks(source, windows, settings, seeds, predicting=not no_predictions)
    for trace in source.traces():
        note_left_out(trace.name, trace.jobs)
    trained = search_stages(tasks).run("score", workers, resume, dask)
    answers = list(trained.states.values())
    best, start = min(answers, key=score_of), tasks[0].start
    write_model(out, _model(tasks[0], answers, best))
    _report(objective, start, answers, best)
    note_written(out, [*judging_words(out, traces, part), *["--no-predictions"] * no_predictions])
    level = math.exp(start.baseline_value)
    note_if_no_better(math.exp(best["value"]), level, start.baseline.name)
    if best["is_rule"]:
        note(only_rule(start.rule))
    curves = [one | {"course": [*map(math.exp, one["course"])]} for one in answers]
    course = Course("generation", "all points that it tried, on its copy", (start.baseline.name, level))
    save_curves(picture, curves, objective, course)
    return trained.code


#: What the card of a model has of each search.
_OF_SEARCH = ("seed", "weights", "value", "excess", "longest_wait", "is_rule")
_HELP = """
    The baseline is the best of EASY's usual orders, by limits or predicted run times. The search begins at the best of
    four simple rules, avoids waits that are much longer than the baseline's, and sees a new copy of each trace in each
    generation, with other users drawn from those of the trace. It ends with the mean of the last one. Judge the model
    on jobs that it has not seen: `pilotfish evaluate`.

    \b
    Examples:
      pilotfish train {kind} year.swf.gz --part first-half -o mine.pfmodel.json
      pilotfish train {kind} site --objective wait -o b.pfmodel.json
"""
for _name, _kind in KINDS.items():
    app.command(
        _name, help=f"Search for {_kind.words} inside exact EASY backfilling (CMA-ES).\n{_HELP.format(kind=_name)}"
    )(search_order)


def _model(task: SearchTask, searches: Sequence[dict[str, Any]], best: dict[str, Any]) -> OrderModel:
    start = task.start
    order = KINDS[task.options.kind].order(best["weights"], RULES[start.rule], start.max_wait)
    traces = task.source.traces()
    rows = [
        {"name": trace.name, "sha256": trace.digest, "jobs": len(trace.jobs), "processors": trace.processors}
        for trace in traces
    ]
    trained = {
        "pilotfish": __version__, "kind": task.options.kind, "part": task.source.part, "traces": rows,
        "windows": task.windows, "generations": best["epochs"], "population": task.options.population,
        "sigma": task.options.sigma, "patience": task.options.patience, "start": start.rule,
        "start_value": start.value, "start_excess": start.excess, "seed": best["seed"],
        "baseline_value": start.baseline_value, "baseline_longest_wait_s": start.longest_wait,
        "seeds": [{key: one[key] for key in _OF_SEARCH} for one in searches],
    }  # fmt: skip
    side = contender(order, predicted=start.predicted)
    columns = seen_quantiles(traces, side, predicted if task.predicting else None)
    baseline = Baseline(text_of(start.baseline.policy), _run_times(start.baseline.predicted))
    return OrderModel(
        order.weights, start.max_wait, task.options.objective,
        tuple(sorted({trace.processors for trace in traces})), trained,
        {name: tuple(values.tolist()) for name, values in columns.items()},
        run_times=_run_times(start.predicted), baseline=baseline, fill=order.fill,
    )  # fmt: skip


def _run_times(predicts: bool) -> str:
    return PREDICTED if predicts else WALLTIME


def _report(objective: str, start: Start, searches: Sequence[dict[str, Any]], best: dict[str, Any]) -> None:
    screen = Screen()
    rule = f"{start.rule}{', predicted' if start.predicted else ''}"
    lines = [
        ("baseline", start.baseline.name, start.baseline_value, start.longest_wait, start.baseline_excess, ""),
        ("rule", rule, start.value, start.rule_longest_wait, start.excess, ""),
    ]
    for one in searches:
        mark, name = "kept" if one is best else "", f"{one['seed']}, the rule" if one["is_rule"] else str(one["seed"])
        lines.append(("seed", name, one["value"], one["longest_wait"], one["excess"], mark))
    rows = [
        (kind, name, f"{math.exp(value):,.4g}", f"{math.expm1(value - start.baseline_value):+.1%}",
         f"{longest:,.0f}", f"{math.exp(value + excess):,.4g}", mark)
        for kind, name, value, longest, excess, mark in lines
    ]  # fmt: skip
    headings = numbers(objective.upper(), "CHANGE", "LONGEST s", "SCORE")
    bound = f"bound on waits: {start.max_wait / _DAYS_S:,.3g} days"
    screen.title(f"{objective}, geometric mean over copies that no search saw; {bound}")
    screen.table([TextColumn(""), TextColumn("ORDER"), *headings, TextColumn("")], rows)
    screen.put(f"SCORE: {objective} times the cost of long waits, which searches make small. The least is kept.")
