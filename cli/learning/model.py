"""`pilotfish model`: what the file of a learned policy says of it."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from ...formats.model_file import Model, check_use, read_model, read_order
from ...formats.models.order_model import OrderModel
from ...formats.models.pair_model import PairModel
from ...formats.models.rule_model import RuleModel
from ...formats.models.verdicts import in_training, lines_of, only_rule
from ...formats.text import count
from ...simulate.kernels.queue.tables import UNIT
from ...simulate.queue_policies.learned_order import FEATURES, MODEL_SUFFIX
from ...simulate.queue_policies.order_score import NETWORK
from .. import options
from ..kernel_loading import load_kernels
from ..lazy import CommandGroup
from ..options import argument, option
from ..output.documents import print_json
from ..output.model_decisions import use_document
from ..output.text import Screen, TextColumn, numbers
from ..usage_errors import not_among
from .learning_tasks import PARTS, TraceInput
from .network_cards import show_pair_card, show_rule_card

app = CommandGroup(
    """Show or check the file of a learned policy.

    \b
    Examples:
      pilotfish model show mine.pfmodel.json
      pilotfish model check mine.pfmodel.json
      pilotfish model report mine.pfmodel.json site --part second-half
    """
)
ModelFile = Annotated[Path, argument("FILE", f"The file of a model (*{MODEL_SUFFIX}).")]


@app.command()
def show(file: ModelFile, as_json: options.Json = False) -> int:
    """Print the card of a model: what it is for, what it rests on, its weights, and what it must not be used for.

    \b
    Examples:
      pilotfish model show mine.pfmodel.json
    """
    model = read_model(file)
    if as_json:
        print_json("model", _document(model))
        return 0
    screen = Screen()
    if isinstance(model, PairModel):
        show_pair_card(screen, file.name, model)
    elif isinstance(model, RuleModel):
        show_rule_card(screen, file.name, model)
    else:
        _show_order(screen, file.name, model)
    return 0


@app.command()
def check(file: ModelFile) -> int:
    """Check that a model's file is whole, unchanged, for this version, and has all that its use needs.

    \b
    Examples:
      pilotfish model check mine.pfmodel.json
    """
    check_use(read_model(file), str(file))
    Screen().put(f"{file}: whole, and for this version")
    return 0


@app.command()
def report(
    file: ModelFile,
    trace: Annotated[Path, argument("TRACE", "Jobs of the site: a folder of `site record`, or a trace.")],
    part: Annotated[str, option("PART", "Jobs of each trace that count.", words=PARTS)] = PARTS[0],
    procs: options.Procs = None,
    config: Annotated[
        Path | None,
        option("FILE", "Configuration of the service (YAML).", default="the guard rail counts as not known"),
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Say whether a learned order has earned its place at a site, by what it would have done with the site's jobs.

    The jobs are replayed as they came, under the model with its net and under its baseline. Ratios are of the means
    over all jobs, as in `evaluate`, which shakes the jobs and leaves out the net; intervals are over days. A model is
    to be promoted if that covers 7 days and 1,000 jobs that it was not trained on, the interval of its objective ends
    below 1, the longest wait is at most 1.25 of the baseline's, and the guard rail of the service (--config) never
    tripped. Then the report has the line for the configuration. Nothing is changed.

    \b
    Examples:
      pilotfish model report mine.pfmodel.json site --part second-half
      pilotfish model report m.pfmodel.json site --config pilotfish.yaml
    """
    from .promotion import lines_for, promotion_of, show_promotion, trips_of

    if part not in PARTS:
        raise not_among("--part", part, "a part of a trace", PARTS)
    model = read_order(file)
    load_kernels("swf.parser", "queue.easy", "queue.easy_rich")
    source = TraceInput.of([trace], procs, part)
    promotion = promotion_of(model, file, source, None if config is None else trips_of(config))
    if as_json:
        lines = [] if promotion.missing else lines_for(file, model)
        plain = {"gain": asdict(promotion.gain), "trips": promotion.trips, "missing": promotion.missing}
        print_json("promotion", plain | {"model_use": use_document(promotion.use), "lines": lines})
    else:
        show_promotion(Screen(), file, trace.resolve().name, model, promotion)
    return 0


