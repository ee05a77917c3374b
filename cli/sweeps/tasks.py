"""One run of a sweep as a task for a worker: trace, selection of jobs, machine, policy, seed.

Rule: an error of a run is an answer, a Failure; a worker keeps only the trace that it read last. The files are replayed
with the content that they had when the sweep began, or not at all. Errors name the files as the sweep does, and what a
sweep allows.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from ... import __version__
from ...formats.documents.open_input import file_digest
from ...formats.replays.workloads import as_submitted, read_workload
from ...formats.text import counted
from ...formats.user_policy import load_policy
from ...profiles.prediction.online_run_times import OnlineRunTimes
from ...simulate.errors import ConfigError, PilotfishError
from ...simulate.model.machine import Machine
from ...simulate.model.workload import Workload
from ...simulate.queue_policies.interface import QueuePolicy
from ...simulate.queue_policies.loaded_policies import parse_python_policy
from ...simulate.queue_policies.policy_facts import spec_of
from ...simulate.queue_policies.policy_specs import PLANNING, Placing, Planned, Policy, parse
from ...simulate.replay.engines import Feature, job_features
from ...simulate.replay.metrics import summarise
from ...simulate.replay.replay import assumed_powers, replay
from ...simulate.replay.replay_case import ReplayCase, ReplayOptions
from ...simulate.replay.requirements import check_jobs
from ...simulate.replay.select import Select
from ...simulate.slurm.site_policy import SlurmRules
from ...simulate.world.known_run_times import PREDICTED, WALLTIME
from ...trust import message_of

_WORDS = {
    "--skip-invalid": "skip_invalid: true in the sweep's file",
    "--cluster": "a file among `machines`",
    "--procs": "a number of processors",
}


def in_a_sweep(text: str) -> str:
    """Replace options of `simulate` in a message by keys of a sweep."""
    for option, words in _WORDS.items():
        text = text.replace(option, words)
    return text


#: Content of the file of a trace, and of each file that it names.
Contents = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Abilities:
    """The properties of a machine that decide how long jobs run.

    Args:
        speeds: flop/s of its cores, all that there are; () = not known.
        storages: names of those in its network; None = nothing is known of a network.
    """

    speeds: tuple[float, ...] = ()
    storages: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace, and the hash of what was in it when the sweep began.

    Args:
        size: what in it says how large the machine is.
        named: name and hash of each file that it names; names are relative to its folder, or absolute.
    """

    path: str
    digest: str
    skip_invalid: bool = False
    size: str = "MaxProcs"
    named: tuple[tuple[str, str], ...] = ()

    @property
    def hashes(self) -> dict[str, str]:
        """Name -> hash, of itself and of each file that it names."""
        return {Path(self.path).name: self.digest, **dict(self.named)}

    @property
    def kept_together(self) -> bool:
        """True if all of them lie in its folder, and would be found in another folder as well."""
        return not any(Path(name).is_absolute() or ".." in Path(name).parts for name, _ in self.named)

    def contents(self) -> Contents:
        """Read the files. Raises OSError."""
        return tuple((Path(self.path).parent / name).read_bytes() for name in self.hashes)

    def portable(self) -> Contents:
        """Return the contents of the files, for a worker that cannot see them. Raises ConfigError, OSError."""
        if not self.kept_together:
            problem = "it names files outside its folder, which --dask cannot send to workers"
            raise ConfigError(self.path, "", problem, "names in its folder, without ..")
        return self.contents()


def digest_of(data: bytes) -> str:
    """Return the hash of the content of a file."""
    return hashlib.sha256(data).hexdigest()


def hashes(path: Path, names_in: Callable[[Path], Iterable[str]]) -> dict[str, str]:
    """Return name -> hash of a file and of the files that it names. Raises ConfigError, OSError."""
    return {name: file_digest(path.parent / name) for name in (path.name, *names_in(path))}


@lru_cache(maxsize=1)
def jobs_of(trace: TraceFile, contents: Contents | None, machine: Abilities, select: Select) -> Workload:
    """Return the jobs to replay. Raises ConfigError, OSError.

    Args:
        trace: the trace.
        contents: of the trace's files, for a process that cannot see them; None = read the files.
        machine: what decides how long the jobs run.
        select: which jobs to keep, and how much faster they arrive.
    """
    return select.of(_read(trace, contents, machine))


@lru_cache(maxsize=1)
def _read(trace: TraceFile, contents: Contents | None, machine: Abilities) -> Workload:
    if contents is None:
        workload, contents = _parsed(trace, Path(trace.path), machine), trace.contents()
    else:
        with tempfile.TemporaryDirectory() as folder:
            workload = _parsed(trace, copied(trace, contents, Path(folder)), machine)
    if list(map(digest_of, contents)) != list(trace.hashes.values()):
        raise ConfigError(trace.path, "", "it was changed while the sweep ran", "the file as it was")
    return workload


def copied(trace: TraceFile, contents: Contents, folder: Path) -> Path:
    """Copy the trace and the files that it names into a folder; return the copy."""
    copies = [folder / name for name in trace.hashes]
    for copy, content in zip(copies, contents, strict=True):
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
    return copies[0]


def _parsed(trace: TraceFile, path: Path, machine: Abilities) -> Workload:
    """Read the jobs in the file at `path`, the trace or a copy of it; errors name the trace."""
    try:
        return as_submitted(read_workload(path, **asdict(machine), skip_invalid=trace.skip_invalid))
    except ConfigError as error:
        source, key, problem = error.source, error.key, error.problem
        if str(path) != trace.path:
            folder = f"{path.parent}/", trace.path.removesuffix(path.name)
            source, key, problem = (text.replace(*folder) for text in (source, key, problem))
        raise ConfigError(source, key, problem, in_a_sweep(error.allowed)) from None


