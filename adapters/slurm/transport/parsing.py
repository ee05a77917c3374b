"""Parsing of what Slurm's commands print: states, comments, and tables; values are those of formats.slurm_values.

Rule: what Slurm reports as unknown (`Unknown`, `N/A`, `None`, `UNLIMITED`, ...) is None, never 0; an unreadable value
is a ValueError that quotes it. A state that is not in the tables is UNKNOWN; if a base state has flags, the worst flag
counts. In tables every row ends with a mark that is drawn for each call: a comment may hold blanks, newlines, `|` or
`JobState=RUNNING`, but not the mark. Fields are divided by a control character. A row with too many of these has one in
a user's text, and is unreadable. A row with too few was cut off, which is an error.
Source: squeue(1), scontrol(1), sinfo(1), `--Format=type[:[.][size][suffix]]` (a size of 0 prints a field whole); times
are UTC because the commands run with TZ=UTC. slurm.h of 22.05 to 25.05.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

from ....formats.slurm_values import count as count
from ....formats.slurm_values import moment as moment
from ....formats.slurm_values import size as size
from ....formats.slurm_values import span as span
from ....formats.slurm_values import tres as tres
from ....formats.slurm_values import whole as whole
from ....simulate.model.snapshot import JobState, NodeState
from ...base import ParseError
from .differences import differences
from .rows import Unreadable, read_rows

_TASKS = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?(?::([0-9]{1,10}))?")
_TASK_LIMIT = re.compile(r"[1-9][0-9]{0,9}")


def word(text: str) -> str:
    """Return the text, "" if Slurm reports none."""
    return "" if text.strip() in ("(null)", "N/A", "None") else text.strip()


def comment(text: str) -> str:
    """Return a comment byte for byte, "" for none.

    Bytes that are no UTF-8 are surrogates, as `os.fsdecode` makes them. Raises ValueError for what no command can pass
    on.
    """
    if "\0" in text:
        raise ValueError("a comment has a NUL")
    os.fsencode(text)
    return "" if text == "(null)" else text


def clean(text: str) -> str:
    """Return the text with a question mark for each byte that is no UTF-8."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def array_tasks(text: str) -> tuple[int, int | None]:
    """Return how many tasks of an array the text lists, 0 if that is not known, and how many may run at once.

    The text is such as `7`, `0-9%2` or `1,3,10-20:5`; "": one job that is no array. None: as many as there are. Slurm
    ends a text that it cut with `...`.
    """
    if not text:
        return 1, None
    listed, _, limit = text.partition("%")
    total = 0
    for part in listed.split(","):
        match = _TASKS.fullmatch(part)
        if not match:
            return 0, None
        first, last, step = (int(number or 0) for number in match.groups())
        total += len(range(first, max(first, last) + 1, step or 1))
    return total, int(limit) if _TASK_LIMIT.fullmatch(limit) else None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


JOB_STATES = {
    word: state
    for state, words in (
        (JobState.PENDING, "PENDING REQUEUED REQUEUE_FED REQUEUE_HOLD SPECIAL_EXIT RESV_DEL_HOLD EXPEDITING"),
        (JobState.CONFIGURING, "CONFIGURING POWER_UP_NODE"),
        (JobState.SUSPENDED, "SUSPENDED STOPPED"),
        (JobState.RUNNING, "RUNNING COMPLETING STAGE_OUT SIGNALING RESIZING"),
        (JobState.COMPLETED, "COMPLETED"),
        (JobState.CANCELLED, "CANCELLED"),
        (JobState.FAILED, "FAILED BOOT_FAIL LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED RECONFIG_FAIL REVOKED"),
        (JobState.TIMEOUT, "TIMEOUT DEADLINE"),
    )
    for word in words.split()
}
#: A node that powers down takes no job; one that is powered down wakes for a job.
_DOWN = _words("DOWN FAIL FAILING ERROR REBOOT REBOOT_ISSUED REBOOT_REQUESTED FUTURE POWERING_DOWN POWER_DOWN")
_ASLEEP = _words("POWERED_DOWN")
_DRAINED = _words("DRAIN DRAINED DRAINING MAINT RESERVED PLANNED_DRAIN BLOCKED PERFCTRS NPC")
_SILENT = _words("NOT_RESPONDING NO_RESPOND")
_UNSURE = _SILENT | _words("UNKNOWN UNK INVALID INVALID_REG")
_UP = _words(
    "IDLE MIXED MIX ALLOCATED ALLOC COMPLETING COMP PLANNED CLOUD DYNAMIC_NORM DYNAMIC_FUTURE POWERING_UP POWER_UP "
    "RESUME UNDRAIN CLEARED CLEARING"
)
_SUFFIXES = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWER_DOWN", "%": "POWERING_DOWN",
             "$": "MAINT", "@": "REBOOT", "^": "REBOOT", "-": "PLANNED"}  # fmt: skip


