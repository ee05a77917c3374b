"""The cards of models that are networks: one scores pairs of a job and a node, one chooses pairs of rules."""

from __future__ import annotations

from ...formats.models.pair_model import PairModel
from ...formats.models.rule_model import RuleModel
from ...formats.models.verdicts import in_training, lines_of
from ...formats.text import count, duration
from ...simulate.learned.pair_network import Layer
from ..output.text import Screen, TextColumn, numbers


def show_pair_card(screen: Screen, name: str, model: PairModel) -> None:
    """Print the card: what the model is for, what it rests on, and what it must not be used for.

    Args:
        screen: where to print.
        name: of its file.
        model: the model.
    """
    trained = model.trained
    networks = [layers for layers in (model.job_layers, model.layers) if layers]
    parameters = sum(len(biases) * (1 + len(weights)) for layers in networks for weights, biases in layers)
    screen.title(f"{name}: a network that chooses a waiting job and its node")
    screen.put(f"made to lower {model.objective}; agent {model.agent}, {parameters:,} numbers")
    screen.put(*map(_widths, networks))
    for row in trained.get("traces", ()):
        screen.put(f"trained on {row['name']}: {count(int(row['jobs']), 'job')}, {trained.get('epochs')} epochs")
    processors = sorted({size for size, _ in model.nodes})
    sizes = f"{processors[0]}" if len(processors) == 1 else f"{processors[0]} to {processors[-1]}"
    screen.put(f"machine: {count(len(model.nodes), 'node')} of {sizes} processors, each job on one node")
    screen.put(
        f"it decides when {'any visible' if model.sight.due == 'any' else 'the largest waiting'} job fits a node, and"
    )
    screen.put(f"sees the first {count(model.sight.rows, 'waiting job')}", "")
    _put_seeds(screen, model, 4)
    if model.seen:
        (least, *_, most), (smallest, *_, largest) = model.seen["limit"], model.seen["size"]
        jobs = f"limits of {least:,.0f} to {most:,.0f} s and {smallest:.0f} to {largest:.0f} cores"
        bound = f"no job has waited for more than {duration(model.max_wait)}"
        screen.put("", f"trusted for {jobs}, while {bound}; else {model.baseline} decides")
        screen.put("proven" if model.is_proven else "unproven: no service trusts it without allow_unproven: true")
    screen.put(
        "",
        "Not for: machines with other nodes, jobs on several nodes, backfilling with reservations, or a claim about "
        "jobs that it was trained on. `pilotfish evaluate` judges it on others.",
    )


def show_rule_card(screen: Screen, name: str, model: RuleModel) -> None:
    """Print the card: what the model is for, what it rests on, and what it must not be used for.

    Args:
        screen: where to print.
        name: of its file.
        model: the model.
    """
    trained, options = model.trained, model.options
    screen.title(f"{name}: a network that chooses a rule for the next job and one for its cores")
    screen.put(f"made to lower {model.objective}; agent {trained.get('agent')}, {_widths(model.layers)}")
    for row in trained.get("traces", ()):
        screen.put(f"trained on {row['name']}: {count(int(row['jobs']), 'job')}, updates: {trained.get('epochs')}")
    screen.put(f"episodes of {count(int(trained.get('episode', 0)), 'job')}, each on an empty machine")
    if trained.get("contention") is False:
        screen.put("trained as if tasks did not contend for memory")
    cores = f"{count(model.nodes, 'node')}, {count(len(model.cores), 'processor')}, {count(sum(model.cores), 'core')}"
    screen.put(f"machine: {cores}; it sees: {options.observation}")
    or_none = ", or none" if len(options.actions) > len(options.pairs) else ""
    screen.put(f"actions: {count(len(options.pairs), 'pair')} of rules{or_none}")
    screen.put(f"best pair alone in training: {model.baseline}", "")
    _put_seeds(screen, model, 5)
    screen.put(
        "",
        "Not for: plans or a service, jobs that are not one-core tasks, machines with other nodes, or a claim about "
        "jobs that it was trained on. `pilotfish evaluate --cluster` judges it on others.",
    )


def _widths(layers: tuple[Layer, ...]) -> str:
    """Return how many numbers go into a network, and come out of each of its layers."""
    return f"layers {'-'.join(map(str, (len(layers[0][0]), *(len(biases) for _, biases in layers))))}"


def _put_seeds(screen: Screen, model: PairModel | RuleModel, digits: int) -> None:
    """Print the value of each seed in training with so many digits, the baseline, and the verdicts."""
    trained = model.trained
    rows = [
        (
            str(one.get("seed", "-")),
            "not judged" if one.get("value") is None else f"{one['value']:,.{digits}g}",
            "kept" if one.get("seed") == trained.get("seed") else "",
        )
        for one in trained.get("seeds", ())
    ]
    screen.table([TextColumn("SEED"), *numbers(f"{model.objective.upper()} IN TRAINING"), TextColumn("")], rows)
    if "value" in trained and "baseline_value" in trained:
        screen.put(in_training(trained["value"], trained["baseline_value"], model.baseline))
    screen.put(*lines_of(model.evaluated))
