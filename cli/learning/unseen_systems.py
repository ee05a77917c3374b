"""`evaluate --leave-one-out`: each system under orders that were trained on the other systems.

Rule: no job of the judged system takes part in a search, in the choice of its first rule, or in the bound on
waits. Each seed counts; one whose search did not end is an error, not a gap. Holm's correction is over the systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...formats.text import count
from ...learning.contenders import RULES
from ...learning.order_kinds import KINDS
from ...learning.order_search import SearchOptions
from ...simulate.errors import ConfigError
from ..kernel_loading import load_kernels
from ..output.documents import print_json
from ..output.text import Screen, TextColumn, numbers
from ..usage_errors import bad
from .contests import Contest, contest_of_orders
from .learning_tasks import SearchTask, TraceInput, search_stages, search_tasks
from .verdict_report import correct, results_of, show_results

#: Fewest systems: one is judged, and orders of one system alone are known to fail on others.
LEAST_SYSTEMS = 3


@dataclass(frozen=True)
class Trainings:
    """The trainings of orders.

    Args:
        seeds: trainings of each system's order, 1 or more.
        generations: of each search, 1 or more.
        journal: keeps the searches; None: nothing does.
    """

    seeds: int = 10
    generations: int = 24
    journal: Path | None = None


def judge_unseen(
    files: Sequence[Path], trainings: Trainings, copies: int, processors: int | None, workers: int | None, *,
    predicting: bool, as_json: bool,
) -> int:  # fmt: skip
    """Train without each system in turn, judge on it, and print the verdicts.

    Args:
        files: a trace of each system, or the folder of its record.
        trainings: of orders.
        copies: shaken copies of each trace.
        processors: of all machines; None: as each trace says.
        workers: processes; None: as many as there are cores.
        predicting: searches and rivals may have predicted run times.
        as_json: print one JSON document.

    Raises:
        typer.BadParameter: there are too few systems.
        ConfigError: a trace is wrong, two are the same, or a search did not end.
        OSError: a file cannot be read or written.
    """
    if len(files) < LEAST_SYSTEMS:
        raise bad("TRACE...", f"{count(len(files), 'trace')} (allowed: {LEAST_SYSTEMS} or more, one of each system)")
    load_kernels("swf.parser", "queue.easy_rich")
    systems = [TraceInput.of([path], processors, "all") for path in files]
    if len({one.digests for one in systems}) < len(systems):
        raise ConfigError("TRACE...", "", "two traces are the same", "one of each system")
    names = [one.traces()[0].name for one in systems]  # errors before any search
    options = SearchOptions(generations=trainings.generations)
    tasks = [
        search_tasks(others, 1, options, trainings.seeds, predicting=predicting)
        for others in (TraceInput.of(_without(files, place), processors, "all") for place in range(len(files)))
    ]  # fmt: skip
    every = [task for one in tasks for task in one]
    answers = search_stages(every).run("score", workers, trainings.journal, None).states
    if missing := sum(answers.get(task.key, {"epochs": 0})["epochs"] < options.generations for task in every):
        problem = f"{count(missing, 'search', 'searches')} of {len(every)} did not end"
        raise ConfigError("--leave-one-out", "", problem, "all; with --resume FILE the same command goes on")
    contests = [
        _contest(one, system, answers, copies, predicting=predicting)
        for one, system in zip(tasks, systems, strict=True)
    ]  # fmt: skip
    load_kernels(*contests[0].kernels)
    scored = [contest.scores(workers) for contest in contests]
    results = [results_of(contest, one) for contest, one in zip(contests, scored, strict=True)]
    rows = [row for one in results for row in one]
    correct(rows)
    if as_json:
        trained = {name: names[:place] + names[place + 1 :] for place, name in enumerate(names)}
        plain = [row | {"against": asdict(row["against"]), "trained_on": trained[row["trace"]]} for row in rows]
        print_json("evaluation", {"copies": copies, "seeds": trainings.seeds, "results": plain})
        return 0
    for contest, one, verdicts in zip(contests, scored, results, strict=True):
        show_results(contest, one, verdicts)
    _show_summary(rows)
    return 0


def _without(files: Sequence[Path], place: int) -> list[Path]:
    return [*files[:place], *files[place + 1 :]]


def _contest(
    tasks: Sequence[SearchTask], system: TraceInput, answers: dict[str, dict[str, Any]], copies: int, *,
    predicting: bool,
) -> Contest:  # fmt: skip
    """Return the contest on a system of the orders that were trained on the others."""
    start = tasks[0].start
    kind = KINDS[tasks[0].options.kind]
    orders = [
        (replace(kind.order(answers[task.key]["weights"], RULES[start.rule], start.max_wait),
                 text=f"seed {task.seed}"), start.predicted)
        for task in tasks
    ]  # fmt: skip
    return contest_of_orders(orders, {start.baseline.name}, [system], copies, predicting=predicting)


def _show_summary(rows: Sequence[dict[str, Any]]) -> None:
    """Print a line for each verdict."""
    lines = [
        (row["trace"], row["number"], "training" if row["chosen"].endswith("training") else "hindsight",
         f"{row['against'].ratio:.2f}", f"{row['against'].low:.2f}", f"{row['against'].high:.2f}",
         f"{row['against'].longest_wait:.2f}", "beats" if row["beats"] else "")
        for row in rows
    ]  # fmt: skip
    screen = Screen()
    screen.title("each system under orders that were trained on the others, in relation to the best rival")
    columns = [TextColumn("SYSTEM"), TextColumn("NUMBER"), TextColumn("BEST IN")]
    screen.table([*columns, *numbers("RATIO", "FROM", "TO", "LONGEST"), TextColumn("")], lines)