def job_state(words: str) -> JobState:
    """Return the state of `RUNNING`, `CANCELLED by 1000`, or of a base state with flags joined by `,` or `+`."""
    states = {
        JOB_STATES.get(word.split(" ")[0], JobState.UNKNOWN) for word in re.split(r"[,+|]", words.upper().strip())
    }
    # COMPLETED+COMPLETING still holds its nodes; PENDING+REQUEUED waits.
    worst = (JobState.UNKNOWN, JobState.CONFIGURING, JobState.SUSPENDED, JobState.RUNNING)
    order: tuple[JobState, ...] = (*worst, *JobState)
    return next(state for state in order if state in states)


def node_state(words: str) -> NodeState:
    """Return the state of `idle`, `mixed*`, `idle+drain`, `IDLE+DRAIN+NOT_RESPONDING`."""
    flags: set[str] = set()
    for word in re.split(r"[,+|]", words.upper().strip()):
        bare = word.rstrip("".join(_SUFFIXES))
        flags |= {bare, *(_SUFFIXES[mark] for mark in word[len(bare) :])}
    if flags & _ASLEEP:
        flags -= _SILENT  # a node that is powered down cannot respond
    kinds = {NodeState.DOWN: _DOWN, NodeState.DRAINED: _DRAINED, NodeState.UNKNOWN: _UNSURE, NodeState.ASLEEP: _ASLEEP}
    for state, kind in kinds.items():
        if flags & kind:
            return state
    return NodeState.UP if flags <= _UP else NodeState.UNKNOWN


Record = TypeVar("Record")
#: Divides the fields of a row. Marks in its place would make a row three times as long, and different in each answer.
SEPARATOR = "\x1f"


def draw_mark() -> str:
    """Return an unpredictable word of characters that mean nothing in a format."""
    return f"@{secrets.token_hex(8)}@"


def format_of(fields: Sequence[str], mark: str) -> list[str]:
    """Return the options that print these fields, with a separator between them and the mark after the last."""
    ends = [SEPARATOR] * (len(fields) - 1) + [mark]
    return [f"--Format={','.join(f'{field}:0{end}' for field, end in zip(fields, ends, strict=True))}"]


def split_rows(text: str, mark: str, width: int) -> list[str]:
    """Return the rows of what `format_of` prints, their fields still joined. Raises ValueError if it was cut off."""
    rows = text.split(f"{mark}\n")
    last = rows.pop()
    if last.endswith(mark):
        rows.append(last.removesuffix(mark))
    elif last.strip():
        raise ValueError(f"{width} fields and a mark were expected")
    return rows


