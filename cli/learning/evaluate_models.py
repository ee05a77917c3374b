"""`pilotfish evaluate`: judge models against every exact rival, on shaken copies, with intervals."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...formats.model_file import read_order, write_model
from ...formats.models.linear_model import IN_TRAINING, Baseline, LinearModel
from ...formats.text import count
from ...learning.contenders import rivals
from ...learning.evaluation import Scores, Verdict, beaten, verdict
from ...simulate.errors import ConfigError
from ...simulate.queue_policies.learned_order import MODEL_SUFFIX
from ...simulate.world.known_run_times import PREDICTED
from .. import options
from ..kernel_loading import load_kernels
from ..options import argument, flag, option
from ..output.documents import print_json
from ..output.sweep import SweepProgress
from ..output.text import Screen, TextColumn, numbers
from ..streams import note
from ..sweeps.tasks import Failure
from ..usage_errors import bad, not_among
from ..worker_options import worker_pool
from .learning_tasks import PARTS, ScoreTask, TraceInput, joined, score_task
from .thesis_report import judge_as_thesis

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The numbers that are judged, with their headings and what they are in words.
JUDGED = {"bsld": "mean bounded slowdown", "wait": "mean wait"}
#: Copies that one task replays.
_AT_ONCE = 2


def evaluate(
    files: Annotated[
        list[Path], argument("MODEL... TRACE...", f"Models (*{MODEL_SUFFIX}), and traces or sites to judge them on.")
    ],
    copies: Annotated[int, option("N", "Shaken copies of each trace.", min=2, max=1000)] = 20,
    part: Annotated[str, option("PART", "Jobs of each trace that count.", words=PARTS)] = PARTS[0],
    setting: options.Published = None,
    no_predictions: Annotated[
        bool, flag("--no-predictions", "Use no predicted run times, which take most of the time.")
    ] = False,
    save: Annotated[
        bool, flag("--save", "Write the verdicts about jobs that a model has not seen into its file.")
    ] = False,
    procs: options.Procs = None,
    workers: options.Workers = None,
    as_json: options.Json = False,
) -> int:
    """Judge learned orders. Each is one training seed of the same recipe; the table is about all of them.

    All replay the same copies, whose submissions are moved by up to five minutes. A ratio below 1 is better than the
    rival; its interval of 95 % is of a bootstrap over copies and models. The rival is EASY in any order, by limits or
    by predicted run times, conservative backfilling, or a simple rule with the model's bound on waits. One verdict is
    about the rival that was chosen in training, one about the best in hindsight. What is worse is printed, too. With
    --save, a model's file says what was found; without a verdict that it beats its rival, no service trusts it.
    `--as thesis` prints the thesis's tables: its rules, the same rules with the choice of the agent, the agents, and
    its figures. Without a model, the rules alone.

    \b
    Examples:
      pilotfish evaluate mine.pfmodel.json year.swf.gz --part second-half
      pilotfish evaluate mine.pfmodel.json other.swf --no-predictions --json
      pilotfish evaluate --as thesis pairs.pfmodel.json other.swf
    """
    if part not in PARTS:
        raise not_among("--part", part, "a part of a trace", PARTS)
    if setting is not None:
        return _as_published(setting, files, save=save, as_json=as_json)
    models = {path: read_order(path) for path in files if path.name.endswith(MODEL_SUFFIX)}
    traces = [path for path in files if path not in models]
    if not models or not traces:
        raise bad(
            "MODEL... TRACE...",
            f"{count(len(models), 'model')}, {count(len(traces), 'trace')} (allowed: one of each, or more)",
        )
    load_kernels("swf.parser", "queue.easy", "queue.easy_rich", "queue.conservative")
    named = tuple(
        (str(path), model.weights, model.max_wait, model.run_times == PREDICTED) for path, model in models.items()
    )
    chosen = {_name_of(model.baseline) for model in models.values()}
    inputs = [TraceInput.of([path], procs, part) for path in traces]
    digests = {row.get("sha256") for model in models.values() for row in model.trained.get("traces", ())}
    predicting = not no_predictions or any(predicts for *_, predicts in named)
    scored = _scores(inputs, named, copies, workers, predicting=predicting)
    others = [one.name for one in rivals(named[0][2], predicting)]
    learned = [name for name, *_ in named]
    sides = {IN_TRAINING: chosen.intersection(others), "best in hindsight": others}
    results = [
        _result(one, sorted(names), learned, number) | {"chosen": how}
        for one in scored
        for number in JUDGED
        for how, names in sides.items()
        if names
    ]
    for number, how in product(JUDGED, sides):  # Holm's correction is over the traces
        rows = [row for row in results if row["number"] == number and row["chosen"] == how]
        for row, beats in zip(rows, beaten([row["against"] for row in rows]), strict=True):
            row["beats"] = beats
    if as_json:
        plain = [row | {"against": asdict(row["against"])} for row in results]
        print_json("evaluation", {"copies": copies, "part": part, "results": plain})
    else:
        _show(results, scored, others, learned)
    repeated = [path.name for path, one in zip(traces, inputs, strict=True) if digests.intersection(one.digests)]
    if save:
        named_digests = {one.traces()[0].name: one.digests[0] for one in inputs}
        for path, model in models.items():
            _save(path, model, results, named_digests, part, copies, len(models))
    if repeated:
        words = "the same jobs" if part == PARTS[0] else "another part of the same file, if it was trained on the other"
        note(f"trained on {', '.join(repeated)}: {words}")
    return 0


def _as_published(setting: str, files: Sequence[Path], *, save: bool, as_json: bool) -> int:
    """Judge models as a published work did. Raises ConfigError, OSError, typer.BadParameter."""
    if setting not in options.PUBLISHED:
        raise not_among("--as", setting, "a published work", options.PUBLISHED)
    models = [path for path in files if path.name.endswith(MODEL_SUFFIX)]
    traces = [path for path in files if path not in models]
    if len(traces) != 1:
        raise bad("MODEL... TRACE...", f"{count(len(traces), 'trace')} (allowed: one)")
    return judge_as_thesis(models, traces[0], save=save, as_json=as_json)


def _save(
    path: Path, model: LinearModel, results: Sequence[dict[str, Any]], digests: dict[str, str], part: str, copies: int,
    models: int,
) -> None:  # fmt: skip
    """Write the verdicts on jobs that a model has not seen into its file, in place of those on the same jobs."""
    trained = {row.get("sha256") for row in model.trained.get("traces", ())}
    halves = {model.trained.get("part"), part}
    judged = [
        {
            "trace": row["trace"], "sha256": digests[row["trace"]], "part": part, "copies": copies, "models": models,
            "number": row["number"], "chosen": row["chosen"], "beats": bool(row["beats"]),
            **{key: value for key, value in asdict(row["against"]).items() if key != "trace"},
        }
        for row in results
        if digests[row["trace"]] not in trained or halves == {*PARTS[1:]}
    ]  # fmt: skip
    if not judged:
        note(f"{path.name}: nothing was written, because it was trained on these jobs")
        return
    again = {(row["sha256"], row["part"]) for row in judged}
    others = [row for row in model.evaluated if (row.get("sha256"), row.get("part")) not in again]
    write_model(path, replace(model, evaluated=(*others, *judged)))


def _scores(
    inputs: Sequence[TraceInput], models: tuple[Any, ...], copies: int, workers: int | None, *, predicting: bool
) -> list[Scores]:
    """Replay all copies, and return the numbers of each trace. Raises ConfigError: a task failed."""
    tasks = [
        ScoreTask(source, models, predicting, min(_AT_ONCE, copies - first), first)
        for source in inputs
        for first in range(0, copies, _AT_ONCE)
    ]
    names = [source.traces()[0].name for source in inputs]  # errors before any replay
    answers = dict[str, Any]()
    with SweepProgress(len(tasks)) as progress, worker_pool(workers, None, len(tasks)) as crew:
        for batch in crew.each(score_task, tasks):
            for task, answer in batch:
                if isinstance(answer, Failure):
                    raise ConfigError(Path(task.source.paths[0]).name, "", answer.why)
                answers[task.identity] = answer
            progress.ended([{"status": "done"}] * len(batch))
    return [
        joined(name, [answers[task.identity] for task in tasks if task.source is source])
        for name, source in zip(names, inputs, strict=True)
    ]


def _name_of(baseline: Baseline) -> str:
    """Return how the table names a baseline."""
    name = baseline.policy if "order=" in baseline.policy else f"{baseline.policy}:order=fcfs"
    return f"{name}, predicted" if baseline.run_times == PREDICTED else name


def _result(scored: Scores, others: list[str], learned: list[str], number: str) -> dict[str, Any]:
    """Return the verdict against the best of some rivals, with the numbers of both."""
    best = scored.best(others, number)
    against = verdict(scored, learned, best, number)
    means = [scored.mean(name, number) for name in learned]
    return {
        "trace": scored.trace, "number": number, "against": against, "beats": False,
        "learned": sum(means) / len(means), "rival": scored.mean(best, number),
    }  # fmt: skip


def _show(results: Sequence[dict[str, Any]], scored: Sequence[Scores], others: list[str], learned: list[str]) -> None:
    screen = Screen()
    for one in scored:
        screen.title(f"{one.trace}: geometric means over the copies")
        lines, shown = list[tuple[str, ...]](), set[bytes]()
        for name in sorted([*others, *learned], key=lambda name: one.mean(name, "bsld")):
            waits = one.numbers[name]["wait"].tobytes() + one.numbers[name]["bsld"].tobytes()
            if waits in shown and name not in learned:
                continue  # the same schedules as an order above
            shown.add(waits)
            mark = "> " if name in learned else "  "
            lines.append((
                mark + name, f"{one.mean(name, 'bsld'):,.4g}", f"{one.mean(name, 'wait'):,.0f}",
                f"{one.mean(name, 'longest_wait'):,.0f}",
            ))  # fmt: skip
        screen.table([TextColumn("ORDER"), *numbers("SLOWDOWN", "WAIT s", "LONGEST s")], lines)
        screen.put("")
        for row in results:
            if row["trace"] == one.trace:
                screen.put(*_sentences(row))
        screen.put("")


def _sentences(row: dict[str, Any]) -> list[str]:
    """Return what a verdict says, in words."""
    against: Verdict = row["against"]
    outcome = "beats it" if row["beats"] else "is worse" if against.low > 1.0 else "may be no better"
    return [
        f"{JUDGED[row['number']]}: {outcome}: {against.ratio:.2f} of the rival {row['chosen']}, {against.rival}",
        f"  95 %: {against.low:.2f} to {against.high:.2f}; smaller in {against.won:.0%} of the pairs; "
        f"longest wait {against.longest_wait:.2f} of its",
    ]
