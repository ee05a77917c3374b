"""A sweep with everything that its runs need: hashes of the files, machines, and the identity of every run.

Rule: errors are found here or by `check`, before anything runs; they name the sweep's file and key.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from ... import __version__
from ...formats.documents.plausible import cluster_doubts
from ...formats.replays.machines import read_machine
from ...formats.replays.side_files import files_of_machine, files_of_workload
from ...formats.replays.sweep import read_sweep
from ...formats.replays.workloads import Format, format_of
from ...formats.site.site_policy_folder import site_digest
from ...formats.user_policy import load_policy
from ...simulate import sweep as grid
from ...simulate.errors import ConfigError
from ...simulate.model.machine import Machine, machine_of, speeds_of, storages_of
from ...simulate.queue_policies.loaded_policies import SITE, Own
from ...simulate.queue_policies.policy_specs import text_of
from ...simulate.replay.engines import Feature, engine_for
from ...simulate.replay.metrics import Summary
from ...simulate.replay.replay import check_machine
from ...simulate.replay.requirements import demands_on_jobs
from ...simulate.slurm.site_policy import SlurmRules
from ...simulate.sweep import ClusterMachine, Sweep, SweepRun, Trace, identity
from ...simulate.world.known_run_times import PREDICTED
from ..streams import warn
from .tasks import Abilities, Failure, SweepTask, TraceFile, digest_of, features_of_task, hashes, in_a_sweep
from .workers import WorkerPool


@dataclass(frozen=True, slots=True)
class PreparedMachine:
    """A machine of a sweep.

    Args:
        machine: None = of the size that the trace states.
        abilities: see `Abilities`.
    """

    machine: Machine | None = None
    abilities: Abilities = field(default_factory=Abilities)

    @property
    def alike(self) -> Machine | None:
        """Return the machine for jobs whose run time does not depend on placement."""
        return None if self.machine is None else replace(self.machine, network=None)


def machines_of(sweep: Sweep, folder: Path) -> dict[int | ClusterMachine | None, PreparedMachine]:
    """Read the machines of a sweep and check each with each policy. Raises ConfigError."""
    places = {choice: _place(choice, folder) for choice in sweep.machines}
    for (choice, place), policy, contention in product(places.items(), sweep.policies, sweep.contention):
        try:
            if place.machine is not None:
                check_machine(policy, place.machine, contention=contention)
        except ConfigError as error:
            where = "" if error.source == "policy" else f"{error.source}: "
            problem = f"{text_of(policy)} on {choice}: {where}{error.key}: {error.problem}".replace(": : ", ": ")
            raise ConfigError(sweep.source, "machines", problem, in_a_sweep(error.allowed)) from None
    return places


def _place(one: int | ClusterMachine | None, folder: Path) -> PreparedMachine:
    if isinstance(one, ClusterMachine):
        cluster = read_machine(folder / one.file)
        warn(*cluster_doubts(cluster))
        storages = storages_of(cluster)
        abilities = Abilities(speeds_of(cluster), None if storages is None else tuple(storages))
        machine = machine_of(cluster, whole_nodes=one.whole_nodes, solver=one.solver)
        return PreparedMachine(replace(machine, cluster=replace(cluster, wiring=None)), abilities)
    return PreparedMachine() if one is None else PreparedMachine(Machine(one))


#: The one number that differs each time.
MEASURED = "simulation_time"
NUMBERS = (*(each.name for each in fields(Summary) if each.name != MEASURED), MEASURED)


@dataclass(frozen=True)
class Prepared:
    """A sweep, its runs, and the task of each.

    Args:
        sweep: what is varied.
        contents: file, as the sweep names it -> hash.
        runs: all runs, in order.
        tasks: the task of each run.
        reading: kernels that read the traces.
    """

    sweep: Sweep
    contents: Mapping[str, str]
    runs: tuple[SweepRun, ...]
    tasks: tuple[SweepTask, ...]
    reading: frozenset[str]

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """Return the columns that describe a run."""
        return grid.columns(self.sweep)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of the results."""
        return (*self.varied, "status", "error", *NUMBERS)

    @cached_property
    def same(self) -> tuple[str, ...]:
        """Return the columns in which comparable runs are equal: selection of jobs, and load."""
        return self.varied[1 : self.varied.index("machine")]

    def kernels(self, features: Iterable[frozenset[Feature]]) -> set[str]:
        """Return the kernels that replay jobs with these features, under each policy of the sweep."""
        shared = [{Feature.SHARED} if contention else set() for contention in self.sweep.contention]
        combined = product(self.sweep.policies, features, shared)
        engines = (engine_for(policy, of_jobs | of_nodes) for policy, of_jobs, of_nodes in combined)
        return {kernel for engine in engines for kernel in engine.kernels}

    @property
    def pairs(self) -> Iterator[tuple[SweepRun, SweepTask]]:
        """Return each run with its task."""
        return zip(self.runs, self.tasks, strict=True)

    def todo(self, done: Iterable[str]) -> list[SweepTask]:
        """Return the tasks whose identity is not in `done`, each once, in the order of the runs."""
        finished = set(done)
        return list({task.identity: task for task in self.tasks if task.identity not in finished}.values())

    def row(self, run: SweepRun, answer: Mapping[str, Any] | Failure) -> dict[str, Any]:
        """Return the row of a run in the results."""
        if isinstance(answer, Failure):
            ended = {"status": "failed", "error": answer.why, **dict.fromkeys(NUMBERS)}
        else:
            ended = {"status": "done", "error": None, **{key: answer[key] for key in NUMBERS}}
        return grid.described(run, self.varied) | ended


