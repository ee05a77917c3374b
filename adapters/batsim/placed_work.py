"""Changes that a decision to execute a job makes to its work: places of ranks, storages, and additional transfers.

Rule: as in Batsim 4. A mapping names the place in the allocation of each rank. An additional job of transfers has an
allocation of its own, of hosts of the job and of storages; what both do on a host, or between two hosts, is added.
Sequences are added part by part. A job that waits, or uses a storage by its label, gets no transfers.
Source: Batsim's documentation, "Protocol", EXECUTE_JOB, and "File System model"; Batsim 4's `task_execution.cpp`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...formats.batsim.messages import ExecuteJob, intervals_of
from ...formats.documents.document_errors import bad, inside
from ...formats.documents.schema import mapping, require, text
from ...formats.text import count
from ...simulate.model.programs import Even, Matrix, Part, Phase, Placed, Stage, Steps, Store, Wait, fold_part, sends

#: Deepest nesting of sequences to which transfers are added.
DEEPEST = 100


def placed_work(
    part: Part, size: int, decision: ExecuteJob, storages: Mapping[str, int],
    find: Callable[[str, Mapping[str, Any] | None, int], Part],
) -> Part | None:  # fmt: skip
    """Return the work of a job as it is executed; None: its own work, on its allocation in order.

    Args:
        part: its own work.
        size: the resources that it requests.
        decision: the decision.
        storages: name of each storage -> its number, ascending, after those of all resources.
        find: returns the work of an additional job by the name of its profile, the profile if it is new, and its size.

    Raises:
        ConfigError: it cannot be carried out.
    """
    hosts = [host for first, last in decision.alloc for host in range(first, last + 1)]
    ranks = inside("mapping", _ranks, decision.mapping, size, len(hosts)) if decision.mapping else range(len(hosts))
    name_of = partial(_storage, dict(decision.storage_mapping or {}), storages)
    if decision.additional_io_job is not None:
        if [*ranks] != [*range(size)] or len(hosts) != size:
            raise bad("it has a mapping, and so has its job", "rank i on host i", "additional_io_job")
        ends, io_part = inside("additional_io_job", _transfers, decision.additional_io_job, hosts, storages, find)
        return _merged(part, io_part, hosts, ends)
    if [*ranks] == [*range(len(hosts))]:
        changed = fold_part(part, lambda phase: _renamed(phase, name_of), _steps)
        return None if changed == part else changed
    order, ends = {name: i for i, name in enumerate(storages)}, [hosts[place] for place in ranks]
    return fold_part(part, lambda phase: _on(_renamed(phase, name_of), ends, order), _steps)


def _steps(steps: Steps, inner: list[Part]) -> Part:
    return Steps(tuple(inner), steps.repeat)


def _ranks(mapping: Mapping[int, int], size: int, hosts: int) -> list[int]:
    """Return the place of each rank in the allocation. Raises ConfigError."""
    if sorted(mapping) != [*range(size)]:
        raise bad(f"it names the ranks {', '.join(map(str, sorted(mapping)))[:60]}", f"ranks 0 to {size - 1}")
    ranks = [mapping[rank] for rank in range(size)]
    if max(ranks) >= hosts:
        raise bad(f"rank {ranks.index(max(ranks))} is on host {max(ranks)} of {hosts}", f"0 to {hosts - 1}")
    return ranks


def _storage(mapping: Mapping[str, int], storages: Mapping[str, int], label: str) -> str:
    """Return the name of the storage that a profile means by a label. Raises ConfigError."""
    names = {number: name for name, number in storages.items()}
    if label in mapping:
        if mapping[label] not in names:
            numbers = ", ".join(f"{number} ({name})" for number, name in names.items())
            raise bad(
                f"{label!r:.60} is {mapping[label]}",
                numbers or "no storage, as the machine has none",
                "storage_mapping",
            )
        return names[mapping[label]]
    if mapping or not (label in storages or len(storages) == 1):
        numbers = ", ".join(f"{name}: {number}" for name, number in storages.items())
        raise bad(f"{label!r:.60} is missing", f"a number for each label; {numbers}", "storage_mapping")
    return label if label in storages else next(iter(storages))


def _renamed(phase: Phase, name_of: Callable[[str], str]) -> Phase:
    if isinstance(phase, Store):
        return replace(phase, storage=name_of(phase.storage))
    if isinstance(phase, Stage):
        return replace(phase, source=name_of(phase.source), target=name_of(phase.target))
    return phase


def _on(phase: Phase, ends: Sequence[int], storages: Mapping[str, int]) -> Phase:
    """Return a phase whose ranks run on these hosts."""
    if isinstance(phase, Wait | Stage | Placed):
        return phase
    if isinstance(phase, Store):
        idle, read = (0.0,) * len(ends), (phase.read,) * len(ends)
        rows = [amount for _ in ends for amount in (*idle, phase.write)]
        return Placed((*ends, ~storages[phase.storage]), (*idle, 0.0), (*rows, *read, 0.0))
    return Placed(tuple(ends), *_amounts(phase, len(ends)))


def _amounts(phase: Even | Matrix, size: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the flops of each rank and the matrix of bytes, empty if nothing is sent."""
    if isinstance(phase, Matrix):
        return phase.flops or (0.0,) * size, phase.bytes if sends(phase, size, to_itself=True) else ()
    bytes_ = (phase.bytes * (row != to) for row in range(size) for to in range(size)) if phase.bytes else ()
    return (phase.flops,) * size, tuple(bytes_)


