"""Write the results of a replay as Batsim does, for its tools and evalys.

They are in jobs.csv, schedule.csv, machine_states.csv and summary.json; with known power also in consumed_energy.csv
and pstate_changes.csv.

Rule: times keep their full precision. An unknown value is an empty field in CSV and null in JSON, never 0. Each file is
written completely or not at all.
Source: Batsim's documentation, "Output files", and output of Batsim 4.2.1; procset's interval sets ("0-3 7").
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...simulate.kernels.queue.power.tables import TO_IDLE
from ...simulate.replay.energy import STATES, Track
from ...simulate.replay.metrics import Summary, failed
from ...simulate.replay.replay import Replayed
from ...simulate.world.replay_result import pieces_by_job
from ...trust import make_folders
from ..batsim.schedule import schedule_row, switch_groups, written_ends
from ..documents.atomic_write import write_together
from ..documents.csv_text import Column, Known, csv_line, csv_table, text_rows

Array = npt.NDArray[Any]
SUCCESS, FAILED = "COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED"
KILLED, REJECTED, ENDED_BY_POLICY = "COMPLETED_WALLTIME_REACHED", "REJECTED", "COMPLETED_KILLED"
JOB_COLUMNS = (
    "job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources", "requested_time",
    "success", "final_state", "starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time",
    "stretch", "allocated_resources", "consumed_energy", "metadata",
)  # fmt: skip
#: Orders of the rows of jobs.csv.
ORDERS = BY_SUBMISSION, BY_END = "submission", "end"
#: States of machines that are being switched on, and off, in pstate_changes.csv.
TURNING_ON, TURNING_OFF = -1, -2


def write_results(
    folder: Path, replayed: Replayed, summary: Summary, about: Mapping[str, Any],
    found: Track | None = None, joules: Array | None = None, *, order: str = BY_SUBMISSION,
    states: tuple[str, str] = ("0", "1"),
) -> list[Path]:  # fmt: skip
    """Write the result files into a folder and return their paths. O(jobs + pieces).

    Args:
        folder: created if missing.
        replayed: the replay.
        summary: its metrics.
        about: further keys of summary.json.
        found: the machine's states over time, and its power where `joules` is known; None = unknown.
        joules: energy of each job, joules [jobs]; None = unknown.
        order: of the rows of jobs.csv, one of ORDERS.
        states: numbers of the states in which a machine computes, and is off.

    Raises:
        OSError: a file cannot be written; the old files are unchanged.
    """
    make_folders(folder)
    row = schedule_row(replayed, summary, found, f"pilotfish {about.get('version', '')}".strip())
    texts: dict[str, str | bytes] = {
        "jobs.csv": jobs_csv(replayed, joules, order),
        "schedule.csv": f"{csv_line(row)}\n{csv_line('' if value is None else value for value in row.values())}\n",
        "summary.json": json.dumps({**about, **asdict(summary)}, indent=1) + "\n",
    }
    if found is not None:
        texts["machine_states.csv"] = machine_states_csv(found)
    if found is not None and joules is not None:
        texts["consumed_energy.csv"] = energy_csv(found)
        texts["pstate_changes.csv"] = state_changes_csv(
            replayed, float(found.time[0]) if len(found.time) else 0.0, states
        )
    paths = {folder / name: text for name, text in texts.items()}
    write_together(paths)
    for name in ("machine_states.csv", "consumed_energy.csv", "pstate_changes.csv"):
        if name not in texts:
            (folder / name).unlink(missing_ok=True)
    return [*paths]


def machine_states_csv(found: Track) -> bytes:
    """Return the number of resources in each state from each change on."""
    return csv_table(("time", *(f"nb_{state}" for state in STATES)), (found.time, *found.counts.T))


def energy_csv(found: Track) -> bytes:
    """Return the energy up to each change, the least power from there on, and the power since the row before."""
    rows = np.arange(len(found.time))
    before = Known(found.watts[rows - 1], rows > 0, b"NA")
    columns = found.time, found.joules, b"p", found.least_watts, before
    return csv_table(("time", "energy", "event_type", "wattmin", "epower"), columns)


def state_changes_csv(replayed: Replayed, begin: float, states: tuple[str, str]) -> str:
    """Return the states of machines at first, and each change that begins or ends.

    Args:
        replayed: the replay.
        begin: when all machines are on, seconds.
        states: see `write_results`.
    """
    rows = [(begin, f"0-{replayed.machine - 1}" if replayed.machine > 1 else "0", states[0])]
    for group in switch_groups(replayed):
        on = group["kind"][0] == TO_IDLE
        pairs = zip(group["first"].tolist(), group["last"].tolist(), strict=True)
        which = " ".join(f"{first}-{last}" if first != last else str(first) for first, last in pairs)
        rows.append((float(group["time"][0]), which, str(TURNING_ON if on else TURNING_OFF)))
        rows.append((float(group["until"][0]), which, states[0] if on else states[1]))
    rows.sort(key=lambda row: row[0])
    return "time,machine_id,new_pstate\n" + "".join(f"{time!r},{which},{state}\n" for time, which, state in rows)


def jobs_csv(replayed: Replayed, joules: Array | None = None, order: str = BY_SUBMISSION) -> bytes:
    """Return one line a job; no walltime is written as -1. O(jobs + pieces).

    Args:
        replayed: the replay.
        joules: energy of each job, joules [jobs]; None = unknown.
        order: one of ORDERS. A rejected job ends when it is submitted.
    """
    jobs, rejected, more = replayed.workload, replayed.rejected, replayed.workload.more
    submit, start = replayed.submit_time, replayed.start_time
    ids = _fields(more.get("name", jobs.id))
    run, finish = written_ends(replayed)
    turnaround = finish - submit
    stretch = np.divide(turnaround, run, out=np.full(len(jobs), math.nan), where=run > 0)
    codes = np.where(failed(replayed), 1, 0)
    if replayed.killed is not None:
        codes[replayed.killed] = 2
    codes[replayed.overran], codes[rejected] = 3, 4
    states = np.array([f"{int(state == SUCCESS)},{state}" for state in
                       (SUCCESS, FAILED, ENDED_BY_POLICY, KILLED, REJECTED)], "S")  # fmt: skip
    metadata = more.get("metadata")
    columns: list[Column | tuple[Column, ...]] = [
        ids,
        _fields(more["workload"]) if "workload" in more else csv_line([jobs.name]).encode(),
        _fields(more["profile"]) if "profile" in more else ids,
        submit, jobs.size,
        Known(jobs.walltime, ~np.isinf(jobs.walltime), b"-1"),
        states[codes],
        start, run, finish, start - submit, turnaround, stretch,
        allocations(replayed),
        b"" if joules is None else np.where(rejected, math.nan, joules),
        b'""' if metadata is None else _quoted(metadata),
    ]  # fmt: skip
    if order == BY_END:
        rows = np.argsort(np.where(rejected, submit, finish), kind="stable")
        columns = [
            tuple(part[rows] for part in column if not isinstance(part, bytes)) if isinstance(column, tuple)
            else column if isinstance(column, bytes) else column[rows] for column in columns
        ]  # fmt: skip
    names = [name for name in JOB_COLUMNS if name != "success"]
    names[names.index("final_state")] = "success,final_state"
    return csv_table(names, columns)


def allocations(replayed: Replayed) -> tuple[Column, ...]:
    """Return the resources of each job as an interval set ("0-3 7"), "" for none. O(pieces)."""
    counts = replayed.piece_count
    one, several = counts == 1, counts > 1
    first, last = _ends(replayed.pieces[np.where(one, replayed.piece0, 0)] if len(replayed.pieces) else None, len(one))
    texts = np.full(len(counts), "", object)
    if several.any():
        owner, pieces = pieces_by_job(replayed.pieces, replayed.piece0[several], counts[several])
        begin, end = _ends(pieces, len(owner))
        ends = np.where(np.append(owner[1:] != owner[:-1], True), b"\n", b" ")
        rows = text_rows([begin, np.where(begin != end, b"-", b""), Known(end, begin != end), ends])
        texts[several] = rows.decode().split("\n")[:-1]
    wide = one & (first != last)
    return Known(first, one), np.where(wide, b"-", b""), Known(last, wide), Known(texts, several)


def _ends(pieces: Array | None, count: int) -> tuple[Array, Array]:
    if pieces is None:
        return np.zeros(count, np.int64), np.zeros(count, np.int64)
    return pieces["first"].astype(np.int64), pieces["last"].astype(np.int64)


def _fields(column: Array) -> Array:
    """Return a column whose texts are quoted where CSV needs it."""
    if column.dtype != object:
        return column
    written = {text: csv_line([text]) for text in set(column.tolist())}
    fields = np.empty(len(column), object)
    fields[:] = [written[text] for text in column.tolist()]
    return fields


def _quoted(column: Array) -> Array:
    """Return texts in quotes, as Batsim writes metadata."""
    fields = np.empty(len(column), object)
    fields[:] = ['"' + str(text).replace('"', '""') + '"' for text in column.tolist()]
    return fields
