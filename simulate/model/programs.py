"""Programs: the work of jobs, phase by phase, if their run time depends on where they run.

Rule: amounts belong to the job's own resources, in the job's order; the replay finds the times. Sequences may share
parts and nest without limit; each distinct part is processed once.
Source: Batsim's documentation, "Profile types overview".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from ..arrays import Array
from ..kernels.queue.network import tables

T = TypeVar("T")
#: Largest number of phases of one job, sequences expanded.
MOST_PHASES = 1_000_000
#: Largest number of repetitions of a single phase.
MOST_TIMES = 10**15


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for some seconds, computing nothing."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Even:
    """Each resource computes `flops`, sends `bytes` to each other resource, and moves `moved` bytes of its memory."""

    flops: float
    bytes: float = 0.0
    moved: float = 0.0


@dataclass(frozen=True, slots=True)
class Matrix:
    """Resource i computes `flops[i]`; `bytes` is empty, or a matrix of bytes from row to column, row by row.

    Each resource moves `moved` bytes of its memory.
    """

    flops: tuple[float, ...]
    bytes: tuple[float, ...] = ()
    moved: float = 0.0


@dataclass(frozen=True, slots=True)
class Store:
    """Each resource reads bytes from a storage and writes bytes to it."""

    storage: str
    read: float
    write: float


@dataclass(frozen=True, slots=True)
class Stage:
    """Copy bytes from one storage to another."""

    source: str
    target: str
    bytes: float


@dataclass(frozen=True, slots=True)
class Placed:
    """Ranks on given resources of the machine, several on one if need be; it uses no others of the job.

    Rank i computes `flops[i]` with one core of `ends[i]`, a resource of the machine, or ~s for the storage s in the
    order of the network, which cannot compute. `bytes` is a matrix from row to column, row by row, or empty.
    """

    ends: tuple[int, ...]
    flops: tuple[float, ...]
    bytes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Steps:
    """Run the parts one after the other, `repeat` times."""

    parts: tuple[Part, ...]
    repeat: int = 1


Phase = Wait | Even | Matrix | Store | Stage | Placed
Part = Phase | Steps


def fold_part(part: Part, of_phase: Callable[[Phase], T], of_steps: Callable[[Steps, list[T]], T]) -> T:
    """Fold a part from its phases up. O(distinct parts and their lengths).

    Args:
        part: the part.
        of_phase: value of a phase.
        of_steps: value of a sequence, from the values of its parts.
    """
    results, stack = dict[int, T](), [part]
    while stack:
        top = stack[-1]
        if id(top) in results:
            stack.pop()
        elif not isinstance(top, Steps):
            results[id(top)] = of_phase(top)
        elif missing := [inner for inner in top.parts if id(inner) not in results]:
            stack += missing
        else:
            results[id(top)] = of_steps(top, [results[id(inner)] for inner in top.parts])
    return results[id(part)]


def phases_of(part: Part) -> list[Phase]:
    """Return the distinct phases of a part. O(distinct parts)."""
    phases = list[Phase]()
    fold_part(part, phases.append, lambda steps, inner: None)
    return phases


def sends(phase: Phase, size: int, *, to_itself: bool = False) -> bool:
    """Return whether a phase needs a network.

    Args:
        phase: the phase.
        size: its resources.
        to_itself: a network is needed for what a resource sends to itself, too.
    """
    if isinstance(phase, Even):
        return phase.bytes > 0 and size > 1
    if isinstance(phase, Matrix):
        return any(amount > 0 and (to_itself or i % (size + 1)) for i, amount in enumerate(phase.bytes))
    if isinstance(phase, Placed):
        return any(amount > 0 for amount in phase.bytes)
    if isinstance(phase, Store):
        return phase.read > 0 or phase.write > 0
    return isinstance(phase, Stage) and phase.bytes > 0


def storages_of(phase: Phase) -> tuple[str, ...]:
    """Return the storages that a phase uses."""
    if isinstance(phase, Store):
        return (phase.storage,)
    return (phase.source, phase.target) if isinstance(phase, Stage) else ()


def ends_waiting(part: Part) -> bool:
    """Return whether the last phase that takes time waits. O(distinct parts and their lengths)."""

    def of_phase(phase: Phase) -> bool | None:
        if isinstance(phase, Wait):
            return True if phase.seconds > 0 else None
        return False if flops_of(phase) > 0 else None

    def of_steps(steps: Steps, inner: list[bool | None]) -> bool | None:
        return next((flag for flag in reversed(inner) if flag is not None), None)

    return bool(fold_part(part, of_phase, of_steps))


def flops_of(phase: Phase) -> float:
    """Return the flops of the busiest resource."""
    if isinstance(phase, Even):
        return phase.flops
    return max(phase.flops, default=0.0) if isinstance(phase, Matrix | Placed) else 0.0


def moved_by(phase: Phase) -> float:
    """Return the bytes of memory that a resource moves."""
    return phase.moved if isinstance(phase, Even | Matrix) else 0.0


@dataclass(frozen=True, slots=True)
class Work:
    """A part that sends nothing, on `size` resources of one speed, flop/s."""

    part: Part
    size: int
    speed: float

    def joules(self, seconds: Array, lift: Array, slope: Array) -> Array:
        """Return the joules above idle until each time. O(distinct parts x size + times x depth).

        Args:
            seconds: times since the work began, 0 or more; after the end of the part, nothing more is drawn.
            lift: watts above idle of each resource that computes at a load of almost 0 [size].
            slope: further watts of each at full load [size].
        """
        totals = dict[int, tuple[float, float]]()  # of each part: how long it takes, and its joules
        fold_part(
            self.part, lambda phase: _note(totals, phase, self._alone(phase, lift, slope)), partial(_add_up, totals)
        )
        energies = np.zeros(len(seconds))
        stack = [(self.part, np.arange(len(seconds)), np.asarray(seconds, np.float64))]
        while stack:
            at, rows, times = stack.pop()
            lasts, joules = totals[id(at)]
            energies[rows[times >= lasts]] += joules
            rows, times = rows[times < lasts], times[times < lasts]
            if not isinstance(at, Steps):
                energies[rows] += joules * (times / lasts)
            elif len(rows):
                rounds = np.floor(at.repeat * (times / lasts)) / at.repeat
                energies[rows] += joules * rounds
                stack += _parts_at(totals, at, rows, np.maximum(times - lasts * rounds, 0.0), energies)
        return energies

    def _alone(self, phase: Phase, lift: Array, slope: Array) -> tuple[float, float]:
        if isinstance(phase, Wait):
            return phase.seconds, 0.0
        seconds = flops_of(phase) / self.speed
        if not isinstance(phase, Matrix):
            return seconds, seconds * float((lift + slope).sum())
        flops = np.zeros(self.size)
        flops[: len(phase.flops)] = phase.flops
        return seconds, float(seconds * lift[flops > 0].sum() + (slope * flops).sum() / self.speed)


def _note(totals: dict[int, tuple[float, float]], part: Part, total: tuple[float, float]) -> tuple[float, float]:
    totals[id(part)] = total
    return total


def _add_up(
    totals: dict[int, tuple[float, float]], steps: Steps, inner: list[tuple[float, float]]
) -> tuple[float, float]:
    seconds, joules = sum(total[0] for total in inner), sum(total[1] for total in inner)
    return _note(totals, steps, (steps.repeat * seconds, steps.repeat * joules))


def _parts_at(
    totals: dict[int, tuple[float, float]], steps: Steps, rows: Array, times: Array, energies: Array
) -> list[tuple[Part, Array, Array]]:
    """Return the part of a round that each time is in, and add the joules of those before it to `energies`."""
    ends = np.cumsum([totals[id(part)] for part in steps.parts], axis=0)
    before = np.concatenate([np.zeros((1, 2)), ends])
    places = np.minimum(np.searchsorted(ends[:, 0], times, "right"), len(ends) - 1)
    energies[rows] += before[places, 1]
    times = np.maximum(times - before[places, 0], 0.0)
    return [(steps.parts[k], rows[places == k], times[places == k]) for k in np.unique(places).tolist()]


def is_steady(part: Part, size: int) -> bool:
    """Return whether work that sends nothing on `size` resources uses all of them fully all the time, or never."""
    phases = phases_of(part)
    even = all(not isinstance(phase, Matrix) or (*phase.flops,) == size * phase.flops[:1] for phase in phases)
    return even and len({isinstance(phase, Wait) for phase in phases}) == 1


@dataclass(frozen=True, slots=True)
class Programs:
    """Tables of programs, as the kernels have them, but storages are numbers in `storages`, their names.

    The column `program` of a workload holds the number of each job's program, -1 if its run time is known.
    """

    programs: Array
    phases: Array
    amounts: Array
    storages: tuple[str, ...]

    @property
    def in_amounts(self) -> Array:
        """Mask of the phases that have numbers in `amounts`, bool [phases]."""
        return np.isin(self.phases["kind"], (tables.MATRIX, tables.PLACED))


class ProgramBuilder:
    """Build the tables of programs."""

    def __init__(self) -> None:
        self._programs: list[tuple[int, int, int]] = []
        self._phases: list[tuple[float, float, float, int, int, int, int]] = []
        self._amounts: list[float] = []
        self._storages: dict[str, int] = {}

    def add(self, part: Part, size: int) -> int | None:
        """Add the program of a job of that size and return its number. O(phases).

        None if it has more than MOST_PHASES phases, or a phase repeats more than MOST_TIMES times.
        """
        repeat, inner = (1, (part,)) if _alone(part) or not isinstance(part, Steps) else (part.repeat, part.parts)
        if sum(_length(inner_part) for inner_part in inner) > MOST_PHASES:
            return None
        flat = [row for inner_part in inner for row in _expanded(inner_part)]
        if max(times for _, times in flat) > MOST_TIMES:
            return None
        first = len(self._phases)
        self._phases += [self._row(phase, times, size) for phase, times in flat]
        self._programs.append((first, len(self._phases), repeat))
        return len(self._programs) - 1

    def _row(self, phase: Phase, times: int, size: int) -> tuple[float, float, float, int, int, int, int]:
        if isinstance(phase, Wait):
            return times * phase.seconds, 0.0, 0.0, tables.WAIT, 0, 0, times
        if isinstance(phase, Even):
            return times * phase.flops, times * phase.bytes, times * phase.moved, tables.EVEN, 0, 0, times
        if isinstance(phase, Store):
            at = self._storage(phase.storage)
            return times * phase.read, times * phase.write, 0.0, tables.STORE, at, 0, times
        if isinstance(phase, Stage):
            ends = self._storage(phase.source), self._storage(phase.target)
            return 0.0, times * phase.bytes, 0.0, tables.STAGE, *ends, times
        at = len(self._amounts)
        if isinstance(phase, Placed):
            self._amounts += [*phase.ends, *(times * amount for amount in (*phase.flops, *phase.bytes))]
            return float(len(phase.ends)), float(bool(phase.bytes)), 0.0, tables.PLACED, at, 0, times
        self._amounts += [times * amount for amount in phase.flops] + [0.0] * (size - len(phase.flops))
        self._amounts += [times * amount for amount in phase.bytes]
        return times * flops_of(phase), float(bool(phase.bytes)), times * phase.moved, tables.MATRIX, at, 0, times

    def _storage(self, name: str) -> int:
        return self._storages.setdefault(name, len(self._storages))

    def programs(self) -> Programs:
        """Return the tables of all programs added."""
        rows = np.array(self._programs, tables.PROGRAM), np.array(self._phases, tables.PHASE)
        return Programs(*rows, np.array(self._amounts, np.float64), tuple(self._storages))


def _length(part: Part) -> int:
    """Return the rows that a part takes, at most MOST_PHASES + 1."""

    def of_steps(steps: Steps, inner: list[int]) -> int:
        return 1 if _alone(steps) else min(steps.repeat * sum(inner), MOST_PHASES + 1)

    return fold_part(part, lambda phase: 1, of_steps)


def _alone(part: Part) -> tuple[Phase, int] | None:
    """Return the only phase of a part and its repetitions, if it sends nothing; a latency would count each time."""
    times = 1
    while isinstance(part, Steps):
        if len(part.parts) > 1:
            return None
        times, part = min(times * part.repeat, MOST_TIMES + 1), part.parts[0]
    return None if sends(part, 2, to_itself=True) else (part, times)


def _expanded(part: Part) -> Iterator[tuple[Phase, int]]:
    """Yield (phase, repetitions) in order; one that repeats alone, and sends nothing, is yielded once. O(phases)."""
    stack = [part]
    while stack:
        top = stack.pop()
        if alone := _alone(top):
            yield alone
        elif not isinstance(top, Steps):
            yield top, 1
        else:
            stack += [inner for _ in range(top.repeat) for inner in reversed(top.parts)]


def renumber_storages(programs: Programs, numbers: Sequence[int]) -> Array:
    """Return the phases of programs in which each storage has its number of `numbers`. O(phases)."""
    phases, of_storage = programs.phases.copy(), np.array([*numbers, 0], np.int64)
    for key, kinds in (("at", (tables.STORE, tables.STAGE)), ("to", (tables.STAGE,))):
        of = np.isin(phases["kind"], kinds)
        phases[key][of] = of_storage[phases[key][of]]
    return phases


def renumber_ends(programs: Programs, places: Sequence[int]) -> Array:
    """Return the amounts of programs in which each storage of `Placed` has its number of `places`. O(amounts)."""
    amounts = programs.amounts.copy()
    for phase in programs.phases[programs.phases["kind"] == tables.PLACED]:
        ends = amounts[phase["at"] : phase["at"] + int(phase["amount"])]
        ends[ends < 0] = [~places[~int(end)] for end in ends[ends < 0]]
    return amounts


def concatenate(all_of: Sequence[Programs]) -> tuple[Programs, list[int]]:
    """Concatenate tables; return them and the offset of the program numbers of each. O(rows)."""
    storages = tuple(dict.fromkeys(name for table in all_of for name in table.storages))
    programs, phases, before, rows, amounts = list[Array](), list[Array](), list[int](), 0, 0
    for table in all_of:
        before.append(sum(map(len, programs)))
        program = table.programs.copy()
        phase = renumber_storages(table, [storages.index(name) for name in table.storages])
        program["first"] += rows
        program["last"] += rows
        phase["at"] += np.where(table.in_amounts, amounts, 0)
        programs.append(program)
        phases.append(phase)
        rows, amounts = rows + len(phase), amounts + len(table.amounts)
    values = np.concatenate([table.amounts for table in all_of])
    return Programs(np.concatenate(programs), np.concatenate(phases), values, storages), before