def prepare(path: Path, *, execute: bool = True) -> Prepared:
    """Read a sweep's file and the files it names.

    Args:
        path: the sweep's file.
        execute: load each user's policy once, to check its class and options. False executes nothing that the file
            names, and checks only that it is Python.

    Raises:
        ConfigError: a file is wrong.
        PolicyError: the user's code raised an exception.
        OSError: a file cannot be read.
    """
    sweep = read_sweep(path)
    _refuse_combinations(sweep)
    folder, runs = path.parent, tuple(grid.runs(sweep))
    places = machines_of(sweep, folder)
    forms = {trace.file: format_of(folder / trace.file) for trace in sweep.traces}
    traces = {trace: _trace(trace, folder, forms[trace.file]) for trace in sweep.traces}
    sites = {
        one.file: hashes(folder / one.file, files_of_machine)
        for one in sweep.machines
        if isinstance(one, ClusterMachine)
    }
    own_sources: dict[Any, bytes] = {
        policy: _source(policy, folder, sweep, execute=execute) for policy in sweep.policies if isinstance(policy, Own)
    }
    files = {trace.file: one.hashes for trace, one in traces.items()} | sites
    contents = {
        str(Path(name).parent / one): digest for name, hashes_of in files.items() for one, digest in hashes_of.items()
    }
    contents |= {policy.where: digest_of(source) for policy, source in own_sources.items()}
    specs = {policy: text_of(policy) for policy in sweep.policies}
    identities = specs | {policy: text_of(replace(policy, where=contents[policy.where])) for policy in own_sources}
    identities |= {one: SITE + site_digest(one.site) for one in sweep.policies if isinstance(one, SlurmRules)}
    held = {name: "+".join(hashes_of.values()) for name, hashes_of in sites.items()}

    def task(run: SweepRun) -> SweepTask:
        trace, place, depends = traces[run.trace], places[run.machine], forms[run.trace.file].depends
        machine = place.machine if depends else place.alike
        if machine is not None and not (run.contention or run.policy.needs_nodes or run.policy.machine):
            machine = replace(machine, cluster=None)
        content = held | {run.trace.file: "+".join(trace.hashes.values())}
        return SweepTask(
            identity(run, identities[run.policy], content, __version__, NUMBERS),
            trace, run.select, machine, specs[run.policy], run.seed,
            source=own_sources.get(run.policy),
            rules=run.policy if isinstance(run.policy, SlurmRules) else None,
            abilities=place.abilities if depends else Abilities(),
            runtimes=run.runtimes, contention=run.contention, bare=not isinstance(run.machine, ClusterMachine),
        )  # fmt: skip

    reading = frozenset(kernel for form in forms.values() for kernel in form.kernels)
    return Prepared(sweep, contents, runs, tuple(map(task, runs)), reading)


def _refuse_combinations(sweep: Sweep) -> None:
    """Raise ConfigError if no engine replays a policy as the sweep's other keys say."""
    for policy, runtimes, contention in product(sweep.policies, sweep.runtimes, sweep.contention):
        features = {Feature.PREDICTED} if runtimes == PREDICTED else set[Feature]()
        try:
            engine_for(policy, features | ({Feature.SHARED} if contention else set()))
        except ConfigError as error:
            raise ConfigError(sweep.source, "policies", error.problem, error.allowed) from None


def _trace(trace: Trace, folder: Path, form: Format) -> TraceFile:
    """Return a trace for the workers. Raises OSError."""
    (_, digest), *more_files = hashes(folder / trace.file, files_of_workload).items()
    return TraceFile(str(folder / trace.file), digest, trace.skip_invalid, form.size, tuple(more_files))


def _source(policy: Own, folder: Path, sweep: Sweep, *, execute: bool) -> bytes:
    """Return the file of a user's policy after checking it. Raises ConfigError, PolicyError."""
    path = folder / policy.where
    try:
        if execute:
            load_policy(replace(policy, where=str(path)), sweep.seeds[0])
        elif not policy.is_model:
            compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        problem = f"{policy}: {policy.where}: not Python: {str(error)[:200]}"
        raise ConfigError(sweep.source, "policies", problem) from None
    except ConfigError as error:
        where = f"{error.source}: {error.key}" if error.source != "policy" else error.key
        raise ConfigError(sweep.source, "policies", f"{policy}: {where}: {error.problem}", error.allowed) from None
    return path.read_bytes()


def check(prepared: Prepared, todo: Iterable[SweepTask], pool: WorkerPool) -> set[frozenset[Feature]]:
    """Read the traces of some tasks on the workers; return what engines must support for the jobs of each.

    Args:
        prepared: the sweep.
        todo: tasks to check.
        pool: the workers.

    Raises:
        ConfigError: the first error, in the order of the sweep.
    """
    runs = {task.identity: run for run, task in prepared.pairs}

    def content(task: SweepTask) -> Hashable:
        """Return what decides whether the jobs of a task can be replayed."""
        run, depends = runs[task.identity], task.abilities != Abilities()
        machine = run.machine if depends else task.machine is None
        return task.trace, replace(task.select, load=1.0), machine, demands_on_jobs(run.policy), run.runtimes

    checked = list({content(task): task for task in todo}.values())
    answers = {task.identity: answer for batch in pool.each(features_of_task, checked) for task, answer in batch}
    for task in checked:
        if isinstance(failure := answers[task.identity], Failure):
            raise ConfigError(prepared.sweep.source, runs[task.identity].trace.key, failure.why)
    return set(answers.values())
