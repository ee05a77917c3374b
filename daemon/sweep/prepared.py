"""A sweep with all that its runs need: files hashed, clusters read, every run known by its identity.

Rule: what is wrong is found here or by `check`, before anything runs, and the error names the sweep's file and key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ... import __version__
from ...simulate.batch.machine import Machine, machine_of
from ...simulate.batch.metrics import Summary
from ...simulate.batch.own import Own
from ...simulate.batch.spec import text_of
from ...simulate.errors import ConfigError
from ...simulate.formats.cluster import read_cluster
from ...simulate.formats.sweep import read_sweep
from ...simulate.sweep import grid
from ...simulate.sweep.grid import Run, Sweep
from ...simulate.sweep.identity import identity
from ..own_policy import make
from .crew import Crew
from .task import Failure, Task, TraceFile, digest_of, look

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
    """

    sweep: Sweep
    contents: Mapping[str, str]
    runs: tuple[Run, ...]
    tasks: tuple[Task, ...]

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
    sites = [name for name in sweep.machines if isinstance(name, str)]
    machines = {name: machine_of(read_cluster(folder / name)) for name in sites}
    names = dict.fromkeys([*(trace.file for trace in sweep.traces), *sites])
    own = {policy: _source(policy, folder, sweep) for policy in sweep.policies if isinstance(policy, Own)}
    contents = {name: digest_of((folder / name).read_bytes()) for name in names}
    contents |= {policy.where: digest_of(source) for policy, source in own.items()}
    specs = {policy: text_of(policy) for policy in sweep.policies}
    known = specs | {policy: text_of(replace(policy, where=contents[policy.where])) for policy in own}

    def task(run: Run) -> Task:
        mark = identity(run, known[run.policy], contents, __version__, NUMBERS)
        trace = TraceFile(str(folder / run.trace.file), contents[run.trace.file], run.trace.skip_invalid)
        source = own[run.policy] if isinstance(run.policy, Own) else None
        machine, spec = _machine(run, machines), specs[run.policy]
        return Task(mark, trace, run.select, machine, spec, run.seed, __version__, source)

    return Prepared(sweep, contents, runs, tuple(map(task, runs)))


def _source(policy: Own, folder: Path, sweep: Sweep) -> bytes:
    """What is in the file of a user's own policy, which can be made. Raises ConfigError, PolicyError."""
    path = folder / policy.where
    try:
        make(replace(policy, where=str(path)), sweep.seeds[0])
    except ConfigError as error:
        where = f"{error.source}: {error.key}" if error.source != "policy" else error.key
        raise ConfigError(sweep.source, "policies", f"{policy}: {where}: {error.problem}", error.allowed) from None
    return path.read_bytes()


def _machine(run: Run, machines: Mapping[str, Machine]) -> Machine | None:
    if isinstance(run.machine, int):
        return Machine(run.machine)
    return None if run.machine is None else machines[run.machine]


def check(prepared: Prepared, todo: Iterable[Task], crew: Crew) -> None:
    """Have the traces of these tasks read. Raises ConfigError for the first that is wrong, in the sweep's order."""
    keys = {task.identity: run.trace.key for run, task in zip(prepared.runs, prepared.tasks, strict=True)}
    each = {(task.trace, replace(task.select, load=1.0), task.machine is None): task for task in todo}
    order = {task.identity: place for place, task in enumerate(each.values())}
    wrong = [
        (order[task.identity], keys[task.identity], answer.why)
        for found in crew.each(look, list(each.values())) for task, answer in found if isinstance(answer, Failure)
    ]  # fmt: skip
    if wrong:
        _, key, why = min(wrong)
        raise ConfigError(prepared.sweep.source, key, why)
