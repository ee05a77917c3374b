"""The work of `train squared` and `evaluate` with pairs as tasks for workers: some epochs of a training, some copies.

Rule: an answer is plain values with all that the rest of the training depends on, so a training from a journal goes on
to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from ...formats.documents.open_input import file_digest
from ...formats.models.pair_model import PairModel
from ...formats.replays.workloads import as_submitted, read_workload
from ...learning.agents.pair_training import PairTraining, TrainingOptions
from ...learning.environments import site_pairs, thesis
from ...learning.environments.pairs import PairEnvironment, PairNode
from ...learning.evaluation import scores
from ...learning.pair_contenders import MakePolicy, easy_orders, numbers_on_nodes, rules_with_mask
from ...learning.traces import Trace
from ...simulate.model.workload import Workload
from .learning_tasks import check_unchanged, part_of, plain
from .staged_training import named_options, version


@dataclass(frozen=True, slots=True)
class PairInput:
    """A trace, and the nodes that its jobs run on.

    Args:
        path: the file.
        digest: SHA-256 of it.
        nodes: of a site; None: nodes and jobs are those of the thesis.
        sent: its jobs, for a worker that cannot see the file.
    """

    path: str
    digest: str
    nodes: tuple[PairNode, ...] | None = None
    sent: Workload | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, path: Path, nodes: tuple[PairNode, ...] | None = None) -> PairInput:
        """Return the input of a file. Raises ConfigError, OSError."""
        return cls(str(path.resolve()), file_digest(path), nodes)

    @property
    def name(self) -> str:
        """The name for people."""
        return Path(self.path).name.removesuffix(".gz").removesuffix(".swf")

    @property
    def machine(self) -> tuple[PairNode, ...]:
        """The nodes."""
        return thesis.NODES if self.nodes is None else self.nodes

    def portable(self) -> Workload:
        """Return the jobs, see `jobs`."""
        return self.jobs()

    def jobs(self) -> Workload:
        """Read the jobs that are used. Raises ConfigError: the trace is wrong, or was changed."""
        return _jobs(self)

    def trace(self, part: str) -> Trace:
        """Return a part of the jobs as a trace; `part`: as of --part. Raises ConfigError: there are too few."""
        processors = sum(node.processors for node in self.machine)
        return part_of(Trace(self.name, self.digest, self.jobs(), processors), part)

    def worlds(self, objective: str) -> tuple[PairEnvironment, PairEnvironment]:
        """Return the environment that a training plays, and the one that judges it. Raises ConfigError."""
        return _worlds(self, objective)


@lru_cache(maxsize=2)
def _jobs(source: PairInput) -> Workload:
    if source.sent is not None:
        return source.sent
    path = Path(source.path)
    check_unchanged(path, source.digest)
    trace = as_submitted(read_workload(path, speeds=(), skip_invalid=True))
    return thesis.jobs_of(trace) if source.nodes is None else site_pairs.usable_jobs(trace, source.nodes)


@lru_cache(maxsize=2)
def _worlds(source: PairInput, objective: str) -> tuple[PairEnvironment, PairEnvironment]:
    if source.nodes is None:
        return thesis.training_worlds(source.jobs(), objective)
    return site_pairs.training_worlds(source.jobs(), source.nodes, objective)


@dataclass(frozen=True, slots=True)
class TrainingTask:
    """Some epochs of a training: up to `until`, from a state of it, None: from the beginning."""

    source: PairInput
    objective: str
    options: TrainingOptions
    seed: int
    until: int
    state: Mapping[str, Any] | None = None

    @property
    def trace(self) -> PairInput:
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
        nodes = [(node.processors, node.speed) for node in self.source.machine]
        return {
            **version(), "the content of TRACE": {"sha256": self.source.digest}, "the nodes": {"sha256": nodes},
            "--objective": self.objective, **named_options(self.options, agent="--head"),
        }  # fmt: skip


def training_task(task: TrainingTask, jobs: Workload | None = None) -> dict[str, Any]:
    """Carry out the epochs, and return the state of the training with its seed. Raises ConfigError, OSError.

    Args:
        task: the epochs.
        jobs: of the trace, for a worker that cannot see the file.
    """
    worlds = replace(task.source, sent=jobs).worlds(task.objective)
    training = PairTraining(*worlds, task.options, task.seed)
    if task.state is not None:
        training.restore(task.state)
    training.run(task.until - training.epochs)
    return training.state() | {"seed": task.seed}


@dataclass(frozen=True, slots=True)
class PairScoreTask:
    """Models and their rivals on the copies of a trace that begin at one number."""

    source: PairInput
    part: str
    models: tuple[tuple[str, PairModel], ...]  # by name
    copies: int
    first: int

    @property
    def trace(self) -> PairInput:
        """Return what it reads."""
        return self.source

    @property
    def identity(self) -> str:
        """Return what tasks of one command differ in."""
        return f"{self.source.path} {self.first}"

    def contenders(self) -> dict[str, MakePolicy]:
        """Return the rivals and the models with their nets."""
        nodes = self.source.machine
        learned = {name: partial(model.guarded(name, "").replayed, 0) for name, model in self.models}
        return easy_orders() | rules_with_mask(self.models[0][1].sight, nodes) | learned


def pair_score_task(task: PairScoreTask) -> dict[str, dict[str, list[float]]]:
    """Replay the copies. Raises ConfigError, OSError."""
    nodes = task.source.machine
    sides = {name: partial(numbers_on_nodes, make=make, nodes=nodes) for name, make in task.contenders().items()}
    return plain(scores(task.source.trace(task.part), sides, task.copies, task.first))
