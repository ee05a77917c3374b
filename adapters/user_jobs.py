"""Commands of one user without a daemon: `submit`, `status`, `explain`, `cancel` on a login node.

Rule: all runs as the user and shows that user's jobs alone. A missing answer is never a refusal. A job is found by its
key, which the resource manager keeps, so that none is submitted twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..simulate.model.job import Job
from ..simulate.model.snapshot import JobState


@dataclass(frozen=True, slots=True)
class UserJob:
    """A job of the user's; times are epoch seconds, and None where it has not come to that."""

    id: int
    state: JobState
    key: str = ""  #: "": it was not submitted by pilotfish
    submit: float | None = None
    begin: float | None = None  #: when it may begin by itself
    start: float | None = None
    end: float | None = None
    nodes: tuple[str, ...] = ()
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""  #: what its state does not say
    after: tuple[int, ...] = ()  #: ids of the jobs that it waits for
    hold_s: int | None = None  #: for how long it is held for pilotfish, seconds
    estimate: float | None = None  #: when the resource manager says that it starts, while it waits
    follows: bool = False  #: whether it shows that the jobs before it have completed
    name: str = ""
    partition: str = ""  #: of Slurm, or queue of OAR
    priority: float | None = None  #: while it waits
    handed_over: bool = False  #: whether its request hands it over to pilotfish; the site may take it by other rules


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """A job of a workflow to be submitted.

    Args:
        job: The job.
        key: Its key.
        hold_s: Seconds from its submission to a begin time that is set for pilotfish; 0: none.
        begin_s: Seconds from now until it may begin; 0: at once.
        after: Ids of the jobs that must have completed.
        files: Files of stdout and stderr.
        link: The link that names the one job that may run under this key; see `start_claim`.
        before: The links of the jobs that must have completed.
        options: Options of the site or the user.
    """

    job: Job
    key: str
    hold_s: int
    begin_s: int
    after: Sequence[int]
    files: tuple[Path, Path]
    link: Path
    before: Sequence[Path] = ()
    options: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Story:
    """Facts that the resource manager has of a job beyond its state: entries of time, kind and text.

    Args:
        waits: Why it waits, "" if it does not.
        before: What happened before its start.
        after: What happened after its start.
        cores: The cores that it has on each of its nodes; (): not known.
    """

    waits: str = ""
    before: Sequence[tuple[float, str, str]] = ()
    after: Sequence[tuple[float, str, str]] = ()
    cores: Sequence[Sequence[int]] = ()


class UserJobs(Protocol):
    """A resource manager as one user sees it. Every call raises AdapterError."""

    #: Its name for people, and the command that cancels jobs.
    manager: str
    cancel_command: str
    #: Whether jobs have begin times, so that all can begin only when all are submitted.
    begins: bool

    def jobs(self) -> Sequence[UserJob]:
        """Return the user's jobs that have not ended, and those that ended lately."""
        ...

    def named(self, job: str) -> UserJob | None:
        """Return the user's job with this id, as users write it, if it is known."""
        ...

    def ended(self, ids: Collection[int]) -> Sequence[UserJob]:
        """Return how those of `ids` ended, as far as that is known. Raises nothing."""
        ...

    def story(self, job: UserJob, now: float) -> Story:
        """Return what is known of a job that was read before."""
        ...

    def cluster(self) -> str:
        """Return the name of the cluster; that of the resource manager if it has none."""
        return self.manager.lower()

    def time(self) -> float:
        """Return the clock of the resource manager, epoch seconds."""
        ...

    def is_too_long(self, request: SubmissionRequest) -> bool:
        """Return whether a job has a name that cannot be kept."""
        ...

    def submit(self, request: SubmissionRequest) -> int:
        """Submit a job; return its id."""
        ...

    def begin(self, ids: Iterable[int], in_s: int) -> None:
        """Let waiting jobs begin in `in_s` seconds, 0: now."""
        ...

    def cancel(self, ids: Iterable[int], *, waiting: bool = False) -> None:
        """Cancel jobs, or only those that have not begun."""
        ...

    def takes(self, option: str) -> bool:
        """Return whether a user may add this option to a submission."""
        ...


def by_key(jobs: Iterable[UserJob], preferred: Collection[int] = ()) -> dict[str, UserJob]:
    """Return jobs by their key.

    Args:
        jobs: Jobs of one user.
        preferred: Ids that are preferred where several jobs have one key; among others the last submitted is.
    """
    return {job.key: job for job in sorted(jobs, key=lambda job: (job.id in preferred, job.id)) if job.key}


def takes_option(word: str, reserved: Collection[str], letters: Collection[str]) -> bool:
    """Return whether a word is an option as `--name=value` that pilotfish does not set itself.

    Args:
        word: The word.
        reserved: Names of the long options that pilotfish sets.
        letters: Letters of the short ones.
    """
    if word.startswith("--"):
        return word.removeprefix("--").partition("=")[0] not in reserved
    return word[:1] == "-" and word[1:2] not in letters
