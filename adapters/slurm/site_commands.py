"""Read a running Slurm as an ordinary operator, into the texts of the files of a site.

Rule: every command only reads, and is asked once. What Slurm refuses is missing, with the reason; without the
configuration nothing else is asked. The texts are as the commands print them, with times in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from ...formats.site.site_file_list import CONFIGURATION, PRESENT, SITE_FILES, is_needed
from ...formats.site.site_texts import SiteTexts
from ..base import AdapterError
from .transport.runner import Runner

Stream = Callable[[Sequence[str]], Iterator[bytes]]
DAY_S = 86_400.0
#: Columns of SACCT_COLUMNS that tell a record from all others: ids, index in the database, user, account.
KEY_COLUMNS = 5
_BEGIN = re.compile(rb"\d+[\d_+\[\],:%.-]*\|\d+\|\d+\|")


def site_texts(run: Runner, names: Sequence[str] = PRESENT, since: float = 0.0, until: float = 0.0) -> SiteTexts:
    """Ask Slurm for the files of a site; one request for each.

    Args:
        run: runs a command and returns what it printed.
        names: files of `SITE_FILES`.
        since: begin of the period, epoch seconds; only for files whose command has one.
        until: its end.

    Raises:
        AdapterError: the configuration cannot be read, or this process is to stop.
    """
    site = SiteTexts()
    for name in sorted(names, key=lambda name: name != CONFIGURATION):
        if not is_needed(name, site.texts.get(CONFIGURATION, "")):
            continue
        argv = SITE_FILES[name].argv(slurm_time(since), slurm_time(until))
        try:
            text = run(argv)
        except AdapterError as error:
            if name == CONFIGURATION or error.kind == "stopped":
                raise
            site.missing[name] = str(error)
            continue
        site.texts[name] = text
    return site


def accounting_records(stream: Stream, since: float, until: float) -> Iterator[bytes]:
    """Yield the header and then the records of sacct, each once and as printed, one request for each day.

    Only the keys of two days are kept in memory.

    Args:
        stream: runs a command and yields what it prints.
        since: begin of the period, epoch seconds.
        until: its end.

    Raises:
        AdapterError: accounting cannot be read.
    """
    last_day, begin = set[bytes](), since
    while begin < until:
        end, today = min(begin + DAY_S, until), set[bytes]()
        argv = SITE_FILES["sacct.psv"].argv(slurm_time(begin), slurm_time(end))
        for number, record in enumerate(_records(stream(argv))):
            if number == 0:
                if begin == since:
                    yield record
                continue
            key = b"|".join(record.split(b"|", KEY_COLUMNS)[:KEY_COLUMNS])
            today.add(key)
            if key not in last_day:
                yield record
        last_day, begin = today, end


def _records(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the header, and each record with the line ends in it."""
    record = list[bytes]()
    for line in _lines(pieces):
        if record and _BEGIN.match(line):
            yield b"".join(record)
            record.clear()
        record.append(line)
    if record:
        yield b"".join(record)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines with their ends."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest


def slurm_time(seconds: float) -> str:
    """Return a time as Slurm's commands read it where TZ=UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
