"""Runs in a dump of Slurm's accounting: `sacct -P -o JobID,JobName,State,ElapsedRaw,TotalCPU,NCPUS,NNodes,...`.

Rule: columns are found by the header, others are left alone; only jobs that completed and whose CPU time was gathered
count. MaxRSS is the largest of any one task, and ConsumedEnergyRaw is of whole nodes, as Slurm has them.
Source: sacct(1), Job Accounting Fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...simulate.formats.shape import inside
from ...simulate.formats.units import bad, found
from ..measurement import Measurement
from .imported import Imported, spread

NOTE = "from sacct: as many threads as its CPU time filled; memory is that of the largest task; bandwidth unknown"
_POWER = "; power is that of whole nodes"
#: Each of these, in one of its forms.
_NEEDED = (("JobID",), ("State",), ("ElapsedRaw", "Elapsed"), ("TotalCPU",), ("NCPUS", "AllocCPUS"))
_CLOCK = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)", re.ASCII)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)", re.ASCII)
_COUNT = re.compile(r"\d{1,20}", re.ASCII)
#: Energies from here on are Slurm's ways to say that there is none (NO_VAL64, INFINITE64).
_NO_ENERGY = 2.0**63
Row = Mapping[str, str]


def parse(text: str, name: str) -> Sequence[Imported]:
    """Return the jobs of a dump that completed, each under its JobName (`name` where it has none).

    Raises:
        ConfigError: with the line.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    header = lines[0][1].strip().rstrip("|").split("|")
    for forms in _NEEDED:
        if not any(form in header for form in forms):
            inside("line 1", _raise, f"no column {' or '.join(forms)}", "a dump of sacct -P with its header")
    jobs: dict[str, list[Row]] = {}
    for number, line in lines[1:]:
        row = inside(f"line {number}", _row, header, line)
        jobs.setdefault(row["JobID"].partition(".")[0], []).append(row | {"": str(number)})
    runs = [run for rows in jobs.values() if (run := inside(f"line {rows[0]['']}", _run, rows, name))]
    if not runs:
        raise bad("no job in it completed with its CPU time gathered", "State COMPLETED and TotalCPU above 0")
    return runs


def _raise(problem: str, allowed: str) -> None:
    raise bad(problem, allowed)


def _row(header: Sequence[str], line: str) -> dict[str, str]:
    cells = line.split("|")
    if len(cells) == len(header) + 1 and not cells[-1]:  # as `sacct -p` ends its lines
        cells.pop()
    if len(cells) != len(header):
        raise bad(f"{len(cells)} fields", f"{len(header)}, as in the header; a name with | in it has to go")
    return dict(zip(header, cells, strict=True))


def _run(rows: Sequence[Row], name: str) -> Imported | None:
    """A job and its steps as one run, None where it teaches nothing."""
    job = rows[0]
    if "." in job["JobID"] or job["State"].strip() != "COMPLETED":
        return None
    wall_s = float(_count(job["ElapsedRaw"])) if "ElapsedRaw" in job else _clock(job["Elapsed"])
    nodes = max(1, _count(job.get("NNodes", "1")))
    cpus = max(1, _count(job["NCPUS"] if "NCPUS" in job else job["AllocCPUS"]))
    cpu_s = _clock(job["TotalCPU"]) / nodes
    if not wall_s or not cpu_s:
        return None
    memory = max(_size(row.get("MaxRSS", "")) for row in rows)
    joules = max(_count(row.get("ConsumedEnergyRaw", "") or "0") for row in rows)
    watts = joules / wall_s / nodes if 0 < joules < _NO_ENERGY else None
    group = spread(cpu_s, wall_s, -(-cpus // nodes))
    start = job.get("Start", "")
    run = Measurement(
        (group,), wall_s, wall_s, cpu_s, date=start if start[:1].isdigit() else "", memory_bytes=memory or None,
        method="sacct",
    )  # fmt: skip
    title = " ".join(job.get("JobName", "").split()) or name
    return Imported(title, run, NOTE + (_POWER if watts else ""), power_watts=watts)


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
    if not match:
        raise bad(found(text), "a size such as 1234K")
    return float(match[1]) * 1024.0 ** " KMGTP".index(match[2] or " ")


def _count(text: str) -> int:
    if not _COUNT.fullmatch(text.strip()):
        raise bad(found(text), "a whole number")
    return int(text)
