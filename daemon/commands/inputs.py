"""What `plan` and `run` read before they begin: files, profiles, and options that need a look at the rest.

Rule: a wrong option is a usage error (64) and is found before any file is read; a wrong file is a ConfigError
(1).
"""

from __future__ import annotations

import difflib
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...simulate.errors import ConfigError
from ...simulate.job import Profile, Workflow
from ...simulate.plan import Plan
from ...simulate.platform import Cluster
from ..streams import tell

if TYPE_CHECKING:
    from ...profiles.store import ProfileStore
    from ...simulate.objective import Objective
    from ...simulate.snapshot import Snapshot
    from ...simulate.stochastic import Replicated
    from ..queue import Submission


def _policy_names() -> list[str]:
    from ...simulate.planner import POLICIES

    return list(POLICIES)


WorkflowFile = Annotated[
    Path,
    typer.Argument(metavar="WORKFLOW", help="The workflow: ours (YAML), WfCommons (JSON) or Pegasus DAX."),
]
Policy = Annotated[
    str,
    typer.Option(
        "--policy",
        "-p",
        metavar="POLICY",
        help="lookahead, mom, let, slf or loadavg.",
        autocompletion=_policy_names,
    ),
]
Goal = Annotated[
    str,
    typer.Option(
        metavar="GOAL", help="What to make small: makespan, energy, edp, or mix:W (W = weight of makespan)."
    ),
]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Same inputs and seed: same plan.")]
Budget = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Simulations that lookahead may spend; default: by the workflow's size."
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Cut the search short after this time; the plan then says so."),
]
Replicates = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Plan N draws of stochastic demands; show the mapping that most of them lead to."
    ),
]
Engine = Annotated[
    str,
    typer.Option(metavar="ENGINE", help="fluid (exact, no time step), or interval (0.1 s steps with jitter)."),
]
Store = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The profile store (default: profiles.sqlite in the state directory)."),
]


@dataclass(frozen=True)
class Wishes:
    """How to plan, as the command line says."""

    policy: str
    goal: str
    objective: Objective
    seed: int
    budget: int | None
    time_limit: float | None
    engine: str = "fluid"
    replicates: int | None = None

    def scores(self, plans: Sequence[Plan]) -> list[float]:
        """The objective's value of each plan, lower is better; a mix is measured against the best of each."""
        energies = [0.0 if plan.energy_j is None else plan.energy_j for plan in plans]
        reference = (min(plan.makespan for plan in plans) or 1.0, min(energies) or 1.0)
        return [
            self.objective.value(plan.makespan, energy, reference)
            for plan, energy in zip(plans, energies, strict=True)
        ]

    def plan(self, workflow: Workflow, cluster: Cluster, policy: str | None = None) -> Plan:
        """Plan with these wishes, or with another policy; the clock of the time limit starts now."""
        from ...simulate.planner import plan

        began = time.perf_counter()
        made = plan(workflow, cluster, seed=self.seed, **self._options(policy))
        return replace(made, simulated_in=time.perf_counter() - began)

    def replicated(self, workflow: Workflow, cluster: Cluster) -> Replicated:
        """Plan as many draws of the workflow as asked for; the clock of the time limit starts now."""
        from ...simulate.stochastic import replicate

        began = time.perf_counter()
        made = replicate(workflow, cluster, self.replicates or 1, self.seed, **self._options(None))
        return replace(made, plan=replace(made.plan, simulated_in=time.perf_counter() - began))

    def _options(self, policy: str | None) -> dict[str, Any]:
        return {
            "policy": policy or self.policy,
            "objective": self.objective,
            "budget": self.budget,
            "should_stop": _deadline(self.time_limit),
            "engine": self.engine,
        }


def wishes(
    policy: str,
    goal: str,
    seed: int,
    budget: int | None,
    time_limit: float | None,
    engine: str = "fluid",
    replicates: int | None = None,
) -> Wishes:
    """Check the options of a plan. Raises typer.BadParameter."""
    from ...simulate.objective import Objective
    from ...simulate.planner import ENGINES

    if policy not in _policy_names():
        raise not_among("--policy", policy, "a policy", _policy_names())
    if engine not in ENGINES:
        raise not_among("--engine", engine, "an engine", ENGINES)
    if time_limit is not None and not 0 < time_limit < math.inf:
        raise bad("--time-limit", f"{time_limit:g} is not a time to search for (allowed: seconds, above 0)")
    try:
        objective = Objective.parse(goal)
    except ConfigError as error:
        raise bad_value("--objective", error) from None
    return Wishes(policy, goal, objective, seed, budget, time_limit, engine, replicates)


def bad(option: str, problem: str) -> typer.BadParameter:
    """A usage error about `option`."""
    return typer.BadParameter(problem, param_hint=f"'{option}'")


def bad_value(option: str, error: ConfigError) -> typer.BadParameter:
    """A usage error about the value of `option`, as what reads such values found it."""
    return bad(option, error.problem + (f" (allowed: {error.allowed})" if error.allowed else ""))


