"""The card of a model that chooses pairs of rules."""

from __future__ import annotations

from ...formats.models.rule_model import RuleModel
from ...formats.models.verdicts import lines_of
from ...formats.text import count
from ..output.text import Screen, TextColumn, numbers


def show_rule_card(screen: Screen, name: str, model: RuleModel) -> None:
    """Print the card: what the model is for, what it rests on, and what it must not be used for.

    Args:
        screen: where to print.
        name: of its file.
        model: the model.
    """
    trained, options = model.trained, model.options
    widths = "-".join(str(len(biases)) for _, biases in model.layers)
    screen.title(f"{name}: a network that chooses a rule for the next job and one for its cores")
    layers = f"layers {len(model.layers[0][0])}-{widths}"
    screen.put(f"made to lower {model.objective}; agent {trained.get('agent')}, {layers}")
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
    rows = [
        (str(one["seed"]), f"{one['value']:,.5g}", "kept" if one["seed"] == trained.get("seed") else "")
        for one in trained.get("seeds", ())
    ]
    screen.table([TextColumn("SEED"), *numbers(f"{model.objective.upper()} IN TRAINING"), TextColumn("")], rows)
    screen.put(*lines_of(model.evaluated))
    screen.put(
        "",
        "Not for: plans or a service, jobs that are not one-core tasks, machines with other nodes, or a claim about "
        "jobs that it was trained on. `pilotfish evaluate --cluster` judges it on others.",
    )
