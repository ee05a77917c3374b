"""The progress of a killed job, as both versions of the protocol write it.

Rule: a sequence names its present part, and the progress of that part.
Source: Batsim 4's `protocol.cpp`, whose names differ from its documentation; the tests of batprotocol, "jobs killed".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .profiles_5 import full_id


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The progress of a job, or of a part of it.

    Args:
        profile: name of its profile.
        share: how much was done, 0 to 1; of a sequence that of its present part, see `inner`.
        repetition: of a sequence, from 0.
        index: of the present part in it.
        length: parts of it.
        inner: the present part; None: it is no sequence.
    """

    profile: str
    share: float = 0.0
    repetition: int = 0
    index: int = 0
    length: int = 1
    inner: JobProgress | None = None


def progress_of(
    profile: str, done: float, parts_of: Callable[[str], tuple[str, ...]], amount_of: Callable[[str], float]
) -> JobProgress:  # fmt: skip
    """Return how far a job was.

    Args:
        profile: its profile.
        done: how much of it was done, in some unit.
        parts_of: returns the parts of a sequence; () = it is none.
        amount_of: returns the amount of a profile in that unit, for a sequence with all repetitions.
    """
    if not (parts := parts_of(profile)):
        amount = amount_of(profile)
        return JobProgress(profile, min(done / amount, 1.0) if amount > 0 else 0.0)
    amounts = [amount_of(part) for part in parts]
    once = sum(amounts)
    repetition = int(min(done, amount_of(profile) * (1 - 1e-12)) // once) if once > 0 else 0
    remainder, index = done - repetition * once, 0
    while index < len(parts) - 1 and remainder >= amounts[index]:
        remainder -= amounts[index]
        index += 1
    return JobProgress(
        profile, 0.0, repetition, index, len(parts), progress_of(parts[index], remainder, parts_of, amount_of)
    )


def progress_4(progress: JobProgress) -> dict[str, Any]:
    """Return the progress as version 4 writes it."""
    if progress.inner is None:
        return {"profile_name": progress.profile, "progress": progress.share}
    index = progress.repetition * progress.length + progress.index
    return {
        "profile_name": progress.profile, "current_task_index": index, "current_task": progress_4(progress.inner),
    }  # fmt: skip


def progress_5(workload: str, progress: JobProgress) -> dict[str, Any]:
    """Return the progress as version 5 writes it, of a job of a workload."""
    fields: dict[str, Any] = {"profile_id": full_id(workload, progress.profile)}
    if progress.inner is None:
        return {
            "kill_progress_type": "KillProgressAtomicProfile",
            "kill_progress": fields | {"progress": progress.share},
        }
    fields |= {"current_repetition": progress.repetition, "current_task_index": progress.index}
    fields["current_task_progress"] = progress_5(workload, progress.inner)
    return {"kill_progress_type": "KillProgressSequentialProfile", "kill_progress": fields}
