"""One run as a worker is asked for it: which trace, which of its jobs, machine, policy, seed.

Rule: whatever goes wrong in a run is an answer, a Failure; a worker has no state but the trace that it read last.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from ... import __version__
from ...simulate.batch.custom import OwnPolicy
from ...simulate.batch.machine import Machine
from ...simulate.batch.metrics import summarise
from ...simulate.batch.own import parse_own
from ...simulate.batch.replay import replay
from ...simulate.batch.select import Select
from ...simulate.batch.spec import Policy, parse_alike
from ...simulate.errors import ConfigError, PilotfishError
from ...simulate.formats.swf import read_swf
from ...simulate.workload import Workload
from ..own_policy import make


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace, and the hash of what was in it when the sweep began."""

    path: str
    digest: str
    skip_invalid: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """A run.

    Args:
        identity: under which its numbers are kept.
        machine: None = as large as the trace says.
        policy: the SPEC.
        version: of the pilotfish that asks.
        source: what is in the file of a policy of a user's own.
    """

    identity: str
    trace: TraceFile
    select: Select
    machine: Machine | None
    policy: str
    seed: int
    version: str
    source: bytes | None = None


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


def look(task: Task, content: bytes | None = None) -> int:
    """How many jobs would be replayed. Raises ConfigError: the trace is wrong, has none, or tells no machine."""
    jobs = _jobs(task.trace, content, task.select)
    if not len(jobs):
        words = ", ".join(f"{count:,} {why}" for why, count in jobs.left_out.items())
        raise ConfigError(task.trace.path, "", "no jobs to replay" + (f"; left out: {words}" if words else ""))
    _machine(task, jobs)
    return len(jobs)


def carry_out(task: Task, content: bytes | None = None) -> dict[str, Any]:
    """The numbers of a run, as `Summary` names them. Raises PilotfishError, OSError.

    Args:
        content: of the trace, for who cannot see the file.
    """
    if task.version != __version__:
        raise ConfigError("worker", "", f"it has pilotfish {__version__}", f"{task.version}, as the sweep that asks")
    jobs = _jobs(task.trace, content, task.select)
    machine = _machine(task, jobs)
    done = replay(
        jobs, machine.processors, _policy(task), seed=task.seed, groups=machine.groups, powers=machine.powers,
        clock=time.perf_counter,
    )  # fmt: skip
    return asdict(summarise(done, machine.powers))


def digest_of(data: bytes) -> str:
    """The hash of what is in a file."""
    return hashlib.sha256(data).hexdigest()


def _policy(task: Task) -> Policy | OwnPolicy:
    if task.source is None:
        return parse_alike(task.policy)
    return cast("OwnPolicy", make(parse_own(task.policy), task.seed, task.source).policy)


def _machine(task: Task, jobs: Workload) -> Machine:
    if task.machine is not None:
        return task.machine
    if jobs.machine is None:
        why = "its header does not say how large the machine is"
        raise ConfigError(task.trace.path, "MaxProcs", why, "such a line, or `machines` in the sweep's file")
    return Machine(jobs.machine)


@lru_cache(maxsize=1)
def _jobs(trace: TraceFile, content: bytes | None, select: Select) -> Workload:
    return select.of(_read(trace, content))


@lru_cache(maxsize=1)
def _read(trace: TraceFile, content: bytes | None) -> Workload:
    if content is None:
        found, content = _parsed(trace, Path(trace.path)), Path(trace.path).read_bytes()
    else:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / Path(trace.path).name
            copy.write_bytes(content)
            found = _parsed(trace, copy)
    if digest_of(content) != trace.digest:
        raise ConfigError(trace.path, "", "it was changed while the sweep ran", "the file as it was")
    return found


def _parsed(trace: TraceFile, path: Path) -> Workload:
    """The jobs in the file at `path`, the trace or a copy of it: errors name the trace, and what a sweep allows."""
    try:
        return read_swf(path, skip_invalid=trace.skip_invalid)
    except ConfigError as error:
        source = error.source.replace(str(path), trace.path)
        allowed = error.allowed.replace("--skip-invalid", "skip_invalid: true in the sweep's file")
        raise ConfigError(source, error.key, error.problem, allowed) from None
