"""A sweep with all that its runs need: files hashed, machines read, every run known by its identity.

Rule: what is wrong is found here or by `check`, before anything runs, and the error names the sweep's file and key.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ... import __version__
from ...simulate.batch.demands import demanded
from ...simulate.batch.metrics import Summary
from ...simulate.batch.own import Own
from ...simulate.batch.pairs import Contending
from ...simulate.batch.spec import text_of
from ...simulate.errors import ConfigError
from ...simulate.formats.beside import beside_machine, beside_workload
from ...simulate.formats.sweep import read_sweep
from ...simulate.formats.workloads import Format, format_of
from ...simulate.sweep import grid
from ...simulate.sweep.grid import Run, Site, Sweep, Trace
from ...simulate.sweep.identity import identity
from ..own_policy import make
from .crew import Crew
from .place import places_of
from .task import Failure, Kind, Task, look
from .trace import Abilities, TraceFile, digest_of, hashes

#: The one number that is another each time.
MEASURED = "simulation_time"
NUMBERS = (*(each.name for each in fields(Summary) if each.name != MEASURED), MEASURED)
DONE, FAILED = "done", "failed"


@dataclass(frozen=True)
class Prepared:
    """A sweep, its runs, and the task of each.

    Args:
        contents: file, as the sweep names it -> hash.
        tasks: of each run, in their order.
        reading: kernels that read the traces.
    """

    sweep: Sweep
    contents: Mapping[str, str]
    runs: tuple[Run, ...]
    tasks: tuple[Task, ...]
    reading: frozenset[str]

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """Columns that say what a run is."""
        return grid.columns(self.sweep)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns of the results."""
        return (*self.varied, "status", "error", *NUMBERS)

    @cached_property
    def same(self) -> tuple[str, ...]:
        """Columns in which runs are alike that can be compared: which jobs, and how close together."""
        return self.varied[1 : self.varied.index("machine")]

    def todo(self, done: Iterable[str]) -> list[Task]:
        """Tasks of which nothing is known yet, each once, in the order of the runs."""
        known = set(done)
        return list({task.identity: task for task in self.tasks if task.identity not in known}.values())

    def row(self, run: Run, answer: Mapping[str, Any] | Failure) -> dict[str, Any]:
        """The results' row of a run."""
        failed = isinstance(answer, Failure)
        ended = {"status": FAILED if failed else DONE, "error": answer.why if isinstance(answer, Failure) else None}
        numbers = dict.fromkeys(NUMBERS) if isinstance(answer, Failure) else {key: answer[key] for key in NUMBERS}
        return {**grid.described(run, self.varied), **ended, **numbers}


def prepare(path: Path) -> Prepared:
    """Read a sweep's file and the files it names. Raises ConfigError, OSError."""
    sweep = read_sweep(path)
    folder, runs = path.parent, tuple(grid.runs(sweep))
    places = places_of(sweep, folder)
    forms = {trace.file: format_of(folder / trace.file) for trace in sweep.traces}
    traces = {trace: _trace(trace, folder, forms[trace.file]) for trace in sweep.traces}
    sites = {one.file: hashes(folder / one.file, beside_machine) for one in sweep.machines if isinstance(one, Site)}
    own = {policy: _source(policy, folder, sweep) for policy in sweep.policies if isinstance(policy, Own)}
    contents = _contents({trace.file: one.hashes for trace, one in traces.items()} | sites)
    contents |= {policy.where: digest_of(source) for policy, source in own.items()}
    specs = {policy: text_of(policy) for policy in sweep.policies}
    known = specs | {policy: text_of(replace(policy, where=contents[policy.where])) for policy in own}
    held = {name: "+".join(each.values()) for name, each in sites.items()}

    def task(run: Run) -> Task:
        trace, place, depends = traces[run.trace], places[run.machine], forms[run.trace.file].depends
        content = held | {run.trace.file: "+".join(trace.hashes.values())}
        return Task(
            identity(run, known[run.policy], content, __version__, NUMBERS),
            trace, run.select, place.machine if depends else place.alike, specs[run.policy], run.seed, __version__,
            source=own[run.policy] if isinstance(run.policy, Own) else None,
            abilities=place.abilities if depends else Abilities(),
            cluster=place.cluster if isinstance(run.policy, Contending) else None,
        )  # fmt: skip

    reading = frozenset(kernel for form in forms.values() for kernel in form.kernels)
    return Prepared(sweep, contents, runs, tuple(map(task, runs)), reading)


def _trace(trace: Trace, folder: Path, form: Format) -> TraceFile:
    """A trace as workers are told of it. Raises OSError."""
    (_, digest), *others = hashes(folder / trace.file, beside_workload).items()
    return TraceFile(str(folder / trace.file), digest, trace.skip_invalid, form.size, tuple(others))


def _contents(files: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """File, as the sweep names it, -> hash.

    Args:
        files: of each file that the sweep names the hashes of it and of those beside it, by their names there.
    """
    return {str(Path(name).parent / one): digest for name, each in files.items() for one, digest in each.items()}


def _source(policy: Own, folder: Path, sweep: Sweep) -> bytes:
    """What is in the file of a user's own policy, which can be made. Raises ConfigError, PolicyError."""
    path = folder / policy.where
    try:
        make(replace(policy, where=str(path)), sweep.seeds[0])
    except ConfigError as error:
        where = f"{error.source}: {error.key}" if error.source != "policy" else error.key
        raise ConfigError(sweep.source, "policies", f"{policy}: {where}: {error.problem}", error.allowed) from None
    return path.read_bytes()


def check(prepared: Prepared, todo: Iterable[Task], crew: Crew) -> set[Kind]:
    """Have the traces of these tasks read. What kinds of replays they are.

    Raises:
        ConfigError: for the first that is wrong, in the sweep's order.
    """
    runs = {task.identity: run for run, task in zip(prepared.runs, prepared.tasks, strict=True)}
    each = {
        (task.trace, replace(task.select, load=1.0), _machine(runs[task.identity], task),
         demanded(runs[task.identity].policy)): task for task in todo
    }  # fmt: skip
    order = {task.identity: place for place, task in enumerate(each.values())}
    answers = [pair for found in crew.each(look, list(each.values())) for pair in found]
    wrong = [
        (order[task.identity], runs[task.identity].trace.key, answer.why)
        for task, answer in answers if isinstance(answer, Failure)
    ]  # fmt: skip
    if wrong:
        _, key, why = min(wrong)
        raise ConfigError(prepared.sweep.source, key, why)
    return {answer for _, answer in answers}


def _machine(run: Run, task: Task) -> Hashable:
    """What of a machine decides whether jobs can be replayed there: where how long they run depends on it, all."""
    return run.machine if task.abilities != Abilities() else task.machine is None