def _show_order(screen: Screen, name: str, model: OrderModel) -> None:
    trained = model.trained
    screen.title(f"{name}: an order of the queue inside EASY backfilling")
    days = f"a job that waited for {model.max_wait / 86_400.0:.3g} days goes first"
    bound = days if math.isfinite(model.max_wait) else "waits have no bound"
    screen.put(f"made to lower {model.objective}; {bound}")
    for row in trained.get("traces", ()):
        size = f"{count(int(row['jobs']), 'job')} on {count(int(row['processors']), 'processor')}"
        screen.put(f"trained on {row['name']}: {size}, part: {trained.get('part')}")
    screen.put(f"began at the rule: {trained.get('start')}; run times: {model.run_times}")
    if model.rule is not None:
        screen.put(only_rule(model.rule))
    screen.put(f"baseline: {model.baseline.policy}, run times: {model.baseline.run_times}", "")
    names, columns = _columns(model)
    rows = [
        (name, *(f"{weight:+.4f}" for weight in weights))
        for name, *weights in zip(names, *columns.values(), strict=True)
    ]
    screen.table([TextColumn("FEATURE"), *numbers(*columns)], rows)
    screen.put("", "The smallest score goes first. w limit, p expected run time, t waited, q size, P machine, F free.")
    searches = trained.get("seeds", ())
    if searches:
        changes = sorted(math.expm1(one["value"] - trained["baseline_value"]) for one in searches)
        spread = f"{changes[0]:+.1%} to {changes[-1]:+.1%}"
        screen.put(f"{count(len(searches), 'search', 'searches')} on these traces: {spread} against the baseline.")
        value = next((one["value"] for one in searches if one.get("seed") == trained.get("seed")), searches[0]["value"])
        level = math.exp(trained["baseline_value"])
        screen.put(in_training(math.exp(value), level, model.baseline.policy))
    screen.put(*lines_of(model.evaluated))
    screen.put("proven" if model.is_proven else "unproven: no service trusts it without allow_unproven: true")
    screen.put(
        "",
        "Not for: machines of another size or kind of load, jobs without a limit, or a claim about jobs that it was "
        "trained on. `pilotfish evaluate` judges it on others.",
    )


def _columns(model: OrderModel) -> tuple[tuple[str, ...], dict[str, tuple[float, ...]]]:
    """Return what is weighed, and the weights under their headings."""
    if model.fill:
        return FEATURES, {"QUEUE": model.weights, "BEHIND IT": model.fill}
    if model.kind == "linear":
        return FEATURES, {"WEIGHT": model.weights}
    units = [model.weights[first : first + UNIT] for first in range(0, NETWORK, UNIT)]
    return ("bias", *FEATURES, "output"), {f"UNIT {number}": unit for number, unit in enumerate(units, 1)}


def _document(model: Model) -> dict[str, Any]:
    if isinstance(model, PairModel | RuleModel):
        return {"kind": model.kind, **{key: part for key, part in model.body().items() if key != "examples"}}
    return {
        "kind": model.kind, "features": list(FEATURES), "weights": list(model.weights), "fill": list(model.fill),
        "max_wait_s": model.max_wait if math.isfinite(model.max_wait) else None, "objective": model.objective,
        "run_times": model.run_times, "baseline": asdict(model.baseline),
        "processors": list(model.processors), "trained": dict(model.trained),
        "seen": {name: list(values) for name, values in model.seen.items()}, "evaluated": list(model.evaluated),
        "proven": model.is_proven, "rule": model.rule,
    }  # fmt: skip
