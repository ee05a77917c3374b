"""What jobs do, phase by phase, where their run time depends on where they run.

Rule: amounts are those of the job's own resources, in the order in which it has them; how long they take is found out
in the replay. Source: Batsim's documentation, "Profile types overview".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .kernels.batch.network import tables

Array = npt.NDArray[Any]
#: Phases that one job may have, after its sequences are laid out.
MOST_PHASES = 1_000_000


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


def phases_of(part: Part) -> Iterator[Phase]:
    """The kinds of phases in it, each sequence once. O(parts)."""
    if isinstance(part, Steps):
        for each in part.parts:
            yield from phases_of(each)
    else:
        yield part


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
    """Lays out what jobs do, each different one once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Part, int], int] = {}
        self._programs: list[tuple[int, int, int]] = []
        self._phases: list[tuple[float, float, int, int, int]] = []
        self._amounts: list[float] = []
        self._storages: dict[str, int] = {}

    def add(self, part: Part, size: int) -> int | None:
        """The number of what a job of that size does. O(phases). None: it has more than MOST_PHASES."""
        if (part, size) not in self._known:
            repeat, inner = (part.repeat, part.parts) if isinstance(part, Steps) else (1, (part,))
            first = len(self._phases)
            flat = list[tuple[Phase, int]]()
            if not all(_flatten(each, 1, flat) for each in inner):
                return None
            if len(flat) == 1:
                flat, repeat = [(flat[0][0], flat[0][1] * repeat)], 1
            self._phases += [self._row(phase, times, size) for phase, times in flat]
            self._programs.append((first, len(self._phases), repeat))
            self._known[part, size] = len(self._programs) - 1
        return self._known[part, size]

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


def _flatten(part: Part, times: int, into: list[tuple[Phase, int]]) -> bool:
    """Write down its phases, one that repeats by itself once; False: they are too many."""
    if not isinstance(part, Steps):
        into.append((part, times))
        return len(into) <= MOST_PHASES
    if len(part.parts) == 1:
        return _flatten(part.parts[0], times * part.repeat, into)
    return part.repeat * times * len(part.parts) <= MOST_PHASES and all(
        _flatten(each, 1, into) for _ in range(part.repeat * times) for each in part.parts
    )


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
