"""The local adapter: starts, cancels and observes jobs on this machine. All of its state is on disk.

Rule: each job has a directory and a lock. Only the holder of the lock may start the job, and it passes the lock to the
job's keeper. A job is therefore started once, whichever process is killed, and its outcome is read, never guessed.
"""

from __future__ import annotations

import os
import select
import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from ...formats.command_words import INPUT, named_files
from ...machine_share import affinity, control_group_limits
from ...simulate.model.cluster import Cluster
from ...simulate.model.plan import Cancel, Submit
from ...simulate.model.snapshot import NodeState, Snapshot
from ...trust import check_folder
from ..base import Adapter, AdapterError, Capabilities, inherited
from .cgroups import ControlGroups, remove
from .job_files import BEGIN, CANCEL, CONTROL, END, EVENTS, LOCK, SPEC, opened, write_record
from .job_spec import Spec, directory_name, plain
from .keeper_server import KeeperServer
from .observe import DirectoryObserver, kept_jobs
from .processes import MARK
from .state_dir import StateDir, lock
from .validation import beyond_limits, check_cluster, check_options, check_start, shared_cpus


class LocalAdapter(Adapter):
    """This machine as a resource manager; see `create` for the arguments."""

    name = "local"
    capabilities = Capabilities(here=True)
    notes: Sequence[str] = ()

    def __init__(
        self,
        cluster: Cluster,
        state_dir: str | os.PathLike[str],
        *,
        grace_s: float = 5.0,
        output_dir: str | os.PathLike[str] | None = None,
        cgroups: bool = True,
        read_only: bool = False,
    ) -> None:
        check_options({"state_dir": state_dir, "output_dir": output_dir}, grace_s, cgroups=cgroups, read_only=read_only)
        check_cluster(cluster)
        self.cluster, self.grace_s = cluster, grace_s
        self.output_dir = None if output_dir is None else Path(output_dir).absolute()
        self._read_only = read_only
        try:
            self._check_outputs()
        except OSError as error:
            raise AdapterError(f"output_dir: {error.strerror}", kind="refused") from None
        self._state = StateDir(state_dir, read_only=read_only)
        cgroups = cgroups and not read_only  # looking for control groups creates the parent groups
        self._groups = ControlGroups.of_this_process() if cgroups else ControlGroups("", "")
        self._groups.sweep()
        limited = beyond_limits(cluster, control_group_limits())
        self.notes = [*shared_cpus(cluster), *limited, *(self._groups.notes if cgroups else ())]
        self._observer = DirectoryObserver(self._state.jobs, self._adopt, read_only=read_only)
        self._keepers = KeeperServer(self._state.jobs, inherited(os.environ))
        self._begun = kept_jobs(self._state.jobs)  # jobs that must not run again, even if their directory is gone
        self._version = 0
        self._open = True
        self._events = self._open_events()
        self._poller = select.poll()
        self._poller.register(self._events, select.POLLIN)

    def _open_events(self) -> int:
        if self._read_only:
            return os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        events = self._state.path / EVENTS
        with suppress(FileExistsError):
            os.mkfifo(events, 0o600)
        return os.open(events, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def snapshot(self) -> Snapshot:
        """Read all jobs: O(jobs) for the listing and O(1) file reads for each job that has not ended."""
        self._usable()
        self._drain()
        return self.refresh(())

    def refresh(self, keys: Collection[str]) -> Snapshot:
        """Read all jobs again. An end that this reading is the first to see still ends the next `wait`."""
        self._usable()
        jobs = self._observer.jobs()
        usable = set(affinity())
        states = (NodeState.UP if usable.issuperset(node.cpus) else NodeState.DOWN for node in self.cluster.nodes)
        self._version += 1
        return Snapshot(time.time(), self._version, self.cluster, tuple(states), jobs)

    def wait(self, timeout_s: float) -> bool:
        """Block until a job ends or `wake` is called, at most `timeout_s` seconds; return True if one of them did."""
        self._usable()
        self._poller.poll(max(0.0, min(timeout_s, 1e6)) * 1000)
        return self._drain()

    def wake(self) -> None:
        """Make `wait` return. Safe to call from a signal handler or another thread."""
        with suppress(BlockingIOError):
            os.write(self._events, b"w" * 8)  # eventfd(2) takes 8 bytes

    def fileno(self) -> int | None:
        """Return a descriptor that is readable when `wait` would return.

        None when read-only: keepers notify only the adapter that owns the state directory.
        """
        return None if self._read_only else self._events

    def output(self, key: str) -> tuple[Path, Path]:
        """Return the files of the job's stdout and stderr, which need not exist yet."""
        name = directory_name(key)
        if self.output_dir is None:
            return self._state.jobs / name / "stdout", self._state.jobs / name / "stderr"
        return self.output_dir / f"{name}.out", self.output_dir / f"{name}.err"

    def forget(self, key: str) -> None:
        """Remove the records of a job that has ended, if there are any; a later Start would run it again.

        Raises:
            AdapterError: The job has not ended, or its records cannot be removed.
        """
        self._writable()
        name = directory_name(key)
        view = self._observer.view(name)
        if view is None:
            return
        if not view.state.ended:
            raise AdapterError(f"job {key!r} is {view.state}: only ended jobs can be forgotten", kind="refused")
        self._observer.forget(name)
        self._begun.discard(name)
        try:
            self._state.forget(name)
        except FileNotFoundError:
            return
        except OSError as error:
            raise AdapterError(f"job {key!r} cannot be removed: {error.strerror}", transient=True) from error

    def close(self) -> None:
        """Release the state directory; jobs go on under their keepers."""
        if self._open:
            self._open = False
            self._keepers.close()
            os.close(self._events)
            self._state.close()

    def submit(self, start: Submit) -> None:
        """Start a job, unless one ever began under its key.

        Raises:
            AdapterError: kind `refused`: it can never be started; `spawn` (transient): nothing was started.
        """
        self._writable()
        check_start(start, self.cluster)
        name = directory_name(start.key)
        directory = str(self._state.jobs / name)
        spec = None
        try:
            with suppress(FileExistsError):
                os.mkdir(directory, 0o700)
            with opened(os.path.join(directory, LOCK), os.O_RDWR | os.O_CREAT) as fd:
                try:
                    if not lock(fd):
                        return
                    files = set(os.listdir(directory))
                    if files & {BEGIN, END, CANCEL}:
                        return
                    if name in self._begun and SPEC not in files:
                        why = "its directory was removed, and its keeper may put it back"
                        raise AdapterError(f"job {start.key!r} was not started: {why}", transient=True, kind="spawn")
                    self._check_outputs()
                    spec = self._spec(start, directory)
                    write_record(directory, SPEC, plain(spec))
                    self._keepers.start(directory, fd)
                    self._begun.add(name)
                except OSError:
                    self._begun.discard(name)
                    shutil.rmtree(directory, ignore_errors=True)  # locked and not begun: no other process is in it
                    remove(spec.cgroups if spec else ())
                    raise
        except OSError as error:
            why = f"job {start.key!r} could not be started: {error.strerror}"
            raise AdapterError(why, transient=True, kind="spawn", argv=start.job.command or ()) from error

    def _check_outputs(self) -> None:
        """Refuse a folder of outputs that others can write to. Raises OSError."""
        if self.output_dir is not None and not self._read_only:
            with suppress(FileNotFoundError, NotADirectoryError):
                check_folder(self.output_dir)

    def _spec(self, start: Submit, directory: str) -> Spec:
        job, by_name = start.job, {node.name: node for node in self.cluster.nodes}
        cores = tuple(by_name[node].cpus for node in start.nodes)
        cpus = tuple(sorted({cpu for core in cores for cpu in core}))
        stdout, stderr = self.output(start.key)
        variables = {
            "PILOTFISH_JOB_ID": job.id,
            "PILOTFISH_KEY": start.key,
            "PILOTFISH_NODES": ",".join(start.nodes),
            "PILOTFISH_CPUS": ",".join(map(str, cpus)),
            "PILOTFISH_THREADS": str(job.profile.threads * len(start.nodes)),
            MARK: directory,
        }
        ctime_ns = os.stat(os.path.join(directory, LOCK)).st_ctime_ns  # so that no job reuses an earlier job's group
        unique = f"job-{sha256(os.fsencode(f'{directory}:{ctime_ns}')).hexdigest()[:24]}"
        return Spec(
            key=start.key,
            job=replace(job, base_environment=None),  # it is in `environment`
            nodes=start.nodes,
            cpus=cpus,
            submit_time=time.time(),
            environment=(*(job.base_environment or ()), *job.environment, *variables.items()),
            directory=os.path.abspath(job.directory or "."),
            stdout=str(stdout),
            stderr=str(stderr),
            grace_s=self.grace_s,
            cgroups=self._groups.make(unique, cpus, job.memory * len(start.nodes)),
            cores=cores,
            files=tuple((f"{INPUT}{place}", word) for place, word in named_files(job.command or ()).items()),
            whole=job.base_environment is not None,
        )

    def _adopt(self, directory: str, fd: int) -> None:
        with suppress(OSError):  # the next snapshot tries again
            self._keepers.start(directory, fd)

    def cancel(self, cancel: Cancel) -> None:
        """End a job; one that has not begun never begins. Nothing is done if it has ended or is unknown."""
        self._writable()
        directory = str(self._state.jobs / directory_name(cancel.key))
        view = self._observer.view(os.path.basename(directory))
        if view is None or view.state.ended:
            return
        try:
            with opened(os.path.join(directory, CANCEL), os.O_WRONLY | os.O_CREAT):
                pass
            with opened(os.path.join(directory, LOCK), os.O_RDWR | os.O_CREAT) as fd:
                if lock(fd):
                    self._keepers.start(directory, fd)  # the new keeper finds the cancel file and ends what is left
            control = os.path.join(directory, CONTROL)  # no keeper listens yet, or any more: the cancel file is enough
            with suppress(OSError), opened(control, os.O_WRONLY | os.O_NONBLOCK) as fd:
                os.write(fd, b"c")
        except OSError as error:
            why = f"job {cancel.key!r} could not be cancelled: {error.strerror}"
            raise AdapterError(why, transient=True, kind="spawn") from error

    def _drain(self) -> bool:
        drained = False
        with suppress(BlockingIOError):
            while os.read(self._events, 4096):
                drained = True
        return drained

    def _writable(self) -> None:
        self._usable()
        if self._read_only:
            raise AdapterError("the local adapter is read-only", kind="refused")

    def _usable(self) -> None:
        if not self._open:
            raise AdapterError("the local adapter is closed", kind="refused")