# --- additional transfers ---
def _transfers(
    value: Any, hosts: Sequence[int], storages: Mapping[str, int],
    find: Callable[[str, Mapping[str, Any] | None, int], Part],
) -> tuple[list[int], Part]:  # fmt: skip
    """Return the ends of an additional job, storages as in `Placed`, and its work. Raises ConfigError."""
    data = mapping(value)
    require(data, ("alloc", "profile_name"))
    first, names = min(storages.values(), default=0), set(storages.values())
    numbers = [number for low, high in inside("alloc", intervals_of, data["alloc"]) for number in range(low, high + 1)]
    if wrong := [number for number in numbers if number not in names and number not in hosts]:
        raise bad(f"resource {wrong[0]} is neither a storage nor of the job", "those of the job, and storages", "alloc")
    new = inside("profile", mapping, data["profile"]) if "profile" in data else None
    work = find(inside("profile_name", text, data["profile_name"]), new, len(numbers))
    return [~(number - first) if number in names else number for number in numbers], work


def _merged(part: Part, io_part: Part, hosts: Sequence[int], ends: Sequence[int], depth: int = 0) -> Part:
    """Return a job's work with that of its transfers. Raises ConfigError: one of them is not merged."""
    if isinstance(part, Steps) and isinstance(io_part, Steps) and depth < DEEPEST:
        if len(part.parts) != len(io_part.parts):
            problem = (
                f"it is a sequence of {count(len(io_part.parts), 'profile')}, and its job one of {len(part.parts)}"
            )
            raise bad(problem, "sequences of the same length", "additional_io_job")
        pairs = zip(part.parts, io_part.parts, strict=True)
        return Steps(tuple(_merged(first, second, hosts, ends, depth + 1) for first, second in pairs), part.repeat)
    if isinstance(part, Wait) and isinstance(io_part, Even | Matrix | Wait) and not _does(io_part, len(ends)):
        return part
    if not (isinstance(part, Even | Matrix) and isinstance(io_part, Even | Matrix)):
        allowed = "parallel or parallel_homogeneous profiles, for both, or sequences of them"
        raise bad("its profile cannot be merged with that of its job", allowed, "additional_io_job")
    everywhere = [*dict.fromkeys((*hosts, *ends))]
    size, flops, total = len(everywhere), [0.0] * len(everywhere), [0.0] * len(everywhere) ** 2
    for phase, phase_hosts in ((part, hosts), (io_part, ends)):
        places = [everywhere.index(end) for end in phase_hosts]
        computed, sent = _amounts(phase, len(phase_hosts))
        for place, amount in zip(places, computed, strict=True):
            flops[place] += amount
        for i, amount in enumerate(sent):
            total[places[i // len(phase_hosts)] * size + places[i % len(phase_hosts)]] += amount
    if any(amount > 0 and end < 0 for amount, end in zip(flops, everywhere, strict=True)):
        raise bad("storages cannot compute", "0 flops on them", "additional_io_job")
    return Placed(tuple(everywhere), tuple(flops), tuple(total) if any(total) else ())


def _does(phase: Even | Matrix | Wait, size: int) -> bool:
    if isinstance(phase, Wait):
        return False
    return any(amount > 0 for amounts in _amounts(phase, size) for amount in amounts)
