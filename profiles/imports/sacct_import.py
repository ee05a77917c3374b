"""Runs in a dump of Slurm's accounting: `sacct -P -o JobID,JobName,State,ElapsedRaw,TotalCPU,NCPUS,NNodes,...`.

Rule: columns and their separator are found by the header; unknown columns are ignored. Only completed jobs with
recorded CPU time count; all others are counted by what they lack, and a row that cannot be read is one of them. Each
record of a requeued job is a run. The components of a heterogeneous job are different programs under one name, and are
left out. ConsumedEnergyRaw covers whole nodes.
Source: sacct(1), Job Accounting Fields; see `formats/sacct.py` for the fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ...formats.documents.document_errors import bad
from ...formats.sacct import Row, accounting_record
from ...formats.text import count, counted
from ...simulate.errors import ConfigError
from .imported import Imported, Imports, accounted_run

METHOD = "sacct"
NOTE = "from sacct: as many threads as its CPU time filled; memory is that of the largest task; bandwidth unknown"
_POWER = "; power is that of whole nodes"
#: Required columns, each in one of its forms.
_NEEDED = (("JobID",), ("State",), ("ElapsedRaw", "Elapsed"), ("TotalCPU",), ("NCPUS", "AllocCPUS"))
_HETEROGENEOUS = "components of heterogeneous jobs"


def parse(text: str, name: str) -> Imports:
    """Return the completed jobs of a dump, each under its JobName (`name` without one).

    Raises:
        ConfigError: with the line; it is not such a dump, or no job can be used.
    """
    lines = [(number, line.rstrip("\r")) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise bad("the file is empty", "a dump of sacct -P with its header")
    title = lines[0][1].strip(" ")
    separator = next((letter for letter in title if not letter.isalnum() and letter != "_"), "|")
    if separator == " ":
        raise bad("this is sacct's table for people", "the output of sacct -P -o JobID,JobName,State,...", key="line 1")
    header = title.split(separator)  # `sacct -p` ends each line with a separator, -P does not
    for forms in _NEEDED:
        if not any(form in header for form in forms):
            raise bad(f"no column {' or '.join(forms)}", "a dump of sacct -P with its header", key="line 1")
    unread = _Unread()
    runs, left_out = list[Imported](), Counter[str]()
    for number, record in _records(lines[1:], header, separator, unread):
        try:
            run = _run(record, name)
        except ConfigError as error:
            unread.add(number, error)
            continue
        if isinstance(run, str):
            left_out[run] += 1
        else:
            runs.append(run)
    left_out += unread.counts()
    if not runs:
        why = f"; left out: {counted(left_out)}" if left_out else ""
        raise bad(f"no job in it completed with its CPU time gathered{why}", "State COMPLETED and TotalCPU above 0")
    return Imports(runs, left_out)


class _Unread:
    """Counts the rows that cannot be read, and keeps the error of the first."""

    def __init__(self) -> None:
        self._rows, self._first = 0, ""

    def add(self, number: int, error: ConfigError) -> None:
        """Count a row; `number` is its line."""
        self._first = self._first or f"line {number}: {error.problem} (allowed: {error.allowed})"
        self._rows += 1

    def counts(self) -> Counter[str]:
        """Return the count under its reason."""
        return Counter({f"rows that cannot be read, the first is {self._first}": self._rows} if self._rows else {})


def _records(
    lines: Sequence[tuple[int, str]], header: Sequence[str], separator: str, unread: _Unread
) -> Iterator[tuple[int, list[Row]]]:
    """Yield the line and the rows of each record: a job's own row, then those of its steps."""
    records: list[tuple[int, list[Row]]] = []
    latest: dict[str, list[Row]] = {}
    for number, line in lines:
        try:
            row = _row(header, line, separator)
        except ConfigError as error:
            unread.add(number, error)
            continue
        job, _, step = row["JobID"].strip().partition(".")
        if not step:
            latest[job] = [row]
            records.append((number, latest[job]))
        elif job in latest:  # otherwise a step of a job that was not selected
            latest[job].append(row)
    yield from records


def _row(header: Sequence[str], line: str, separator: str) -> dict[str, str]:
    cells = line.split(separator)
    if len(cells) != len(header):
        raise bad(
            f"{count(len(cells), 'field')}", f"{len(header)}, as in the header; names must not contain {separator!r}"
        )
    return dict(zip(header, cells, strict=True))


def _run(rows: Sequence[Row], name: str) -> Imported | str:
    """Return a job and its steps as one run, or why it is left out."""
    entry = accounting_record(rows)
    if entry.obstacle:
        return entry.obstacle
    if "+" in rows[0]["JobID"]:
        return _HETEROGENEOUS
    run = accounted_run(entry, METHOD)
    return Imported(entry.name or name, run, NOTE + (_POWER if run.power_watts else ""))
