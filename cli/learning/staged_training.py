"""Trainings of several seeds, stage by stage on workers, which can be interrupted and resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from ...simulate.errors import ConfigError
from ..streams import warn
from ..sweeps.run_journal import JournalKind, RunJournal
from ..sweeps.tasks import Failure
from ..sweeps.workers import PoolLostError
from ..worker_options import worker_pool
from .training_progress import TrainingProgress

#: A training of one seed up to an epoch, from a state of it: a dataclass with `seed`, `until` and `state`.
AnyTraining = TypeVar("AnyTraining", bound=Any)


@dataclass(frozen=True, slots=True)
class Stages(Generic[AnyTraining]):
    """The stages of some trainings.

    Args:
        trainings: a task for each seed, at its beginning; a state has its `seed`, and its `epochs` so far.
        carry_out: carries out a task, and returns the state of the training.
        value_of: returns the mean objective of a state.
        epochs: of each training.
        each: epochs of a stage.
        unit: word for an epoch, singular.
    """

    trainings: Sequence[AnyTraining]
    carry_out: Callable[[AnyTraining], dict[str, Any]]
    value_of: Callable[[dict[str, Any]], float]
    epochs: int
    each: int
    unit: str = "epoch"

    def run(
        self, objective: str, workers: int | None, journal_file: Path | None, dask: str | None
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Carry out the trainings, and return the last state of each.

        Args:
            objective: name of what is to be small.
            workers: processes; None: as many as there are cores.
            journal_file: keeps the states; None: nothing does.
            dask: address of a Dask cluster, in place of processes.

        Raises:
            ConfigError: a training failed, or none began.
            PilotfishError: there is no such cluster, or it was lost before any training began.
        """
        states = dict[int, dict[str, Any]]()
        kind = JournalKind("training", self.trainings[0].shared_identity)
        with nullcontext() if journal_file is None else RunJournal(journal_file, kind) as journal:
            if journal is not None:
                states |= _last_states(journal.done.values(), {task.seed for task in self.trainings})
            try:
                with (
                    TrainingProgress(objective, self.epochs, len(self.trainings), self.unit) as progress,
                    worker_pool(workers, dask) as crew,  # processes for one training, too: it computes with one thread
                ):
                    for stage in range(self.each, self.epochs + self.each, self.each):
                        until = min(stage, self.epochs)
                        tasks = list(self._next_tasks(states, until))
                        for batch in crew.each(self.carry_out, tasks) if tasks else ():
                            for task, answer in batch:
                                if isinstance(answer, Failure):
                                    raise ConfigError("train", f"seed {task.seed}", answer.why)
                                states[task.seed] = answer
                                if journal is not None:
                                    journal.add({task.identity: answer})
                        progress.reached(until, list(map(self.value_of, states.values())))
            except (KeyboardInterrupt, PoolLostError) as error:
                if not states and isinstance(error, PoolLostError):
                    raise
                least = min((state["epochs"] for state in states.values()), default=0)
                warn(f"{str(error) or 'interrupted'} after {least} of {self.epochs} {self.unit}s")
        if not states:
            raise ConfigError("train", "", f"no {self.unit} ended", f"at least {self.each}")
        return [states[task.seed] for task in self.trainings if task.seed in states]

    def _next_tasks(self, states: dict[int, dict[str, Any]], until: int) -> Iterator[AnyTraining]:
        """Yield the tasks of trainings that have not reached an epoch."""
        for task in self.trainings:
            state = states.get(task.seed)
            if state is None or state["epochs"] < until:
                yield replace(task, until=until, state=state)


def _last_states(states: Iterable[dict[str, Any]], seeds: set[int]) -> dict[int, dict[str, Any]]:
    """Return the last state of each of some seeds."""
    ascending = sorted(states, key=lambda state: state["epochs"])
    return {state["seed"]: state for state in ascending if state["seed"] in seeds}