def not_among(option: str, found: str, what: str, allowed: Iterable[str]) -> typer.BadParameter:
    """A usage error about an `option` that takes one of some words."""
    words = list(allowed)
    near = difflib.get_close_matches(found, words, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return bad(option, f"{found!r} is not {what}{hint} (allowed: {', '.join(words)})")


@contextmanager
def adapter_of(config: Path | None) -> Iterator[None]:
    """Errors about the adapter name what chose it: a configuration, or --adapter, which is a usage error."""
    if config is not None:
        from ..config import adapter_of

        with adapter_of(config):
            yield
        return
    try:
        yield
    except ConfigError as error:
        raise (bad_value("--adapter", error) if error.source == "adapter" else error) from None


def _deadline(limit: float | None) -> Callable[[], bool] | None:
    if limit is None:
        return None
    end = time.monotonic() + limit
    return lambda: time.monotonic() >= end


def load_simulator(engine: str = "fluid") -> None:
    """Load the compiled kernels, so that no plan's time to decide has it in it; making them is said."""
    load_kernels(*("entry", "interval") if engine == "interval" else ("entry",))


def load_kernels(*kernels: str) -> None:
    """Load compiled kernels; making them is said."""
    from ...simulate.kernels import is_warm, load

    names = {"entry": "simulator", "interval": "interval engine", "batch.swf": "reader of SWF"}
    for kernel in kernels:
        if not is_warm(kernel):
            note(f"compiling the {names.get(kernel, 'replay')} for this machine, once; this takes some seconds")
        load(kernel)


def load_replay(
    policies: Iterable[object], reading: Iterable[str] = (), *, networked: bool = False, rich: bool = False
) -> None:
    """Load what replays traces under these policies, and what reads them, as `load_kernels`.

    Args:
        networked, rich: see `kernel_of`.
    """
    from ...simulate.batch import contended, pairs
    from ...simulate.batch.replay import kernel_of

    kernels = {
        contended.KERNEL if isinstance(policy, pairs.Contending) else kernel_of(policy, networked=networked, rich=rich)
        for policy in policies
    }
    load_kernels(*reading, *sorted(filter(None, kernels)))


def read_cluster(path: Path) -> Cluster:
    """Read a cluster file. Raises ConfigError."""
    from ...simulate.formats.cluster import read_cluster

    return read_cluster(path)


def read_machine(path: Path) -> Cluster:
    """Read a machine to replay on: a cluster file, or a platform of SimGrid. Raises ConfigError."""
    from ...simulate.formats.machines import read_machine

    return read_machine(path)


class Profiles:
    """The profile store, opened when a name or a job's past is asked for.

    Args:
        path: the store's file; None = the user's own.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._unprofiled: set[str] = set()

    @cached_property
    def store(self) -> ProfileStore:
        """The store itself."""
        from ...profiles.store import ProfileStore
        from ..paths import profile_store_path

        return ProfileStore(self._path or profile_store_path())

    def __call__(self, name: str) -> Profile | None:
        """The profile of that name."""
        return self.store.get(name)

    def names(self) -> list[str]:
        """Names to suggest."""
        return self.store.names()

    def read_workflow(self, path: Path) -> Workflow:
        """Read a workflow; jobs without a profile get what past runs showed, or let expect. Raises PilotfishError."""
        from ...simulate.formats.workflow import read_workflow

        workflow = read_workflow(path, self)
        self._unprofiled = {job.id for job in workflow.jobs if job.profile.provenance.source == "default"}
        if not self._unprofiled:
            return workflow
        from ..learned import with_learned

        return with_learned(workflow, self.store.expected)

    def scored(self, site: Cluster, workflow: Workflow) -> Cluster:
        """The nodes with what the workflow's programs cost each other by their relative scores, which is said."""
        from ...profiles.scored import added
        from ..render.text import count

        found = self.store.scored(site, {job.profile.name for job in workflow.jobs})
        if pairs := added(site, found):
            note(f"{count(pairs, 'pair')} of programs slow each other by their relative scores (profile corun)")
        return found

    def learn(self, submission: Submission, snapshot: Snapshot) -> None:
        """Keep what jobs that came without a profile used; a store that cannot be written is a warning."""
        keys = {entry.key for entry in submission.entries.values() if entry.job.id in self._unprofiled}
        views = [view for view in snapshot.jobs if view.key in keys]
        if not views:
            return
        from ...profiles.watch import cpu_model
        from ..learned import taught

        try:
            self.store.record_jobs(taught(views, cpu_model()))
        except ConfigError as error:
            warn(f"what the jobs used is not kept: {error}")


def this_machine(workflow: Workflow) -> Cluster:
    """This machine: a node for each CPU, or of as many as the widest job has threads; what is assumed is said."""
    from ...adapters.local import this_machine_cluster

    widest = max((job.profile.threads for job in workflow.jobs), default=1)
    cluster, assumed = this_machine_cluster(cpus_per_node=max(1, min(widest, len(os.sched_getaffinity(0)))))
    for text in assumed:
        note(text)
    return cluster


def state_dir() -> Path:
    """Where pilotfish keeps its state."""
    from ..paths import state_dir

    return state_dir()


def working_directory() -> Path:
    """Where commands run that have no directory of their own. Raises ConfigError: it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ConfigError("working directory", "", "it was removed", "one that is there") from None


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """A plan as it is printed for programs."""
    from ...simulate.formats.plan import plan_to_dict

    return plan_to_dict(plan)


def note(text: str) -> None:
    """One line on stderr, after what stdout has so far."""
    tell(f"pilotfish: {text}")


def warn(text: str) -> None:
    """A warning, as `note`."""
    note(f"warning: {text}")
