"""The work of `train` and `evaluate` as tasks for workers: one search, or one trace under all contenders.

Rule: an answer is plain numbers, so that one from a journal is the same to the bit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ...formats.documents.open_input import file_digest
from ...formats.replays.workloads import as_submitted, format_of, read_workload
from ...formats.text import count, counted
from ...learning.contenders import Contender, contender, numbers_of, rivals
from ...learning.evaluation import Scores, scores
from ...learning.order_search import SearchOptions, Start, search, start_of
from ...learning.traces import Trace
from ...profiles.prediction.online_run_times import OnlineRunTimes
from ...simulate.errors import ConfigError
from ...simulate.model.workload import Workload
from ...simulate.queue_policies.learned_order import LearnedOrder
from ..sweeps.tasks import digest_of
from .staged_training import Stages, named_options, version

#: Parts of a trace by the word of --part.
PARTS = ("all", "first-half", "second-half")
#: Fewest jobs to learn from or to judge by.
LEAST_JOBS = 100
#: The same of a window.
LEAST_IN_WINDOW = 10
#: Generations of a stage; after each, the search so far is judged, which takes as long as a third of a generation.
GENERATIONS_EACH = 6


@dataclass(frozen=True, slots=True)
class TraceInput:
    """Files of traces, and which part of each is used.

    Args:
        paths: the files.
        digests: SHA-256 of each.
        processors: of the machine; None: as each trace says.
        part: one of PARTS.
    """

    paths: tuple[str, ...]
    digests: tuple[str, ...]
    processors: int | None
    part: str = PARTS[0]

    @classmethod
    def of(cls, paths: Sequence[Path], processors: int | None, part: str) -> TraceInput:
        """Return the input of some files. Raises ConfigError, OSError: one cannot be read."""
        digests = tuple(map(_digest, paths))
        return cls(tuple(str(path.resolve()) for path in paths), digests, processors, part)

    @property
    def path(self) -> str:
        """The first file."""
        return self.paths[0]

    def portable(self) -> tuple[Trace, ...]:
        """Return the traces, see `traces`."""
        return self.traces()

    def traces(self) -> tuple[Trace, ...]:
        """Read the traces. Raises ConfigError: one is wrong, too short, or does not say how large its machine is."""
        return _read(self)


@lru_cache(maxsize=2)
def _read(sources: TraceInput) -> tuple[Trace, ...]:
    traces = []
    for name, digest in zip(sources.paths, sources.digests, strict=True):
        path = Path(name)
        check_unchanged(path, digest)
        jobs = _jobs_of_site(path) if path.is_dir() else as_submitted(read_workload(path, speeds=(), skip_invalid=True))
        if jobs.dependencies is not None or jobs.programs is not None:
            raise ConfigError(path.name, "", "its jobs depend on others or on the machine", "a trace of rigid jobs")
        processors = sources.processors or jobs.machine
        if processors is None:
            size = format_of(path).size
            raise ConfigError(path.name, size, "missing: how large the machine is", "--procs N")
        fitting = jobs.take(jobs.size <= processors, "jobs larger than the machine")
        trace = Trace(path.name.removesuffix(".gz").removesuffix(".swf"), digest, fitting, processors)
        trace = part_of(trace, sources.part)
        if not np.isfinite(trace.jobs.walltime).all():
            raise ConfigError(path.name, "", "jobs without a time limit", "a limit for each job")
        traces.append(trace)
    return tuple(traces)


def part_of(trace: Trace, part: str) -> Trace:
    """Return a part of a trace, one of PARTS. Raises ConfigError: it has too few jobs."""
    chosen = trace if part == PARTS[0] else trace.half(second=part == PARTS[2])
    if len(chosen.jobs) < LEAST_JOBS:
        left_out = f"; left out: {counted(chosen.jobs.left_out)}" if chosen.jobs.left_out else ""
        raise ConfigError(
            trace.jobs.name, "", f"{count(len(chosen.jobs), 'job')}{left_out}", f"at least {LEAST_JOBS} jobs"
        )
    return chosen


def check_unchanged(path: Path, digest: str) -> None:
    """Raise ConfigError if a file, or a site, is not what it was; `digest`: SHA-256 of it when the command began."""
    if _digest(path) != digest:
        raise ConfigError(path.name, "", "it was changed after the command began", "the file as it was")


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the files of a site. Raises ConfigError, OSError."""
    if not path.is_dir():
        return file_digest(path)
    from ..whatif.replay_tasks import source_of

    return digest_of(json.dumps(sorted(source_of(path, None, "UTC")[0].trace.hashes.items())).encode())


def _jobs_of_site(folder: Path) -> Workload:
    """Return the jobs of a site as rigid jobs without dependencies, each when it was ready. Raises ConfigError."""
    from ...simulate.replay.site_replay import workload_of_site
    from ...simulate.slurm.job_columns import SiteJobs
    from ..whatif.replay_tasks import source_of

    _, site = source_of(folder, None, "UTC")
    workload, columns = workload_of_site(site), SiteJobs.of(site.jobs)
    numbers = {user: number for number, user in enumerate(dict.fromkeys(one.user for one in columns.patterns))}
    users = np.array([numbers[one.user] for one in columns.patterns], np.int64)[columns.pattern[workload.rows]]
    machine = workload.machine.processors
    return replace(workload.jobs, dependencies=None, machine=machine, more={"user": users})


