"""Trainings of several seeds, stage by stage on workers, which can be interrupted and resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from ... import __version__
from ...formats.text import count
from ...simulate.errors import ConfigError
from ...simulate.kernels.object_cache import source_stamp
from ..streams import note, warn
from ..sweeps.run_journal import JournalKind, RunJournal, RunJournalError
from ..sweeps.tasks import Failure
from ..sweeps.workers import PoolLostError
from ..worker_options import worker_pool
from .training_progress import TrainingProgress

#: A training up to an epoch, from a state of it: a dataclass with `key`, which no other has, `until`, `state`, and
#: `shared_inputs`: name -> value of what is equal only if the version, the inputs and the options are equal.
AnyTraining = TypeVar("AnyTraining", bound=Any)
#: Exit codes.
_FAILED, _INTERRUPTED = 1, 130


def version() -> dict[str, str]:
    """Return the version of pilotfish and of its kernels as an input of a training."""
    return {"version of pilotfish": f"{__version__}, {source_stamp()[:12]}"}


def named_options(options: Any, **names: str) -> dict[str, Any]:
    """Return the fields of a dataclass as options of a command.

    Args:
        options: the dataclass.
        names: field -> name of its option, where that is not made from the name of the field.
    """
    return {names.get(key, f"--{key.replace('_', '-')}"): value for key, value in asdict(options).items()}


@dataclass(frozen=True, slots=True)
class Trained:
    """The result of some trainings.

    Args:
        states: the last state of each that came to the end of a stage, by its key.
        code: the exit code of the command: not 0 if a training failed, or was interrupted.
    """

    states: dict[str, dict[str, Any]]
    code: int


@dataclass(frozen=True, slots=True)
class Stages(Generic[AnyTraining]):
    """The stages of some trainings.

    Args:
        trainings: a task for each, at its beginning.
        carry_out: carries out a task, and returns the state of the training, which has its `epochs` so far.
        value_of: returns the mean objective of a state.
        epochs: of each training.
        each: epochs of a stage.
        unit: word for an epoch, singular.
        own_process: a single training, too, has a process of its own, which computes with one thread.
    """

    trainings: Sequence[AnyTraining]
    carry_out: Callable[[AnyTraining], dict[str, Any]]
    value_of: Callable[[dict[str, Any]], float]
    epochs: int
    each: int
    unit: str = "epoch"
    own_process: bool = True

    def run(
        self, objective: str, workers: int | None, journal_file: Path | None, dask: str | None
    ) -> Trained:  # fmt: skip
        """Carry out the trainings.

        Args:
            objective: name of what is to be small.
            workers: processes; None: as many as there are cores.
            journal_file: keeps the states; None: nothing does.
            dask: address of a Dask cluster, in place of processes.

        Raises:
            ConfigError: all failed, or the journal is of other inputs.
            PilotfishError: there is no such cluster; or it was lost, or the journal cannot be written, before the end
                of the first stage.
            KeyboardInterrupt: before the end of the first stage.
        """
        states, failures, code = dict[str, dict[str, Any]](), dict[str, str](), 0
        kind = JournalKind("training", self._shared_inputs())
        with nullcontext() if journal_file is None else RunJournal(journal_file, kind) as journal:
            if journal is not None:
                states |= _last_states(journal.done, {task.key for task in self.trainings})
            try:
                with (
                    TrainingProgress(objective, self.epochs, len(self.trainings), self.unit) as progress,
                    worker_pool(workers, dask, None if self.own_process else len(self.trainings)) as crew,
                ):
                    for stage in range(self.each, self.epochs + self.each, self.each):
                        until = min(stage, self.epochs)
                        tasks = [task for task in self._next_tasks(states, until) if task.key not in failures]
                        for batch in crew.each(self.carry_out, tasks) if tasks else ():
                            for task, answer in batch:
                                if isinstance(answer, Failure):
                                    failures[task.key] = answer.why
                                    continue
                                states[task.key] = answer
                                if journal is not None:
                                    journal.add({task.identity: answer})
                        if states:
                            progress.reached(until, list(map(self.value_of, states.values())))
            except (KeyboardInterrupt, PoolLostError, RunJournalError) as error:
                code = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else _FAILED
                warn(f"{str(error) or 'interrupted'}: {self._reached(states)}")
                if not isinstance(error, RunJournalError):
                    note("the same command goes on" if journal_file else "with --resume FILE, the same command goes on")
                if not states:
                    raise
        for key, why in failures.items():
            warn(f"the training {key} failed: {why}")
        if not states:
            raise ConfigError("train", "", next(iter(failures.values()), "no training"), "at least one that ends")
        states = {task.key: states[task.key] for task in self.trainings if task.key in states}
        return Trained(states, code or (_FAILED if failures else 0))

    def _shared_inputs(self) -> dict[str, Any]:
        """Return what all trainings share by its name; where they differ, all their values."""
        columns = {
            name: [task.shared_inputs[name] for task in self.trainings] for name in self.trainings[0].shared_inputs
        }
        return {
            name: values[0] if all(value == values[0] for value in values) else {"sha256": values}
            for name, values in columns.items()
        }

    def _reached(self, states: Mapping[str, dict[str, Any]]) -> str:
        """Return how far trainings came, in words."""
        if not states:
            return f"no training came to {self.unit} {min(self.each, self.epochs)}"
        least, trainings = min(state["epochs"] for state in states.values()), count(len(self.trainings), "training")
        return f"{len(states)} of {trainings} came to {self.unit} {least} of {self.epochs}; the best so far is kept"

    def _next_tasks(self, states: Mapping[str, dict[str, Any]], until: int) -> Iterator[AnyTraining]:
        """Yield the tasks of trainings that have not reached an epoch."""
        for task in self.trainings:
            state = states.get(task.key)
            if state is None or state["epochs"] < until:
                yield replace(task, until=until, state=state)


def _last_states(journal: Mapping[str, dict[str, Any]], keys: set[str]) -> dict[str, dict[str, Any]]:
    """Return the last state of each of some trainings, by its key."""
    ascending = sorted(journal.items(), key=lambda row: row[1]["epochs"])
    by_key = {identity.rpartition(" ")[0]: state for identity, state in ascending}
    return {key: state for key, state in by_key.items() if key in keys}