class IncrementalTable(Generic[Record]):
    """A table that is read again and again; only rows that have changed are converted.

    Args:
        command: The command that prints it, such as `squeue --all`, without its fields.
        fields: Names of the fields, in order; the first names a row in reports. Those that a user writes come last.
        read: Converts one row, field -> text without blanks around it, to a record. What it raises makes the row
            unreadable.
        subject: What a row describes, for reports.
        form: Returns the options that print the fields, with a mark.
        split: Returns the rows of what is printed then; see `split_rows`.
        stand_in: Returns what is known of an unreadable row; see `read_rows`.
        unreadable: Counts and reports unreadable rows.
        raw: Fields whose blanks are kept.
    """

    def __init__(
        self,
        command: str,
        fields: Sequence[str],
        read: Callable[[dict[str, str]], Record],
        subject: str,
        form: Callable[[Sequence[str], str], list[str]] = format_of,
        split: Callable[[str, str, int], list[str]] = split_rows,
        *,
        stand_in: Callable[[dict[str, str]], Record | None] = lambda row: None,
        unreadable: Unreadable | None = None,
        raw: Collection[str] = (),
    ) -> None:
        self._raw = raw
        self._command, self._fields, self._read, self._subject = command.split(), fields, read, subject
        self._form, self._split = form, split
        self._stand_in, self._unreadable = stand_in, unreadable or Unreadable()
        self._rows: list[str] = []
        self._row_records: list[Record | None] = []  # by row
        self._records: list[Record] = []
        self._problems: dict[str, dict[str, str]] = {}  # row -> its name, and why it cannot be read

    def ask(self, run: Callable[[Sequence[str]], str], *options: str, whole: bool = True) -> list[Record]:
        """Run the command with further options and return the records in order. Raises AdapterError.

        Args:
            run: Runs a command and returns what it printed.
            options: Options that select rows.
            whole: The answer shows all rows. It is the very same list of the very same records while nothing changes.
        """
        mark = draw_mark()
        return self.parse(run([*self._command, *self._form(self._fields, mark), *options]), mark, whole=whole)

    def parse(self, text: str, mark: str, *, whole: bool = True) -> list[Record]:
        """Return the records of an answer with this mark, as `ask` does. Raises ParseError.

        O(length) for finding the rows and comparing them with those of the last answer, both fast, plus O(new rows).
        """
        try:
            rows = self._split(text, mark, len(self._fields))
            if not whole:
                problems: dict[str, dict[str, str]] = {}
                records = [record for row in rows if (record := self._read_row(row, problems)) is not None]
            else:
                records = self._update(rows)
                problems = self._problems
        except ValueError:
            program, tail = self._command[0], text[-200:].replace(mark, "|").replace(SEPARATOR, "|")
            why = f"{program}: the table is cut off or garbled"
            raise ParseError(why, argv=(program,), stderr_tail=tail) from None
        reports = {name: why for row_problems in problems.values() for name, why in row_problems.items()}
        self._unreadable.note(self._subject, reports, whole=whole)
        return records

    def _update(self, rows: list[str]) -> list[Record]:
        """Take the rows of a whole answer; convert those that the last one did not have."""
        records, at, changed = list[Record | None](), 0, False
        problems = self._problems.copy()
        for old, new in differences(self._rows, rows):
            changed = True
            records += self._row_records[at : old.start]
            converted = dict(zip(self._rows[old], self._row_records[old], strict=True))
            for row in rows[new]:
                records.append(converted[row] if row in converted else self._read_row(row, problems))
            at = old.stop
        if changed:
            records += self._row_records[at:]
            if problems:
                present = frozenset(rows)
                problems = {row: problem for row, problem in problems.items() if row in present}
            self._rows, self._row_records, self._problems = rows, records, problems
            self._records = [record for record in records if record is not None]
        return self._records

    def _read_row(self, text: str, problems: dict[str, dict[str, str]]) -> Record | None:
        """Return the record of a row, if any; note why it cannot be read. Raises ValueError for a row that is cut."""
        values = text.split(SEPARATOR)
        if len(values) < len(self._fields):
            raise ValueError(text)
        pairs = zip(self._fields, values, strict=False)
        row = {field: text if field in self._raw else clean(text.strip()) for field, text in pairs}
        row_problems: dict[str, str] = {}

        def read(row: dict[str, str]) -> Record:
            if len(values) > len(self._fields):
                raise ValueError("a text in it has the separator of the table")
            return self._read(row)

        records = read_rows([row], read, self._stand_in, lambda row: row[self._fields[0]], row_problems)
        if row_problems:
            problems[text] = row_problems
        return next(iter(records), None)
