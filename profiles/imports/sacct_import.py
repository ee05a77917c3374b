"""Runs in a dump of Slurm's accounting: `sacct -P -o JobID,JobName,State,ElapsedRaw,TotalCPU,NCPUS,NNodes,...`.

Rule: columns and their separator are found by the header; unknown columns are ignored. Only completed jobs with
recorded CPU time count. ConsumedEnergyRaw covers whole nodes.
Source: sacct(1), Job Accounting Fields; see `formats/sacct.py` for the fields.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...formats.documents.document_errors import bad, inside
from ...formats.sacct import Row, accounting_record
from .imported import Imported, accounted_run

METHOD = "sacct"
NOTE = "from sacct: as many threads as its CPU time filled; memory is that of the largest task; bandwidth unknown"
_POWER = "; power is that of whole nodes"
#: Required columns, each in one of its forms.
_NEEDED = (("JobID",), ("State",), ("ElapsedRaw", "Elapsed"), ("TotalCPU",), ("NCPUS", "AllocCPUS"))


def parse(text: str, name: str) -> Sequence[Imported]:
    """Return the completed jobs of a dump, each under its JobName (`name` without one).

    Raises:
        ConfigError: with the line.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    title = lines[0][1].strip()
    separator = next((letter for letter in title if not letter.isalnum() and letter != "_"), "|")
    header = title.removesuffix(separator).split(separator)
    for forms in _NEEDED:
        if not any(form in header for form in forms):
            raise bad(f"no column {' or '.join(forms)}", "a dump of sacct -P with its header", key="line 1")
    jobs: dict[str, list[Row]] = {}
    for number, line in lines[1:]:
        row = inside(f"line {number}", _row, header, line, separator)
        jobs.setdefault(row["JobID"].partition(".")[0], []).append(row | {"": str(number)})
    runs = [run for rows in jobs.values() if (run := inside(f"line {rows[0]['']}", _run, rows, name))]
    if not runs:
        raise bad("no job in it completed with its CPU time gathered", "State COMPLETED and TotalCPU above 0")
    return runs


def _row(header: Sequence[str], line: str, separator: str) -> dict[str, str]:
    cells = line.split(separator)
    if len(cells) == len(header) + 1 and not cells[-1]:  # `sacct -p` ends lines with a separator
        cells.pop()
    if len(cells) != len(header):
        raise bad(f"{len(cells)} fields", f"{len(header)}, as in the header; names must not contain {separator}")
    return dict(zip(header, cells, strict=True))


def _run(rows: Sequence[Row], name: str) -> Imported | None:
    """Return a job and its steps as one run, None if it did not complete or has no CPU time."""
    if "." in rows[0]["JobID"] or rows[0]["State"].strip() != "COMPLETED":
        return None
    entry = accounting_record(rows)
    run = accounted_run(entry, METHOD)
    if run is None:
        return None
    note = NOTE + (_POWER if run.power_watts else "")
    return Imported(entry.name or name, run, note)
