"""What jobs do, phase by phase, where their run time depends on where they run.

Rule: amounts are those of the job's own resources, in the order in which it has them; how long they take is found out
in the replay. Sequences may share their parts and be within each other as deep as they like: each different one is
looked at once. Source: Batsim's documentation, "Profile types overview".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .kernels.batch.network import tables

Array = npt.NDArray[Any]
T = TypeVar("T")
#: Phases that one job may have, after its sequences are laid out.
MOST_PHASES = 1_000_000
#: Times that a phase may be repeated by itself.
MOST_TIMES = 10**15


@dataclass(frozen=True, slots=True)
class Wait:
    """Seconds pass, and nothing is computed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Even:
    """Each resource computes so many flops, and sends so many bytes to each other one."""

    flops: float
    bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Matrix:
    """The i-th resource computes `flops[i]`; bytes go from each row of `bytes` to each column, none if it is empty."""

    flops: tuple[float, ...]
    bytes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Store:
    """Each resource reads bytes from a storage and writes some to it."""

    storage: str
    read: float
    write: float


@dataclass(frozen=True, slots=True)
class Stage:
    """Bytes go from one storage to another."""

    source: str
    target: str
    bytes: float


@dataclass(frozen=True, slots=True)
class Steps:
    """One after the other, `repeat` times."""

    parts: tuple[Part, ...]
    repeat: int = 1


Phase = Wait | Even | Matrix | Store | Stage
Part = Phase | Steps


def folded(part: Part, of_phase: Callable[[Phase], T], of_steps: Callable[[Steps, list[T]], T]) -> T:
    """What a part comes to. O(different parts and their lengths).

    Args:
        of_phase, of_steps: what a phase comes to, and a sequence whose parts come to these.
    """
    found, left = dict[int, T](), [part]
    while left:
        each = left[-1]
        if id(each) in found:
            left.pop()
        elif not isinstance(each, Steps):
            found[id(each)] = of_phase(each)
        elif missing := [inner for inner in each.parts if id(inner) not in found]:
            left += missing
        else:
            found[id(each)] = of_steps(each, [found[id(inner)] for inner in each.parts])
    return found[id(part)]


def phases_of(part: Part) -> list[Phase]:
    """The different phases in it. O(different parts)."""
    phases = list[Phase]()
    folded(part, phases.append, lambda steps, inner: None)
    return phases


def sends(phase: Phase, size: int) -> bool:
    """Whether it needs a network, on so many resources."""
    if isinstance(phase, Even):
        return phase.bytes > 0 and size > 1
    if isinstance(phase, Matrix):
        return any(amount > 0 and i % (size + 1) for i, amount in enumerate(phase.bytes))
    if isinstance(phase, Store):
        return phase.read > 0 or phase.write > 0
    return isinstance(phase, Stage) and phase.bytes > 0


def storages_of(phase: Phase) -> tuple[str, ...]:
    """The storages that it uses."""
    if isinstance(phase, Store):
        return (phase.storage,)
    return (phase.source, phase.target) if isinstance(phase, Stage) else ()


def flops_of(phase: Phase) -> float:
    """What the busiest resource computes."""
    if isinstance(phase, Even):
        return phase.flops
    return max(phase.flops, default=0.0) if isinstance(phase, Matrix) else 0.0


@dataclass(frozen=True, slots=True)
class Programs:
    """Tables of what jobs do; the column `program` of a workload says whose is which, -1: its run time is known.

    Args:
        programs, phases, amounts: as the kernels have them, but for storages, which are numbers in `storages`.
    """

    programs: Array
    phases: Array
    amounts: Array
    storages: tuple[str, ...]