@dataclass(frozen=True, slots=True)
class SearchTask:
    """A stage of a search: up to the generation `until`, from a state of it, None: from the beginning."""

    source: TraceInput
    windows: int
    options: SearchOptions
    predicting: bool
    start: Start
    seed: int
    until: int = 0
    state: Mapping[str, Any] | None = None

    @property
    def trace(self) -> TraceInput:
        """Return what it reads."""
        return self.source

    @property
    def key(self) -> str:
        """Return what searches of one command differ in."""
        return f"{self.seed} {digest_of(''.join(self.source.digests).encode())[:16]}"

    @property
    def identity(self) -> str:
        """Return what tasks of one command differ in."""
        return f"{self.key} {self.until}"

    @property
    def shared_inputs(self) -> dict[str, Any]:
        """Return what is equal only if the version, the inputs and the options are equal, by name."""
        names = {"patience": "--wait-factor", "max_wait": "--max-wait in seconds", "kind": "the kind of the order"}
        return {
            **version(), "the content of TRACE": {"sha256": list(self.source.digests)},
            "--procs": self.source.processors, "--part": self.source.part,
            "--windows": self.windows, "--no-predictions": not self.predicting,
            **named_options(self.options, **names),
        }  # fmt: skip


def search_tasks(
    source: TraceInput, windows: int, options: SearchOptions, seeds: int, *, predicting: bool
) -> list[SearchTask]:  # fmt: skip
    """Return the searches of one command, after finding what all begin with. Raises ConfigError: a trace is wrong.

    Args:
        source: what they learn from.
        windows: parts that each trace is cut into.
        options: of each search.
        seeds: how many searches.
        predicting: they may have predicted run times.
    """
    start = start_of(_windows(source.traces(), windows), options, predicted if predicting else None)
    return [SearchTask(source, windows, options, predicting, start, seed) for seed in range(1, seeds + 1)]


def search_task(task: SearchTask, traces: tuple[Trace, ...] | None = None) -> dict[str, Any]:
    """Carry out the generations, and return the search with its `epochs`. Raises ConfigError, OSError.

    Args:
        task: the generations.
        traces: what it learns from, for a worker that cannot see the files.
    """
    windows = _windows(task.source.traces() if traces is None else traces, task.windows)
    predict = predicted if task.predicting else None
    stage = search(windows, task.options, task.start, task.seed, predict, until=task.until, earlier=task.state)
    return asdict(stage) | {"epochs": len(stage.course)}


def search_stages(tasks: Sequence[SearchTask]) -> Stages[SearchTask]:
    """Return the stages of some searches with the same options."""
    generations = tasks[0].options.generations
    return Stages(tasks, search_task, score_of, generations, GENERATIONS_EACH, "generation", own_process=False)


def score_of(state: Mapping[str, Any]) -> float:
    """Return what a search makes small, of the order with which it would end now: objective times cost of waits."""
    return math.exp(float(state["value"]) + float(state["excess"]))


def _windows(traces: Sequence[Trace], number: int) -> list[Trace]:
    windows = [window for trace in traces for window in trace.windows(number)]
    if number > 1 and (fewest := min(len(window.jobs) for window in windows)) < LEAST_IN_WINDOW:
        problem = f"{number} leaves {count(fewest, 'job')} in a window"
        raise ConfigError("--windows", "", problem, f"at least {LEAST_IN_WINDOW} jobs in each")
    return windows


def predicted(trace: Trace) -> OnlineRunTimes:
    """Return a predictor of run times for a trace."""
    return OnlineRunTimes(trace.jobs)


@dataclass(frozen=True, slots=True)
class ScoreTask:
    """All contenders on the copies of the traces that begin at one number."""

    source: TraceInput
    models: tuple[tuple[LearnedOrder, bool], ...]  # each with whether it knows predicted run times
    predicting: bool
    copies: int
    first: int

    @property
    def trace(self) -> TraceInput:
        """Return what it reads."""
        return self.source

    @property
    def identity(self) -> str:
        """Return what tasks of one command differ in."""
        return f"{self.source.paths[0]} {self.first}"

    def contenders(self) -> list[Contender]:
        """Return the rivals and the learned orders."""
        learned = [contender(order, predicted=predicts) for order, predicts in self.models]
        return rivals(max(order.max_wait for order, _ in self.models), self.predicting) + learned


def score_task(task: ScoreTask) -> dict[str, dict[str, list[float]]]:
    """Replay the copies. Raises ConfigError, OSError."""
    (trace,) = task.source.traces()
    contenders = {side.name: partial(numbers_of, side=side, predict=predicted) for side in task.contenders()}
    return plain(scores(trace, contenders, task.copies, task.first))


def plain(scored: Scores) -> dict[str, dict[str, list[float]]]:
    """Return the numbers of a task as plain values."""
    return {name: {key: column.tolist() for key, column in rows.items()} for name, rows in scored.numbers.items()}


def joined(trace: str, answers: Sequence[dict[str, dict[str, list[float]]]]) -> Scores:
    """Return the numbers of some tasks about one trace, in their order."""
    names = answers[0]
    return Scores(
        trace,
        {name: {key: np.concatenate([one[name][key] for one in answers]) for key in names[name]} for name in names},
    )
