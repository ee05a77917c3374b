"""Verdicts in a model's file: how it compares with rivals, on shaken copies of a trace or on windows of it.

Rule: only a verdict on LEAST_COPIES shaken copies that the model beats its baseline, in the number that it was trained
to lower, proves it. `evaluate --save` writes no verdict on jobs that the model was trained on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .fields import checked_rows, finite_number

#: The rival of a verdict that was best on the traces of the training.
IN_TRAINING = "chosen in training"
#: Fewest shaken copies of a verdict that proves something.
LEAST_COPIES = 20


def checked_verdicts(rows: Any, source: str) -> tuple[Mapping[str, Any], ...]:
    """Return verdicts; `rows`: what the file holds, `source`: the file. Raises ConfigError: one is no verdict."""
    verdicts = checked_rows(rows, source, "evaluated", ("ratio", "low", "high"), ("trace", "rival", "number"))
    for place, row in enumerate(verdicts):
        finite_number(row.get("copies", row.get("windows")), source, f"evaluated[{place}].copies")
    return verdicts


def proves(verdicts: Iterable[Mapping[str, Any]], number: str) -> bool:
    """Return whether one of some checked verdicts proves a model; `number`: that it was trained to lower."""
    return any(
        row["number"] == number and row.get("chosen") == IN_TRAINING and row.get("beats") is True
        and row.get("copies", 0) >= LEAST_COPIES
        for row in verdicts
    )  # fmt: skip


def lines_of(verdicts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what some checked verdicts say, in words."""
    lines = list[str]()
    for row in verdicts:
        about, interval = (
            f"{row['trace']}, {row['number']}",
            f"{row['ratio']:.2f} ({ratio_text(row['low'])} to {ratio_text(row['high'])})",
        )
        if "copies" not in row:
            lines.append(f"{about}: {interval} of {row['rival']}, {row['windows']} windows")
        else:
            is_worse = row["low"] > 1.0
            outcome = "beats" if row.get("beats") is True else "is worse than" if is_worse else "not shown to beat"
            rival = f"{row['rival']}, {row.get('chosen', IN_TRAINING)}"
            lines += [f"{about}: {outcome} {rival}:", f"  {interval} of its, {row['copies']} copies"]
    return lines


def in_training(value: float, baseline_value: float, baseline: str) -> str:
    """Return how a model compares with its baseline on jobs of its training, in words.

    Args:
        value: mean objective of the model, above 0.
        baseline_value: that of the baseline on the same jobs, above 0.
        baseline: its name.
    """
    outcome = "better than" if value < baseline_value else "worse than" if value > baseline_value else "no better than"
    numbers = f"{value:,.4g} and {baseline_value:,.4g}"
    return f"on jobs of its training the model is {outcome} its baseline, {baseline}: {numbers}"


def only_rule(rule: str) -> str:
    """Return that a model is the simple rule that its search began with; `rule`: its name."""
    return f"the model is only the rule that its search began with: {rule}"


def ratio_text(ratio: float) -> str:
    """Return a ratio as text: a few digits, and more where it would else read as 1."""
    short = f"{ratio:.2f}"
    return f"{ratio:.4f}" if short == "1.00" and ratio != 1.0 else short
