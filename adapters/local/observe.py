"""The state of each job, read from its directory.

Rule: an unreadable record makes a job UNKNOWN, never ended and never an error. A held lock or a live process makes it
RUNNING. A job that has ended is read once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ...simulate.model.job import DEFAULT_PROFILE, Job
from ...simulate.model.snapshot import JobState, JobView
from ..base import AdapterError
from .job_files import BEGIN, CANCEL, END, LOCK, PROBLEM, SPEC
from .job_spec import Begin, End, Spec, key_of, load
from .processes import is_alive, marked
from .state_dir import lock

Record = TypeVar("Record", Spec, Begin, End)

#: Part of the command line of each keeper, whichever version started it.
KEEPER = b"from local.keeper"
ADOPTED = "its keeper was killed; its exit code will be unknown"


class DirectoryObserver:
    """Reads job directories.

    Args:
        jobs: Directory that holds them.
        adopt: Called with a job's directory and its lock, taken, if the job has work left and no keeper.
        read_only: Take no lock and never call `adopt`; a missing directory means no jobs.
    """

    def __init__(self, jobs: Path, adopt: Callable[[str, int], None], *, read_only: bool = False) -> None:
        self._jobs, self._adopt, self._read_only = jobs, adopt, read_only
        self._ended: dict[str, JobView] = {}

    def jobs(self) -> tuple[JobView, ...]:
        """Return all jobs by submit time and key. Raises AdapterError if they cannot be listed."""
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
        """Return one job by the name of its directory, or None if there is no such job."""
        if view := self._ended.get(name):
            return view
        directory = self._jobs / name
        reader = _ReadOnlyJobReader(directory) if self._read_only else _JobReader(directory, self._adopt)
        view = reader.view()
        if view and view.state.ended:
            self._ended[name] = view
        return view

    def forget(self, name: str) -> None:
        """Read the job from disk the next time it is requested."""
        self._ended.pop(name, None)


class _JobReader:
    """Reads one job once."""

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
            return self._without_keeper(fd) if lock(fd) else self._with_keeper()
        finally:
            os.close(fd)

    def _with_keeper(self) -> JobView:
        begin = self._load(Begin, BEGIN)
        if begin is None:
            return self._view(JobState.RUNNING, self.problems.get(BEGIN, "starting"))
        if is_alive(begin.keeper_pid, begin.keeper_ticks, begin.boot_id):
            return self._view(JobState.RUNNING, "", begin)
        if end := self._load(End, END):  # it ended while we read
            return self._view(end.state, end.reason, end=end)
        return self._view(JobState.RUNNING, ADOPTED, begin)

    def _without_keeper(self, fd: int) -> JobView | None:
        """Return a job without a keeper; while we hold its lock no keeper can start."""
        if end := self._load(End, END):  # it ended between the first read and the lock
            return self._view(end.state, end.reason, end=end)
        if self._has(BEGIN):
            return self._begun(fd)
        spec = self._load(Spec, SPEC)
        if self.problems:
            return self._view(JobState.UNKNOWN, "; ".join(self.problems.values()))
        if self._has(CANCEL):
            self.adopt(self.directory, fd)
            return self._view(JobState.PENDING, "being cancelled")
        view = self._view(JobState.PENDING, self._keeper_error())
        return replace(view, nodes=(), cores=(), restartable=True) if spec else None

    def _begun(self, fd: int) -> JobView:
        """Return a job that began and whose keeper was killed; start a new keeper if it can learn anything."""
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
        reason = "; ".join(self.problems.values()) or "its keeper was killed; its processes are being looked for"
        return self._view(JobState.UNKNOWN, reason, begin)

    def _view(self, state: JobState, reason: str, begin: Begin | None = None, end: End | None = None) -> JobView:
        spec = self._load(Spec, SPEC)
        key = spec.key if spec else key_of(os.path.basename(self.directory))
        return JobView(
            key=key,
            job=spec.job if spec else Job(key, DEFAULT_PROFILE),
            state=state,
            nodes=spec.nodes if spec else (),
            cores=spec.cores if spec else (),
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

    def _keeper_error(self) -> str:
        with suppress(OSError), open(os.path.join(self.directory, PROBLEM), errors="replace") as file:
            return f"its keeper could not begin: {file.read(500)}"
        return ""


class _ReadOnlyJobReader(_JobReader):
    """Reads without a trace: holding the lock even for a moment could turn away the process that starts the job."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, lambda _directory, _fd: None)

    def view(self) -> JobView | None:
        if end := self._load(End, END):
            return self._view(end.state, end.reason, end=end)
        if not os.path.isdir(self.directory):
            return None
        begin = self._load(Begin, BEGIN)
        if begin:
            keeps = is_alive(begin.keeper_pid, begin.keeper_ticks, begin.boot_id)
        else:
            keeps = os.path.basename(self.directory) in kept_jobs(Path(self.directory).parent)
        return self._with_keeper() if keeps else self._without_keeper(-1)


def kept_jobs(jobs: Path) -> set[str]:
    """Return the names of the directories in `jobs`, existing or not, that have a keeper. O(processes).

    Anybody can start a process with a keeper's command line. A keeper is this user's process, and holds a job's lock.
    """
    names, folder = set(), os.path.realpath(jobs)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
                continue
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if KEEPER not in file.read():
                    continue
            for fd in os.listdir(f"/proc/{pid}/fd"):
                target = Path(os.readlink(f"/proc/{pid}/fd/{fd}").removesuffix(" (deleted)"))
                if target.name == LOCK and str(target.parent.parent) == folder:
                    names.add(target.parent.name)
    return names
