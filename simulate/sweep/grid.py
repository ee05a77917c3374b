"""What a sweep varies, and the runs that come of it.

Rule: the runs are numbered in the order of the file, the workload varying slowest: what is read once serves the next
runs, and the number of a run says nothing of when it was carried out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import count, product
from typing import Any

from ..batch.options import Amount
from ..batch.own import Own
from ..batch.pairs import Contending
from ..batch.select import Select
from ..batch.spec import Policy, text_of

#: A machine that is as large as the trace says.
AS_TRACED = "trace"
#: What a queue may be under.
Chosen = Policy | Contending | Own


@dataclass(frozen=True, slots=True)
class Trace:
    """A workload of a sweep.

    Args:
        file: as the sweep names it.
        key: where the sweep does so, for messages: workloads[0].
        select: which of its jobs; its load is 1.
        loads: how close together they come, one after the other.
        skip_invalid: lines that are no jobs are left out.
    """

    file: str
    key: str
    select: Select = field(default_factory=Select)
    loads: tuple[float, ...] = (1.0,)
    skip_invalid: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """The machine that a file describes: its cores, or its nodes."""

    file: str
    whole_nodes: bool = False

    def __str__(self) -> str:
        return f"{self.file}:node" if self.whole_nodes else self.file


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is varied.

    Args:
        source: its file.
        machines: processors, or those of a file; None = as the trace says.
    """

    source: str
    traces: tuple[Trace, ...]
    policies: tuple[Chosen, ...]
    machines: tuple[int | Site | None, ...] = (None,)
    seeds: tuple[int, ...] = (0,)

    def __len__(self) -> int:
        """How many runs it has."""
        each = len(self.machines) * len(self.policies) * len(self.seeds)
        return sum(len(trace.loads) for trace in self.traces) * each


@dataclass(frozen=True, slots=True)
class Run:
    """One replay of a sweep: `number` counts from 0 in the sweep's order."""

    number: int
    trace: Trace
    load: float
    machine: int | Site | None
    policy: Chosen
    seed: int

    @property
    def select(self) -> Select:
        """Which jobs, and how close together."""
        return replace(self.trace.select, load=self.load)


def runs(sweep: Sweep) -> Iterator[Run]:
    """All runs of a sweep, in its order."""
    numbers = count()
    for trace in sweep.traces:
        for load, machine, policy, seed in product(trace.loads, sweep.machines, sweep.policies, sweep.seeds):
            yield Run(next(numbers), trace, load, machine, policy, seed)


#: Column -> field of Select; a column is there where some workload of the sweep says it.
_SELECTING = {"from": "begin", "until": "end", "users": "users", "min_size": "least", "max_size": "most"}


def columns(sweep: Sweep) -> tuple[str, ...]:
    """Names of what `described` says of a run; each option of a policy is a column of its own."""
    given = [name for name, key in _SELECTING.items() if any(_said(trace, key) is not None for trace in sweep.traces)]
    options = dict.fromkeys(f"policy_{name}" for policy in sweep.policies for name in options_of(policy))
    return ("run", "workload", *given, "load", "machine", "policy", *options, "seed")


def described(run: Run, names: tuple[str, ...]) -> dict[str, Any]:
    """What is varied, as one run has it; None where its workload or policy knows no such thing."""
    found: dict[str, Any] = {
        "run": run.number,
        "workload": run.trace.file,
        "load": run.load,
        "machine": AS_TRACED if run.machine is None else str(run.machine),
        "policy": text_of(run.policy),
        "seed": run.seed,
    }
    found |= {name: _said(run.trace, key) for name, key in _SELECTING.items()}
    found |= {f"policy_{name}": value for name, value in options_of(run.policy).items()}
    return {name: found.get(name) for name in names}


def _said(trace: Trace, key: str) -> Any:
    """A limit of a selection; None where there is none."""
    value = getattr(trace.select, key)
    if key == "users":
        return " ".join(map(str, value)) or None
    return value


def options_of(policy: Any) -> dict[str, Any]:
    """Option -> value, defaults included, also of the parts of which a policy is made."""
    if isinstance(policy, Own):
        return dict(policy.options)
    found: dict[str, Any] = {}
    for each in fields(policy):
        value = getattr(policy, each.name)
        if isinstance(value, Amount):
            found[each.name] = str(value)
        elif is_dataclass(value):
            found |= options_of(value)
        elif value is not None:
            found[each.name] = value
    return found
