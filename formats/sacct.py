"""What `sacct` prints of a job and its steps, read into one entry of the books.

Rule: pure, and of fields by their names, so that the daemon's requests and dumps of others are read alike. Memory is
that of the largest task, or of an average node's tasks together where that is more; an energy that Slurm does not know,
and a CPU time of 0, which is what it has where none is gathered (jobacct_gather/none), are None.
Source: sacct(1), Job Accounting Fields; what Slurm 22.05 was seen to print.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..booked import Booked
from .hostlist import expand
from .units import LARGEST, bad, found

_CLOCK = re.compile(r"(?:(?:(\d{1,9})-)?(\d{1,9}):)?(\d{1,9}):(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([KMGTP]?)", re.ASCII)
_COUNT = re.compile(r"\d{1,20}", re.ASCII)
#: Energies from here on are Slurm's ways to say that there is none (NO_VAL64, INFINITE64).
_NO_ENERGY = 2.0**63
Row = Mapping[str, str]


def booked(rows: Sequence[Row]) -> Booked:
    """Return the entry of a job: its own row, with those of its steps behind.

    Args:
        rows: field -> text; `State`, `TotalCPU`, `ElapsedRaw` or `Elapsed`, and `NCPUS` or `AllocCPUS` are needed,
            `JobName`, `Start`, `NNodes`, `NTasks`, `MaxRSS`, `AveRSS`, `ConsumedEnergyRaw`, `NodeList` used.

    Raises:
        ConfigError: a value is not what Slurm prints.
    """
    job = rows[0]
    nodes = max(1, _count(job.get("NNodes", "")))
    cpus = max(1, _count(job["NCPUS"] if "NCPUS" in job else job["AllocCPUS"]))
    joules = max(_count(row.get("ConsumedEnergyRaw", "")) for row in rows)
    start, where = job.get("Start", "").strip(), job.get("NodeList", "").strip()
    return Booked(
        name=" ".join(job.get("JobName", "").split()),
        completed=job["State"].strip() == "COMPLETED",
        began=start if start[:1].isdigit() else "",
        run_s=float(_count(job["ElapsedRaw"])) if "ElapsedRaw" in job else _clock(job["Elapsed"]),
        nodes=nodes,
        cores=-(-cpus // nodes),
        cpu_s=_clock(job["TotalCPU"]) or None,
        memory_bytes=max(map(_memory, rows)) or None,
        joules=float(joules) if 0 < joules < _NO_ENERGY else None,
        placed=() if where in ("", "None assigned") else expand(where),
    )


def _memory(step: Row) -> float:
    """Bytes on a node: of the largest task, or of all tasks of an average node; 0 where nothing was gathered."""
    tasks, nodes = _count(step.get("NTasks", "")), max(1, _count(step.get("NNodes", "")))
    return max(_size(step.get("MaxRSS", "")), _size(step.get("AveRSS", "")) * tasks / nodes)


def _clock(text: str) -> float:
    """Seconds of [DD-[HH:]]MM:SS[.mmm]."""
    match = _CLOCK.fullmatch(text.strip())
    if not match:
        raise bad(found(text), "a time such as 1-02:03:04 or 03:04.567")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _size(text: str) -> float:
    """Bytes of a size in units of 1024; 0 where there is none."""
    match = _SIZE.fullmatch(text.strip() or "0")
    size = float(match[1]) * 1024.0 ** " KMGTP".index(match[2] or " ") if match else LARGEST
    if size >= LARGEST:
        raise bad(found(text), "a size such as 1234K")
    return size


def _count(text: str) -> int:
    """A whole number; 0 where there is none."""
    if not _COUNT.fullmatch(text.strip() or "0"):
        raise bad(found(text), "a whole number")
    return int(text.strip() or "0")
