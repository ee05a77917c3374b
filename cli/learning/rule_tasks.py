"""The work of `train rules` and `evaluate` with such models as tasks for workers: a stage of a training, some windows.

Rule: an answer is plain values with all that the rest of the training depends on, so a training from a journal goes on
to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ...formats.documents.open_input import file_digest
from ...formats.models.rule_model import RuleModel
from ...formats.replays.workloads import as_submitted, read_workload
from ...formats.text import count
from ...learning.agents.rule_agents import RuleTraining
from ...learning.environments.rule_choice import RuleChoiceEnvironment
from ...learning.evaluation import scores
from ...learning.rule_training import RuleLearning, training_worlds, window_at
from ...learning.traces import Trace
from ...simulate.arrays import Array
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from ...simulate.model.machine import machine_of, speeds_of
from ...simulate.model.workload import Workload
from ...simulate.queue_policies.policy_facts import PolicySpec
from ...simulate.queue_policies.policy_specs import Pairs, text_of
from ...simulate.replay.replay import replay
from ...simulate.world.rule_options import ALL_PAIRS, RuleOptions
from ...simulate.world.task_tables import processors_of
from ..sweeps.tasks import digest_of
from .learning_tasks import check_unchanged, plain
from .staged_training import named_options, version


@dataclass(frozen=True, slots=True)
class RuleInput:
    """A workload, and the nodes that its tasks run on.

    Args:
        path: the file.
        digest: SHA-256 of it.
        cluster: the nodes.
        mark: names the nodes.
        sent: its jobs, for a worker that cannot see the file.
    """

    path: str
    digest: str
    cluster: Cluster = field(compare=False)
    mark: str
    sent: Workload | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, path: Path, cluster: Cluster) -> RuleInput:
        """Return the input of a file. Raises ConfigError, OSError."""
        return cls(str(path.resolve()), file_digest(path), cluster, digest_of(repr(cluster.nodes).encode()))

    @property
    def name(self) -> str:
        """The name for people."""
        return Path(self.path).name.removesuffix(".gz").removesuffix(".swf").removesuffix(".json")

    def portable(self) -> Workload:
        """Return the jobs, see `jobs`."""
        return self.jobs()

    def jobs(self) -> Workload:
        """Read the jobs that fit. Raises ConfigError: the trace is wrong, or was changed."""
        return _jobs(self)

    def half(self) -> Workload:
        """Return the first half of the jobs, those of a training."""
        jobs = self.jobs()
        return jobs.take(np.arange(len(jobs)) < len(jobs) // 2)

    def worlds(self, options: RuleOptions, episode: int) -> tuple[RuleChoiceEnvironment, RuleChoiceEnvironment]:
        """Return the environments of a training, see `training_worlds`. Raises ConfigError."""
        return _worlds(self, options, episode)


@lru_cache(maxsize=2)
def _jobs(source: RuleInput) -> Workload:
    if source.sent is not None:
        return source.sent
    path = Path(source.path)
    check_unchanged(path, source.digest)
    jobs = as_submitted(read_workload(path, speeds=speeds_of(source.cluster), skip_invalid=True))
    if jobs.dependencies is not None or jobs.programs is not None:
        raise ConfigError(path.name, "", "its jobs depend on others or on a network", "jobs with run times")
    memory = jobs.more.get("memory", np.zeros(len(jobs)))
    nodes = processors_of(source.cluster).template.nodes
    fits = (jobs.size <= nodes["limit"].sum()) & (memory <= nodes["memory"].min())
    is_used = fits & np.isfinite(jobs.run_time) & (jobs.run_time > 0.0)
    return jobs.take(is_used, "jobs too large or without a run time")


@lru_cache(maxsize=2)
def _worlds(
    source: RuleInput, options: RuleOptions, episode: int
) -> tuple[RuleChoiceEnvironment, RuleChoiceEnvironment]:
    return training_worlds(source.half(), source.cluster, options, episode)


@dataclass(frozen=True, slots=True)
class RuleTrainingTask:
    """A stage of a training: up to the update `until`, from a state of it, None: from the beginning."""

    source: RuleInput
    choices: RuleOptions
    episode: int
    options: RuleTraining
    seed: int
    until: int = 0
    state: Mapping[str, Any] | None = None

    @property
    def trace(self) -> RuleInput:
        """Return what it reads."""
        return self.source

    @property
    def key(self) -> str:
        """Return what trainings of one command differ in."""
        return str(self.seed)

    @property
    def identity(self) -> str:
        """Return what tasks of one command differ in."""
        return f"{self.key} {self.until}"

    @property
    def shared_inputs(self) -> dict[str, Any]:
        """Return what is equal only if the version, the inputs and the options are equal, by name."""
        return {
            **version(), "the content of --workload": {"sha256": self.source.digest},
            "the nodes": {"sha256": self.source.mark}, "--episode": self.episode,
            **named_options(self.choices, actions="the rules and void"),
            **named_options(self.options, critic="--agent actor-critic"),
        }  # fmt: skip


def rule_training_task(task: RuleTrainingTask, jobs: Workload | None = None) -> dict[str, Any]:
    """Carry out the stage, and return the state of the training with its seed. Raises ConfigError, OSError.

    Args:
        task: the stage.
        jobs: of the workload, for a worker that cannot see the file.
    """
    worlds = replace(task.source, sent=jobs).worlds(task.choices, task.episode)
    training = RuleLearning(*worlds, task.options, task.seed)
    if task.state is not None:
        training.restore(task.state)
    training.run(task.until)
    return training.state() | {"seed": task.seed}


@dataclass(frozen=True, slots=True)
class RuleScoreTask:
    """Models and all pairs of rules on some windows of a workload."""

    source: RuleInput
    part: str
    models: tuple[tuple[str, RuleModel], ...]  # by name
    windows: int  # of the verdict
    first: int
    count: int  # of this task

    @property
    def trace(self) -> RuleInput:
        """Return what it reads."""
        return self.source

    @property
    def identity(self) -> str:
        """Return what tasks of one command differ in."""
        return f"{self.source.path} {self.first}"


def pairs_on(cluster: Cluster) -> dict[str, PolicySpec]:
    """Return the pairs of rules by their SPECs; those by power only where it is known."""
    powered = processors_of(cluster).powered
    pairs = [Pairs(*pair) for pair in ALL_PAIRS if isinstance(pair, tuple)]
    return {text_of(pair): pair for pair in pairs if powered or not pair.needs_power}


def window_starts(jobs: int, part: str, episode: int, windows: int) -> Array:
    """Return the first job of each window, spread evenly over a part of a trace [windows].

    Args:
        jobs: of the trace.
        part: as of --part.
        episode: jobs of a window.
        windows: how many windows.
    """
    begin, end = {"first-half": (0, jobs // 2), "second-half": (jobs // 2, jobs)}.get(part, (0, jobs))
    if end - begin < episode:
        raise ConfigError(
            "evaluate", "--part", count(end - begin, "job"), f"at least {episode:,}, an episode of the model"
        )
    starts: Array = np.linspace(begin, end - episode, windows).astype(np.int64)
    return starts


def rule_score_task(task: RuleScoreTask) -> dict[str, dict[str, list[float]]]:
    """Replay the windows. Raises ConfigError, OSError."""
    (_, model), *_ = task.models
    jobs, episode, cluster = task.source.jobs(), int(model.trained["episode"]), task.source.cluster
    starts = window_starts(len(jobs), task.part, episode, task.windows)[task.first : task.first + task.count]
    sides = pairs_on(cluster) | {name: one.policy(name) for name, one in task.models}
    by_window = [
        scores(
            Trace(task.source.name, task.source.digest, window_at(jobs, int(start), episode), 0),
            {name: partial(_numbers, policy=policy, cluster=cluster) for name, policy in sides.items()},
            1, task.first + number,
        )
        for number, start in enumerate(starts)
    ]  # fmt: skip
    names = by_window[0].numbers
    rows = {
        name: {key: np.concatenate([one.numbers[name][key] for one in by_window]) for key in names[name]}
        for name in names
    }
    return plain(replace(by_window[0], numbers=rows))


def _numbers(trace: Trace, policy: PolicySpec, cluster: Cluster) -> dict[str, float]:
    """Return what a window costs, by objective, its mean and its longest wait in seconds."""
    replayed: Any = replay(trace.jobs, machine_of(cluster), policy)
    waits = replayed.start_time - replayed.workload.submit_time
    makespan = float(replayed.finish_time.max() - replayed.workload.submit_time.min())
    costs = {"makespan": makespan, "wait": float(waits.mean()), "longest_wait": float(waits.max())}
    joules = replayed.joules
    return costs if joules is None else costs | {"energy": joules, "energy-delay": joules * makespan}