class Laying:
    """Lays out what jobs do."""

    def __init__(self) -> None:
        self._programs: list[tuple[int, int, int]] = []
        self._phases: list[tuple[float, float, int, int, int]] = []
        self._amounts: list[float] = []
        self._storages: dict[str, int] = {}

    def add(self, part: Part, size: int) -> int | None:
        """The number of what a job of that size does. O(phases). None: it has more than MOST_PHASES, or one of them
        more than MOST_TIMES."""
        repeat, inner = (part.repeat, part.parts) if isinstance(part, Steps) else (1, (part,))
        if sum(_length(each) for each in inner) > MOST_PHASES:
            return None
        flat = [row for each in inner for row in _laid_out(each)]
        if len(flat) == 1:
            flat, repeat = [(flat[0][0], flat[0][1] * repeat)], 1
        if max(times for _, times in flat) > MOST_TIMES:
            return None
        first = len(self._phases)
        self._phases += [self._row(phase, times, size) for phase, times in flat]
        self._programs.append((first, len(self._phases), repeat))
        return len(self._programs) - 1

    def _row(self, phase: Phase, times: int, size: int) -> tuple[float, float, int, int, int]:
        if isinstance(phase, Wait):
            return times * phase.seconds, 0.0, tables.WAIT, 0, 0
        if isinstance(phase, Even):
            return times * phase.flops, times * phase.bytes, tables.EVEN, 0, 0
        if isinstance(phase, Store):
            return times * phase.read, times * phase.write, tables.STORE, self._storage(phase.storage), 0
        if isinstance(phase, Stage):
            ends = self._storage(phase.source), self._storage(phase.target)
            return 0.0, times * phase.bytes, tables.STAGE, *ends
        at = len(self._amounts)
        self._amounts += [times * amount for amount in phase.flops] + [0.0] * (size - len(phase.flops))
        self._amounts += [times * amount for amount in phase.bytes]
        return 0.0, float(bool(phase.bytes)), tables.MATRIX, at, 0

    def _storage(self, name: str) -> int:
        return self._storages.setdefault(name, len(self._storages))

    def programs(self) -> Programs:
        """All that were added."""
        return Programs(
            np.array(self._programs, tables.PROGRAM),
            np.array(self._phases, tables.PHASE),
            np.array(self._amounts, np.float64),
            tuple(self._storages),
        )


def _length(part: Part) -> int:
    """Rows that it takes to write a part down, those of a phase that repeats by itself being one; MOST_PHASES + 1: more
    than that. O(different parts and their lengths)."""

    def of_steps(steps: Steps, inner: list[tuple[int, bool]]) -> tuple[int, bool]:
        alone = len(inner) == 1 and inner[0][1]
        rows = 1 if alone else steps.repeat * sum(length for length, _ in inner)
        return min(rows, MOST_PHASES + 1), alone

    return folded(part, lambda phase: (1, True), of_steps)[0]


def _laid_out(part: Part) -> Iterator[tuple[Phase, int]]:
    """Its phases in turn, one that repeats by itself once, and how often. O(phases)."""
    left = [(part, 1)]
    while left:
        each, times = left.pop()
        if not isinstance(each, Steps):
            yield each, times
        elif len(each.parts) == 1:
            left.append((each.parts[0], min(times * each.repeat, MOST_TIMES + 1)))
        else:
            left += [(inner, 1) for _ in range(each.repeat * times) for inner in reversed(each.parts)]


def together(all_of: Sequence[Programs]) -> tuple[Programs, list[int]]:
    """One of several, and what is added to the numbers of each. O(rows)."""
    storages = tuple(dict.fromkeys(name for each in all_of for name in each.storages))
    programs, phases, before, rows, amounts = list[Array](), list[Array](), list[int](), 0, 0
    for each in all_of:
        before.append(sum(map(len, programs)))
        program, phase = each.programs.copy(), each.phases.copy()
        program["first"] += rows
        program["last"] += rows
        phase["at"] += np.where(phase["kind"] == tables.MATRIX, amounts, 0)
        number = np.array([storages.index(name) for name in each.storages] or [0], np.int64)
        for key, kinds in (("at", (tables.STORE, tables.STAGE)), ("to", (tables.STAGE,))):
            of = np.isin(phase["kind"], kinds)
            phase[key][of] = number[phase[key][of]]
        programs.append(program)
        phases.append(phase)
        rows, amounts = rows + len(phase), amounts + len(each.amounts)
    joined = Programs(
        np.concatenate(programs), np.concatenate(phases), np.concatenate([each.amounts for each in all_of]), storages
    )
    return joined, before
