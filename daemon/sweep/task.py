"""One run as a worker is asked for it: which trace, which of its jobs, machine, policy, seed.

Rule: whatever goes wrong in a run is an answer, a Failure; a worker has no state but the trace that it read last.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, cast

from ... import __version__
from ...simulate.batch.contended import replay_contended
from ...simulate.batch.custom import OwnPolicy
from ...simulate.batch.demands import refuse_jobs
from ...simulate.batch.machine import Machine
from ...simulate.batch.metrics import summarise
from ...simulate.batch.own import parse_own
from ...simulate.batch.pairs import Contending
from ...simulate.batch.replay import Replayed, replay
from ...simulate.batch.select import Select
from ...simulate.batch.spec import Policy, parse
from ...simulate.errors import ConfigError, PilotfishError
from ...simulate.platform import Cluster
from ...simulate.workload import Workload
from ..own_policy import make
from .trace import Abilities, Contents, TraceFile, jobs_of


@dataclass(frozen=True, slots=True)
class Task:
    """A run.

    Args:
        identity: under which its numbers are kept.
        machine: None = as large as the trace says.
        policy: the SPEC.
        version: of the pilotfish that asks.
        source: what is in the file of a policy of a user's own.
        abilities: of the machine, where the trace's run times depend on them.
        cluster: whose cores the machine has, where its tasks contend.
    """

    identity: str
    trace: TraceFile
    select: Select
    machine: Machine | None
    policy: str
    seed: int
    version: str
    source: bytes | None = None
    abilities: Abilities = field(default_factory=Abilities)
    cluster: Cluster | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """What came instead of an answer, in one sentence."""

    why: str


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function answers, or why it does not."""
    try:
        return function(*arguments)
    except PilotfishError as error:
        return Failure(str(error))
    except MemoryError:
        return Failure("there is not enough memory")
    except OSError as error:
        return Failure(f"{error.filename}: {error.strerror}")
    except Exception as error:
        return Failure(f"unexpected {type(error).__name__}: {error}")


class Kind(NamedTuple):
    """What kind of a replay it is, see `kernel_of`."""

    networked: bool
    rich: bool


def look(task: Task, contents: Contents | None = None) -> Kind:
    """What kind of a replay it is.

    Raises:
        ConfigError: the trace is wrong, has no jobs to replay or some that the policy cannot take, or tells no machine.
    """
    jobs = jobs_of(task.trace, contents, task.abilities, task.select)
    if not len(jobs):
        words = ", ".join(f"{count:,} {why}" for why, count in jobs.left_out.items())
        raise ConfigError(task.trace.path, "", "no jobs to replay" + (f"; left out: {words}" if words else ""))
    refuse_jobs(_policy(task), jobs, _machine(task, jobs))
    return Kind(jobs.programs is not None, jobs.dependencies is not None)


def carry_out(task: Task, contents: Contents | None = None) -> dict[str, Any]:
    """The numbers of a run, as `Summary` names them. Raises PilotfishError, OSError.

    Args:
        contents: of the trace's files, for who cannot see them.
    """
    if task.version != __version__:
        raise ConfigError("worker", "", f"it has pilotfish {__version__}", f"{task.version}, as the sweep that asks")
    jobs = jobs_of(task.trace, contents, task.abilities, task.select)
    machine = _machine(task, jobs)
    return asdict(summarise(_replayed(task, jobs, machine), machine.powers))


def _replayed(task: Task, jobs: Workload, machine: Machine) -> Replayed:
    policy = _policy(task)
    if isinstance(policy, Contending):
        assert task.cluster is not None
        return replay_contended(jobs, task.cluster, policy, seed=task.seed, clock=time.perf_counter)
    return replay(
        jobs, machine.processors, policy, seed=task.seed, groups=machine.groups, powers=machine.powers,
        network=machine.network, clock=time.perf_counter,
    )  # fmt: skip


def _policy(task: Task) -> Policy | Contending | OwnPolicy:
    if task.source is None:
        return parse(task.policy)
    return cast("OwnPolicy", make(parse_own(task.policy), task.seed, task.source).policy)


def _machine(task: Task, jobs: Workload) -> Machine:
    if task.machine is not None:
        return task.machine
    if jobs.machine is None:
        why = "missing: how large the machine is"
        raise ConfigError(task.trace.path, task.trace.size, why, "that, or `machines` in the sweep's file")
    return Machine(jobs.machine)
