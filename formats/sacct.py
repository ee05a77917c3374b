"""Parse what `sacct` prints of a job and its steps into one accounting record.

Rule: pure; fields are found by name, so that answers of the daemon's requests and dumps of other sites parse alike.
Memory is that of the largest task, or of all tasks of an average node if that is more. An energy that Slurm does not
know and a CPU time of 0 (which jobacct_gather/none reports) become None. Slurm prints INVALID for a time that would be
negative: such a time is unknown.
Source: sacct(1), "Job Accounting Fields"; output of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..simulate.model.accounting_record import AccountingRecord
from .documents.document_errors import bad, found
from .documents.quantities import LARGEST
from .hostlist import expand

_CLOCK = re.compile(r"(?:(?:(\d{1,9})-)?(\d{1,9}):)?(\d{1,9}):(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)
#: What Slurm prints for a time that it does not know.
_NO_TIME = ("", "INVALID", "Unknown", "UNLIMITED")
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([KMGTP]?)", re.ASCII)
_COUNT = re.compile(r"\d{1,20}", re.ASCII)
#: From here on, energies are Slurm's codes for "unknown" (NO_VAL64, INFINITE64).
_NO_ENERGY = 2.0**63
Row = Mapping[str, str]


def accounting_record(rows: Sequence[Row]) -> AccountingRecord:
    """Return the accounting record of a job from its own row and the rows of its steps.

    Args:
        rows: the job first, then its steps; field -> text. Required: `State`, `TotalCPU`, `ElapsedRaw` or `Elapsed`,
            `NCPUS` or `AllocCPUS`. Used if present: `JobName`, `Start`, `NNodes`, `NTasks`, `MaxRSS`, `AveRSS`,
            `ConsumedEnergyRaw`, `NodeList`.

    Raises:
        ConfigError: a value is not one that Slurm prints.
    """
    job = rows[0]
    nodes = max(1, _count(job.get("NNodes", "")))
    cpus = max(1, _count(job["NCPUS"] if "NCPUS" in job else job["AllocCPUS"]))
    joules = max(_count(row.get("ConsumedEnergyRaw", "")) for row in rows)
    start, where = job.get("Start", "").strip(), job.get("NodeList", "").strip()
    return AccountingRecord(
        name=" ".join(job.get("JobName", "").split()),
        completed=job["State"].strip() == "COMPLETED",
        began=start if start[:1].isdigit() else "",
        run_s=_seconds(job["ElapsedRaw"]) if "ElapsedRaw" in job else _clock(job["Elapsed"]),
        nodes=nodes,
        cores=-(-cpus // nodes),
        cpu_s=_clock(job["TotalCPU"]) or None,
        memory_bytes=max(map(_memory, rows)) or None,
        joules=float(joules) if 0 < joules < _NO_ENERGY else None,
        placed=() if where in ("", "None assigned") else expand(where),
    )


def _memory(step: Row) -> float:
    """Return bytes on one node: the largest task, or all tasks of an average node; 0 where nothing was gathered."""
    tasks, nodes = _count(step.get("NTasks", "")), max(1, _count(step.get("NNodes", "")))
    return max(_size(step.get("MaxRSS", "")), _size(step.get("AveRSS", "")) * tasks / nodes)


def _seconds(text: str) -> float:
    """Return a whole number of seconds; 0 if Slurm does not know it."""
    return 0.0 if text.strip() in _NO_TIME else float(_count(text))


def _clock(text: str) -> float:
    """Return the seconds of [DD-[HH:]]MM:SS[.mmm]; 0 if Slurm does not know them."""
    if text.strip() in _NO_TIME:
        return 0.0
    match = _CLOCK.fullmatch(text.strip())
    if not match:
        raise bad(found(text), "a time such as 1-02:03:04 or 03:04.567")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _size(text: str) -> float:
    """Return the bytes of a size in units of 1024; 0 for an empty field."""
    match = _SIZE.fullmatch(text.strip() or "0")
    size = float(match[1]) * 1024.0 ** " KMGTP".index(match[2] or " ") if match else LARGEST
    if size >= LARGEST:
        raise bad(found(text), "a size such as 1234K")
    return size


def _count(text: str) -> int:
    """Return a whole number; 0 for an empty field."""
    if not _COUNT.fullmatch(text.strip() or "0"):
        raise bad(found(text), "a whole number")
    return int(text.strip() or "0")