@dataclass(frozen=True, slots=True)
class SweepTask:
    """A run.

    Args:
        identity: under which its numbers are kept.
        machine: None = as large as the trace says.
        policy: the SPEC.
        source: what is in the file of a policy of a user's own.
        rules: the policy, if it is Slurm's own rules at a site.
        abilities: of the machine, where the trace's run times depend on them.
        runtimes: what the policy knows of run times.
        contention: jobs on one node slow each other down.
        bare: the machine is only a number of processors.
    """

    identity: str
    trace: TraceFile
    select: Select
    machine: Machine | None
    policy: str
    seed: int
    source: bytes | None = None
    rules: SlurmRules | None = None
    abilities: Abilities = field(default_factory=Abilities)
    runtimes: str = WALLTIME
    contention: bool = False
    bare: bool = False


class TaskInput(Hashable, Protocol):
    """The files of a task, or what was read from them."""

    @property
    def path(self) -> str:
        """Return its file, or the first one, for people."""

    def portable(self) -> Any:
        """Return what a worker needs that cannot see the files. Raises ConfigError, OSError: it cannot be sent."""


class PoolTask(Protocol):
    """A task of a worker; its function takes it, and as a second argument what was sent of its input, if it was."""

    @property
    def identity(self) -> str:
        """Return the name under which its numbers are kept."""

    @property
    def trace(self) -> TaskInput:
        """Return what it reads; a worker keeps what it read last."""


AnyTask = TypeVar("AnyTask", bound=PoolTask)


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a run has no result, in one sentence."""

    why: str


def attempt(version: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function, or the Failure.

    Args:
        version: of the pilotfish that asks.
        function: what a worker does.
        arguments: of the function.
    """
    try:
        if version != __version__:
            raise ConfigError("worker", "", f"it has pilotfish {__version__}", f"{version}, as the command that asks")
        return function(*arguments)
    except PilotfishError as error:
        return Failure(str(error))
    except MemoryError:
        return Failure("there is not enough memory")
    except OSError as error:
        return Failure(message_of(error))
    except Exception as error:
        return Failure(f"unexpected {type(error).__name__}: {error}")


def features_of_task(task: SweepTask, contents: Contents | None = None) -> frozenset[Feature]:
    """Read the trace of a task and return what an engine must support for its jobs.

    Args:
        task: the run.
        contents: of the files of the trace, for a worker that cannot read them.

    Raises:
        ConfigError: the trace is wrong, has no jobs, has jobs that the policy refuses, or states no machine size.
    """
    jobs = jobs_of(task.trace, contents, task.abilities, task.select)
    if not len(jobs):
        losses = f"; left out: {counted(jobs.left_out)}" if jobs.left_out else ""
        raise ConfigError(task.trace.path, "", f"no jobs to replay{losses}")
    policy = _built_in(task) if task.source is None else parse_python_policy(task.policy)  # which is not loaded
    check_jobs(ReplayCase(jobs, _machine(task, jobs, policy), policy, _options(task)))
    return job_features(jobs, task.runtimes)


def carry_out(task: SweepTask, contents: Contents | None = None) -> dict[str, Any]:
    """Replay a task; return its numbers, named as in `Summary`. Raises PilotfishError, OSError.

    Args:
        task: the run.
        contents: see `features_of_task`.
    """
    jobs = jobs_of(task.trace, contents, task.abilities, task.select)
    policy = _policy(task)
    machine = _machine(task, jobs, policy)
    predictor = OnlineRunTimes(jobs) if task.runtimes == PREDICTED else None
    if isinstance(policy, Planned):
        from ..replay.service_decider import ServiceDecider

        assert machine.cluster is not None
        service = ServiceDecider.mapping(policy.name, Path(machine.cluster.source), task.seed, task.runtimes)
        replayed = service.run(jobs, machine.cluster, predictor=predictor).replayed
    else:
        options = replace(_options(task), run_times=predictor or task.runtimes, clock=time.perf_counter)
        replayed = replay(jobs, machine, policy, options)
    return asdict(summarise(replayed, machine.powers))


def _options(task: SweepTask) -> ReplayOptions:
    return ReplayOptions(seed=task.seed, contention=task.contention, run_times=task.runtimes)


def _built_in(task: SweepTask) -> Policy | Placing | Planned | SlurmRules:
    if task.rules is not None:
        return task.rules
    return Planned(task.policy) if task.policy in PLANNING else parse(task.policy)


def _policy(task: SweepTask) -> Policy | Placing | Planned | SlurmRules | QueuePolicy:
    if task.source is None:
        return _built_in(task)
    return cast("QueuePolicy", load_policy(parse_python_policy(task.policy), task.seed, task.source).policy)


def _machine(task: SweepTask, jobs: Workload, policy: object) -> Machine:
    if task.machine is not None:
        return replace(task.machine, powers=assumed_powers(policy)) if task.bare else task.machine
    site_machine = spec_of(policy).machine
    if site_machine is not None:
        return site_machine
    if jobs.machine is None:
        problem = "missing: the size of the machine"
        raise ConfigError(task.trace.path, task.trace.size, problem, "that, or `machines` in the sweep's file")
    return Machine(jobs.machine, powers=assumed_powers(policy))
