"""What became of each job, read from its directory.

Rule: a record that cannot be read makes a job UNKNOWN, never ended and never an error; a lock that is held,
or a process that lives, makes it RUNNING. What has ended is read once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ...simulate.job import DEFAULT_PROFILE, Job
from ...simulate.snapshot import JobState, JobView
from ..base import AdapterError
from .keeper import COMMAND
from .processes import is_alive, marked
from .records import BEGIN, CANCEL, END, LOCK, PROBLEM, SPEC
from .spec import Begin, End, Spec, key_of, load
from .statedir import lock

Record = TypeVar("Record", Spec, Begin, End)

ADOPTED = "its keeper was killed; its exit code will be unknown"


class Observer:
    """Reads job directories.

    Args:
        jobs: the directory that holds them.
        adopt: called with a job's directory and its lock, taken, when it has work left and nobody to keep it.
        read_only: take no lock and call nobody; without a directory there are no jobs.
    """

    def __init__(self, jobs: Path, adopt: Callable[[str, int], None], *, read_only: bool = False) -> None:
        self._jobs, self._adopt, self._read_only = jobs, adopt, read_only
        self._ended: dict[str, JobView] = {}

    def jobs(self) -> tuple[JobView, ...]:
        """Return every job, by submit time and key. Raises AdapterError where they cannot be listed."""
        try:
            names = os.listdir(self._jobs)
        except OSError as error:
            if self._read_only and isinstance(error, FileNotFoundError):
                return ()
            raise AdapterError(f"{self._jobs}: cannot be read: {error.strerror}", kind="read") from error
        self._ended = {name: self._ended[name] for name in names if name in self._ended}
        views = [view for name in names if (view := self.view(name))]
        return tuple(sorted(views, key=lambda view: (view.submit_time or 0.0, view.key)))

    def view(self, name: str) -> JobView | None:
        """Return one job by the name of its directory, None where there is none."""
        if view := self._ended.get(name):
            return view
        directory = self._jobs / name
        look = _Glance(directory) if self._read_only else _Look(directory, self._adopt)
        view = look.view()
        if view and view.state.ended:
            self._ended[name] = view
        return view

    def forget(self, name: str) -> None:
        """Read that job anew when it is asked for again."""
        self._ended.pop(name, None)


class _Look:
    """One look at one job."""

    def __init__(self, directory: Path, adopt: Callable[[str, int], None]) -> None:
        self.directory, self.adopt = str(directory), adopt
        self.problems: dict[str, str] = {}

    def view(self) -> JobView | None:
        if end := self._load(End, END):
            return self._view(end.state, end.reason, end=end)
        try:
            fd = os.open(os.path.join(self.directory, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return self._view(JobState.UNKNOWN, f"its lock cannot be opened: {error.strerror}")
        try:
            return self._unkept(fd) if lock(fd) else self._kept()
        finally:
            os.close(fd)

    def _kept(self) -> JobView:
        begin = self._load(Begin, BEGIN)
        if begin is None:
            return self._view(JobState.RUNNING, self.problems.get(BEGIN, "starting"))
        if is_alive(begin.keeper_pid, begin.keeper_ticks, begin.boot_id):
            return self._view(JobState.RUNNING, "", begin)
        if end := self._load(End, END):  # it ended while we looked
            return self._view(end.state, end.reason, end=end)
        return self._view(JobState.RUNNING, ADOPTED, begin)

    def _unkept(self, fd: int) -> JobView | None:
        """Nobody keeps it, and while we hold its lock nobody can begin to."""
        if end := self._load(End, END):  # it ended between the first look and the lock
            return self._view(end.state, end.reason, end=end)
        if self._has(BEGIN):
            return self._begun(fd)
        spec = self._load(Spec, SPEC)
        if self.problems:
            return self._view(JobState.UNKNOWN, "; ".join(self.problems.values()))
        if self._has(CANCEL):
            self.adopt(self.directory, fd)
            return self._view(JobState.PENDING, "being cancelled")
        view = self._view(JobState.PENDING, self._last_words())
        return replace(view, nodes=(), restartable=True) if spec else None

    def _begun(self, fd: int) -> JobView:
        """It began, and its keeper was killed; where a new one can learn anything it is started."""
        begin = self._load(Begin, BEGIN)
        if begin is None:
            alive = bool(marked(self.directory))
        elif is_alive(begin.keeper_pid, begin.keeper_ticks, begin.boot_id):
            return self._view(JobState.RUNNING, "its lock was removed", begin)
        else:
            alive = is_alive(begin.pid, begin.start_ticks, begin.boot_id)
        if alive or not self.problems or self._has(CANCEL):
            self.adopt(self.directory, fd)
        if alive:
            return self._view(JobState.RUNNING, ADOPTED, begin)
        reason = (
            "; ".join(self.problems.values()) or "its keeper was killed; what is left is being looked for"
        )
        return self._view(JobState.UNKNOWN, reason, begin)

    def _view(
        self, state: JobState, reason: str, begin: Begin | None = None, end: End | None = None
    ) -> JobView:
        spec = self._load(Spec, SPEC)
        key = spec.key if spec else key_of(os.path.basename(self.directory))
        return JobView(
            key=key,
            job=spec.job if spec else Job(key, DEFAULT_PROFILE),
            state=state,
            nodes=spec.nodes if spec else (),
            submit_time=spec.submit_time if spec else None,
            start_time=end.start_time if end else begin.start_time if begin else None,
            finish_time=end.finish_time if end else None,
            exit_code=end.exit_code if end else None,
            signal=end.signal if end else None,
            usage=end.usage if end else (),
            reason=reason or self.problems.get(SPEC, ""),
            pid=begin.pid if begin and state is JobState.RUNNING else None,
        )

    def _load(self, kind: type[Record], name: str) -> Record | None:
        try:
            return load(kind, self.directory, name)
        except ValueError as problem:
            self.problems[name] = str(problem)
            return None

    def _has(self, name: str) -> bool:
        return os.path.exists(os.path.join(self.directory, name))

    def _last_words(self) -> str:
        with suppress(OSError), open(os.path.join(self.directory, PROBLEM), errors="replace") as file:
            return f"its keeper could not begin: {file.read(500)}"
        return ""


class _Glance(_Look):
    """A look that leaves no trace: even to hold the lock for a moment would turn away who starts the job."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, lambda _directory, _fd: None)

    def view(self) -> JobView | None:
        if end := self._load(End, END):
            return self._view(end.state, end.reason, end=end)
        if not os.path.isdir(self.directory):
            return None
        begin = self._load(Begin, BEGIN)
        kept = (
            is_alive(begin.keeper_pid, begin.keeper_ticks, begin.boot_id) if begin else _has_keeper(self.directory)
        )
        return self._kept() if kept else self._unkept(-1)


def _has_keeper(directory: str) -> bool:
    """Whether a process was started to keep this job; O(processes)."""
    return os.path.basename(directory) in kept(Path(directory).parent)


def kept(jobs: Path) -> set[str]:
    """The names of the directories in `jobs`, there or not, that a process was started to keep. O(processes)."""
    names = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read().split(b"\0")
            if os.fsencode(COMMAND) in arguments:
                names |= {Path(os.fsdecode(path)) for path in arguments if path.startswith(b"/")}
    return {path.name for path in names if path.parent == jobs}
