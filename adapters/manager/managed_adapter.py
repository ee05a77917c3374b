"""The part of an adapter that is the same for every resource manager with a queue: our own jobs, and previews.

Rule: a preview runs `apply` itself, with commands that are recorded and not run. A job of our own is looked up under
its key before it is submitted, and only its user may cancel it.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from ...formats.text import shell_words
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job
from ...simulate.model.plan import Action, Cancel, Place, Release, Start, Submit, SubmitAhead
from ..base import Adapter, AdapterError
from .read_times import ReadTimes


class ManagedJob(Protocol):
    """A job as the resource manager shows it."""

    @property
    def id(self) -> int:
        """Its id there."""

    @property
    def has_ended(self) -> bool:
        """True if it has ended, in whatever way."""


Record = TypeVar("Record", bound=ManagedJob)
Times = TypeVar("Times", bound=ReadTimes)


class ManagedAdapter(Adapter, Generic[Record, Times]):
    """An adapter of a resource manager whose users hand jobs over.

    Args:
        cluster: Nodes on which jobs may be placed.
        reads: When the queue was read.
        submit_options: Options of the site for our own jobs.
        output_dir: Directory for stdout and stderr of our own jobs; None: the resource manager's default.
        clock: Monotonic clock, seconds.
        id_in: Returns the id in the key of a user's job; None: it is the key of a job of our own.
        files_of: Returns the files of stdout and stderr of a job of our own, by folder and key.
    """

    notes: Sequence[str] = ()
    manager = ""  #: the resource manager's name for people
    cancel_command = ""

    def __init__(
        self,
        cluster: Cluster,
        reads: Times,
        submit_options: Sequence[str],
        output_dir: str | os.PathLike[str] | None,
        clock: Callable[[], float],
        id_in: Callable[[str], int | None],
        files_of: Callable[[Path, str], tuple[Path, Path]],
    ) -> None:
        self.cluster, self._reads, self._time, self._version = cluster, reads, clock, 0
        self._submit_options, self._id_in, self._files_of = tuple(submit_options), id_in, files_of
        self._output = None if output_dir is None else Path(output_dir).absolute()
        self._submitted: dict[str, Job] = {}  # by key, as we submitted them
        self._recorded: list[str] | None = None  # the lines of a preview

    @abstractmethod
    def _find(self, key: str) -> Record | None:
        """Return the last job that was submitted under a key. Raises AdapterError."""

    @abstractmethod
    def _is_ours(self, job: Record) -> bool:
        """Return whether our own user submitted a job."""

    @abstractmethod
    def _end(self, job: int) -> None:
        """End a job; in a preview, record the command. Raises AdapterError."""

    def preview(self, action: Action) -> list[str]:
        """Return the commands of `apply`, and other changes as comments. Changes nothing."""
        submitted, self._recorded = self._submitted.copy(), []
        try:
            self.apply(action)
            return self._recorded
        except AdapterError as error:
            return [f"# not done: {error}"]
        finally:
            self._recorded, self._submitted = None, submitted

    def _record(self, argv: Sequence[str]) -> None:
        """Add a command to the preview."""
        if self._recorded is not None:
            self._recorded.append(shell_words(argv, one_line=True))

    def output(self, key: str) -> tuple[Path, Path] | None:
        """Return the files of a job of our own if `output_dir` was given."""
        return None if self._output is None or self._id_in(key) is not None else self._files_of(self._output, key)

    def cancel(self, action: Cancel) -> None:
        """End a job of our own."""
        job = self._find(action.key)
        if job is None or job.has_ended:
            return
        if not self._is_ours(job):
            raise refused(action, f"only its user may cancel it ({self.cancel_command} {job.id})")
        if self._recorded is None:
            self._reads.note_change(action.key)
        self._end(job.id)

    def _users_job(self, action: Place) -> int:
        """Return the id of the user's job that is to be placed. Raises AdapterError."""
        number = self._id_in(action.key)
        if number is None:
            raise refused(action, f"it is not a job of {self.manager}'s users")
        return number

    def _submitted_before(self, action: Submit | SubmitAhead) -> Record | None:
        """Return the last job under the key of a job that can be submitted. Raises AdapterError if it cannot be."""
        if self._id_in(action.key) is not None:
            raise refused(action, f"only jobs of {self.manager}'s users have such a key")
        if isinstance(action, Submit):
            self._check_nodes(action)
        if not action.job.command:
            raise refused(action, "it has no command")
        return self._find(action.key)

    def _check_nodes(self, action: Start) -> None:
        """Raise AdapterError if the cluster lacks one of the nodes."""
        if unknown := [name for name in action.nodes if name not in self.cluster.index]:
            raise refused(action, f"there is no node {unknown[0]!r}")


def refused(action: Start | SubmitAhead | Cancel | Release, why: str) -> AdapterError:
    """Return the error of an action that is not carried out."""
    return AdapterError(f"{action.key}: {why}", kind="refused")
