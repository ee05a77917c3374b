"""`pilotfish train priorities`: search for Slurm's priority weights on the twin of a site, and judge them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...formats.text import count, decimals
from ...learning.objectives import OBJECTIVES
from ...learning.weight_search import (
    WEIGHTS,
    WeightOptions,
    first_half,
    is_later,
    of_later_jobs,
    search_weights,
    value_of,
    weights_of,
    with_weights,
)
from ...simulate.errors import ConfigError
from .. import options
from ..kernel_loading import load_kernels
from ..options import argument, option
from ..output.documents import print_json
from ..output.text import Screen, hanging
from ..streams import hint, note
from ..sweeps.run_journal import JournalKind, RunJournal
from ..sweeps.tasks import Contents, Failure
from ..usage_errors import not_among
from ..whatif.replay_tasks import SiteTask, decoded, encoded, folder_of, site_of, source_of
from ..worker_options import worker_pool
from .training_progress import TrainingProgress

if TYPE_CHECKING:
    from ...simulate.slurm.site_effect import Effect
    from ..sweeps.workers import WorkerPool

#: Least jobs of a record: half of them judge.
LEAST_JOBS = 200
#: Jobs of a class from which on the report says that it waits longer.
_CLASS_JOBS = 30


@dataclass(frozen=True, slots=True)
class WeightTask(SiteTask):
    """A replay of a site under other weights.

    Args:
        weights: setting -> weight.
        objective: the answer is its value, in a replay of the first half of the jobs; "": the outcome of all jobs.
    """

    weights: tuple[tuple[str, int], ...]
    objective: str = ""

    @property
    def identity(self) -> str:
        """Return what replays of one site differ in."""
        return f"{self.weights} {self.seed} {self.objective}"


def weight_task(task: WeightTask, contents: Contents | None = None) -> dict[str, Any]:
    """Replay a task; return its value, or its outcome as `encoded`. Raises PilotfishError, OSError.

    Args:
        task: the replay.
        contents: of its files, for a worker that cannot see them.
    """
    from ...simulate.slurm.site_outcome import replayed_outcome
    from ...simulate.slurm.twin import replay_site

    site = site_of(task.source, folder_of(task.trace, contents))
    if task.objective:
        site = first_half(site)
    site = with_weights(site, dict(task.weights))
    outcome = replayed_outcome(site, replay_site(site, task.seed))
    return {"value": value_of(outcome, task.objective)} if task.objective else encoded(outcome)


@dataclass(frozen=True, slots=True)
class WeightReplays:
    """Carries out replays, each once.

    Args:
        crew: the workers.
        journal: has the answers of earlier commands, and receives those of this one; None: nothing keeps them.
    """

    crew: WorkerPool
    journal: RunJournal | None

    def answers(self, tasks: Sequence[WeightTask]) -> list[dict[str, Any]]:
        """Return the answers of tasks in their order. Raises ConfigError: one failed; OSError: no room for them."""
        answers = dict[str, Any]() if self.journal is None else {**self.journal.done}
        waiting = {task.identity: task for task in tasks if task.identity not in answers}
        for batch in self.crew.each(weight_task, list(waiting.values())) if waiting else ():
            for task, answer in batch:
                if isinstance(answer, Failure):
                    raise ConfigError("train", "", answer.why)
                answers[task.identity] = answer
                if self.journal is not None:
                    self.journal.add({task.identity: answer})
        return [answers[task.identity] for task in tasks]


def priorities(
    site: Annotated[Path, argument("SITE", "Folder with the site's slurm.conf, sacct.psv and other files.")],
    objective: Annotated[
        str, option("NAME", "What is to be small: mean bounded slowdown, mean wait, or both.", words=OBJECTIVES)
    ] = "bsld",
    keep: Annotated[
        list[str] | None, option("SETTING", "Leave this weight as it is, such as PriorityWeightFairshare.")
    ] = None,
    generations: Annotated[int, option("N", "Generations of each search.", min=1, max=200)] = 8,
    population: Annotated[int, option("N", "Points that each generation tries.", min=4, max=100)] = 6,
    repeat: Annotated[int, option("N", "Number of replays.", min=2, max=100)] = 5,
    zone: Annotated[str, option("ZONE", "Time zone of the dumps and of --drain, such as Europe/Berlin.")] = "UTC",
    seed: options.Seed = 0,
    workers: options.Workers = None,
    dask: options.Dask = None,
    resume: options.Resume = None,
    as_json: options.Json = False,
) -> int:
    """Search for better weights of Slurm's priorities (CMA-ES), by replays of a site under Slurm's own rules.

    The jobs of the first half of the record are learned from, those of the second half judge: with the weights as they
    are and as they were found, each replay with the queue that the first half leaves. It prints lines for slurm.conf
    with the judged difference and its interval of 95 %; if that is within the noise, the lines are comments. Nothing is
    changed anywhere. `pilotfish generate site` makes a site to try it on, `site record` makes yours.

    \b
    Examples:
      pilotfish train priorities site
      pilotfish train priorities site --objective wait
    """
    if objective not in OBJECTIVES:
        raise not_among("--objective", objective, "an objective", OBJECTIVES)
    names = {name.lower(): name for name in WEIGHTS}
    for word in keep or ():
        if word.lower() not in names:
            raise not_among("--keep", word, "a weight", [*WEIGHTS])
    source, recorded = source_of(site, None, zone)
    if not recorded.rules.priority.is_multifactor:
        raise ConfigError(str(site), "PriorityType", "it has no weights", "priority/multifactor")
    if len(recorded.jobs) < LEAST_JOBS:
        raise ConfigError(str(site), "", count(len(recorded.jobs), "job"), f"at least {LEAST_JOBS} jobs")
    load_kernels("slurm.site_requests")
    fixed = {names[word.lower()] for word in keep or ()}
    searched = [name for name in WEIGHTS if name not in fixed]
    search_options = WeightOptions(objective, generations, population, seed=seed + 1)
    start = weights_of(recorded)
    judging = range(seed + 10**6, seed + 10**6 + repeat)
    kind = JournalKind("weight-search", source.inputs)
    with (
        nullcontext() if resume is None else RunJournal(resume, kind) as journal,
        TrainingProgress(objective, generations, 1, "generation") as progress,
        worker_pool(workers, dask, population) as crew,
    ):
        replays = WeightReplays(crew, journal)

        def values(points: Sequence[Mapping[str, int]], phase: int) -> list[float]:
            tasks = [WeightTask(source, phase, tuple(point.items()), objective) for point in points]
            return [float(answer["value"]) for answer in replays.answers(tasks)]

        best = search_weights(
            start, searched, search_options, values, lambda number, value: progress.reached(number, [math.exp(value)])
        )
        sides = [
            [*map(decoded, replays.answers([WeightTask(source, one, tuple(side.items())) for one in judging]))]
            for side in (start, best)
        ]
    from ...simulate.slurm.site_effect import effect

    later = is_later(recorded)
    before, after = ([of_later_jobs(one, later) for one in side] for side in sides)
    result = effect(recorded, before, after, seed)
    if as_json:
        document = {"objective": objective, "before": start, "after": best, "effect": asdict(result)}
        print_json("priorities", document | {"is_noise": is_noise(result, objective)})
    else:
        _show(site, objective, start, best, result)
    return 0


def is_noise(result: Effect, objective: str) -> bool:
    """Return whether the judged change is not shown to be better in all that the objective makes small."""
    contrasts = {"bsld": [result.slowdown], "wait": [result.wait], "mix": [result.slowdown, result.wait]}[objective]
    return not all(one.mean.high is not None and one.mean.high < 0.0 for one in contrasts)


def _show(folder: Path, objective: str, before: Mapping[str, int], after: Mapping[str, int], result: Effect) -> None:
    screen, noise = Screen(), is_noise(result, objective)
    comments = [f"weights for {folder.resolve().name}, judged on {count(result.jobs, 'later job')}"]
    for name, one in (("mean bounded slowdown", result.slowdown.mean), ("mean wait, s", result.wait.mean)):
        form = f"{{:,.{decimals(max(one.before, one.after))}f}}".format
        interval = "unknown"
        if one.low is not None and one.high is not None:
            interval = " to ".join("+" * (value > 0.0) + form(value) for value in (one.low, one.high))
        comments.append(f"{name}: {form(one.before)} now, {form(one.after)} then; difference, 95 %: {interval}")
    if result.fairness is not None:
        levels = f"{result.fairness.before:.3f} now, {result.fairness.after:.3f} then"
        comments.append(f"fairness of users (1: alike): {levels}")
    losers = [
        f"{title} {one.name}"
        for title, classes in result.groups
        for one in classes
        if one.jobs >= _CLASS_JOBS and one.wait.mean.low is not None and one.wait.mean.low > 0.0
    ]
    if losers:
        comments.append(f"wait longer: {', '.join(losers[:8])}{' ...' if len(losers) > 8 else ''}")
    if noise:
        comments.append("not shown to be better than the weights as they are: keep those")
    for comment in comments:
        line, *others = hanging("", comment, screen.cells - len("#   "))
        screen.put(f"# {line}", *(f"#   {line}" for line in others))
    mark = "# " if noise else ""
    screen.put(*(f"{mark}{name}={weight}" for name, weight in after.items() if weight != before[name]))
    settings = [f"--set {name}={weight}" for name, weight in after.items() if weight != before[name]]
    note("all classes of jobs:")
    hint("pilotfish whatif", str(folder), *settings)
