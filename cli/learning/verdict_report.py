"""The report of `evaluate`: a table for each trace, the verdicts in words, and the rows in a model's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

from ...formats.model_file import Model, write_model
from ...formats.models.verdicts import LEAST_COPIES, ratio_text
from ...formats.text import percent
from ...learning.evaluation import Scores, Verdict, beaten, verdict
from ..output.text import Screen, TextColumn, hanging, numbers
from ..streams import note
from .contests import Contest
from .learning_tasks import PARTS

#: The numbers that are judged, in words, and their headings.
JUDGED = {
    "bsld": "mean bounded slowdown", "sld": "mean slowdown", "wait": "mean wait", "makespan": "makespan",
    "energy": "energy", "energy-delay": "energy times makespan",
}  # fmt: skip
_HEADINGS = {
    "bsld": "SLOWDOWN", "sld": "SLOWDOWN", "wait": "WAIT s", "makespan": "MAKESPAN s", "energy": "ENERGY J",
    "energy-delay": "ENERGY x TIME J s",
}  # fmt: skip


def results_of(contest: Contest, scored: Sequence[Scores]) -> list[dict[str, Any]]:
    """Return a verdict for each trace, number and way to choose the rival; Holm's correction is over the traces."""
    sides = [how for how, names in contest.sides.items() if names]
    rows = [_result(contest, one, how, number) for one in scored for number, how in product(contest.numbers, sides)]
    correct(rows)
    return rows


def correct(results: Sequence[dict[str, Any]]) -> None:
    """Say in each verdict whether the rival is beaten, by Holm's correction over those of the same kind."""
    for kind in dict.fromkeys((row["number"], row["chosen"]) for row in results):
        rows = [row for row in results if (row["number"], row["chosen"]) == kind]
        for row, beats in zip(rows, beaten([row["against"] for row in rows]), strict=True):
            row["beats"] = beats


def _result(contest: Contest, scored: Scores, how: str, number: str) -> dict[str, Any]:
    """Return the verdict against the best of some rivals, with the numbers of both."""
    best = scored.best(contest.sides[how], number)
    means = [scored.mean(name, number) for name in contest.learned]
    return {
        "trace": scored.trace, "number": number, "against": verdict(scored, contest.learned, best, number),
        "beats": False, "learned": sum(means) / len(means), "rival": scored.mean(best, number), "chosen": how,
    }  # fmt: skip


def show_results(contest: Contest, scored: Sequence[Scores], results: Sequence[dict[str, Any]]) -> None:
    """Print the table and the verdicts of each trace."""
    screen, main = Screen(), contest.numbers[0]
    for one in scored:
        screen.title(f"{one.trace}: geometric means over the {contest.unit}")
        lines, alike = list[tuple[str, ...]](), dict[bytes, list[str]]()
        for name in sorted([*contest.rivals, *contest.learned], key=lambda name: one.mean(name, main)):
            schedule = b"".join(one.numbers[name][number].tobytes() for number in contest.numbers)
            equals = alike.setdefault(schedule, [])
            equals.append(name)
            if len(equals) > 1 and name not in contest.learned:
                continue  # named below the table
            mark = "> " if name in contest.learned else "  "
            judged = [_shown(number, one.mean(name, number)) for number in contest.numbers]
            lines.append((mark + name, *judged, f"{one.mean(name, 'longest_wait'):,.0f}"))
        headings = [_HEADINGS[number] for number in contest.numbers]
        screen.named_table([TextColumn("ORDER"), *numbers(*headings, "LONGEST s")], lines)
        for first, *others in alike.values():
            if rivals := [name for name in others if name not in contest.learned]:
                screen.put(*hanging("  ", f"equal to {first}: {'; '.join(rivals)}", screen.cells, 4))
        screen.put("")
        for row in results:
            if row["trace"] == one.trace:
                verdict_text, numbers_text = sentences_of(row, contest.unit)
                screen.put(*hanging("", verdict_text, screen.cells), *hanging("  ", numbers_text, screen.cells))
        copies = len(one.numbers[contest.learned[0]][main])
        if contest.unit == "copies" and copies < LEAST_COPIES:
            caution = (
                f"Intervals over {copies} copies are often too narrow: a verdict on {LEAST_COPIES} proves a model."
            )
            screen.put(*hanging("", caution, screen.cells))
        screen.put("")


def _shown(number: str, mean: float) -> str:
    return f"{mean:,.0f}" if number == "wait" else f"{mean:,.4g}"


def sentences_of(row: dict[str, Any], unit: str = "copies") -> tuple[str, str]:
    """Return what a verdict says and the numbers that it rests on, in words.

    Args:
        row: of `results_of`.
        unit: see `Contest`.
    """
    against: Verdict = row["against"]
    outcome = "beats it" if row["beats"] else "is worse" if against.low > 1.0 else "may be no better"
    low, high, least, most = map(ratio_text, (against.low, against.high, against.least, against.most))
    return (
        f"{JUDGED[row['number']]}: {outcome}: {against.ratio:.2f} of the rival {row['chosen']}, {against.rival}",
        f"95 %: {low} to {high}; in single {unit} {least} to {most}, below 1 in {percent(against.won)}; "
        f"longest wait {against.longest_wait:.2f} of its",
    )


def save_verdicts(
    path: Path, model: Model, contest: Contest, results: Sequence[dict[str, Any]], part: str, copies: int
) -> None:  # fmt: skip
    """Write the verdicts on jobs that a model has not seen into its file, in place of those on the same jobs."""
    digests = {trace.name: trace.digest for trace in contest.traces}
    judged = [
        {
            "trace": row["trace"], "sha256": digests[row["trace"]], "part": part, contest.unit: copies,
            "models": len(contest.learned), "number": row["number"], "chosen": row["chosen"],
            "beats": bool(row["beats"]),
            **{key: value for key, value in asdict(row["against"]).items() if key != "trace"},
        }
        for row in results
        if is_unseen(model, digests[row["trace"]], part)
    ]  # fmt: skip
    if not judged:
        note(f"{path.name}: nothing was written, because it was trained on these jobs")
        return
    again = {(row["sha256"], row["part"]) for row in judged}
    others = [row for row in model.evaluated if (row.get("sha256"), row.get("part")) not in again]
    write_model(path, replace(model, evaluated=(*others, *judged)))


def is_unseen(model: Model, digest: str, part: str) -> bool:
    """Return whether a model was not trained on a part of a trace: on other traces, or on the other half of it.

    Args:
        model: the model.
        digest: SHA-256 of the trace.
        part: one of PARTS.
    """
    return digest not in trained_on(model) or {model.trained.get("part"), part} == {*PARTS[1:]}


def trained_on(model: Model) -> set[str]:
    """Return the SHA-256 of each trace that a model was trained on."""
    return {row["sha256"] for row in model.trained.get("traces", ())}
