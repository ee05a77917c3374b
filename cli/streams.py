"""Standard output and standard error, including readers that close a pipe early (`pilotfish plan ... | head`).

Rule: all text reaches the terminal through these functions (and `Screen.put`, for colours), which escape what could
control a terminal or forge a line: the linter allows `print` nowhere else. A diagnostic is one line, so that a program
can search it; it is broken only on a terminal, between words. A closed pipe is no error: the remaining output is
discarded. Diagnostics that cannot be written change nothing; a result that cannot be written is an error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO


def show(*lines: str) -> None:
    """Print lines on stdout, control characters escaped: each text is one line, whatever it contains."""
    from ..formats.text import clean

    for line in lines:
        print(clean(line), flush=True)


def show_document(text: str) -> None:
    """Print a text of several lines on stdout as it is, but escape control characters other than newline and tab."""
    from ..formats.text import clean_lines

    print(clean_lines(text), end="", flush=True)


def note(*texts: str) -> None:
    """Print lines on stderr, after the output that stdout has so far."""
    print_after("pilotfish: ", *texts)


def warn(*texts: str) -> None:
    """Print warnings on stderr, each different one once."""
    note(*(f"warning: {text}" for text in dict.fromkeys(texts)))


def print_after(head: str, *texts: str) -> None:
    """Print each text on stderr after `head`: on one line, or on a terminal on as many lines as it needs."""
    from ..formats.text import clean

    columns = _columns_of_stderr()
    for text in texts:
        if columns is None or len(head) + len(text) <= columns:
            print_diagnostic(head + text)
        else:
            from textwrap import wrap

            after = " " * len(head)
            lines = wrap(clean(text), columns, initial_indent=head, subsequent_indent=after,
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip
            print_diagnostic(*lines)


def _columns_of_stderr() -> int | None:
    """Return the width of the terminal that shows stderr, in columns; None: it is no terminal, or has no width."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or None
    except (OSError, ValueError):
        return None


def hint(*words: str) -> None:
    """Print a command on stderr, to be copied; wider than 80 columns, it is broken between words as a shell allows.

    Args:
        words: each stays whole, such as "--part second-half" or a file.
    """
    lines = ["  " + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) < _HINT_COLUMNS:
            lines[-1] += f" {word}"
        else:
            lines.append(f"    {word}")
    print_diagnostic(*(f"{line} \\" for line in lines[:-1]), lines[-1])


#: Columns of a line of `hint`, without what continues it.
_HINT_COLUMNS = 77
#: Priorities of syslog(3) for lines of stderr that the journal gets, by how they begin.
_PRIORITIES = {"pilotfish: error:": "<3>", "pilotfish: warning:": "<4>"}


def print_diagnostic(*lines: str) -> None:
    """Print lines on stderr with control characters escaped; ignore a stderr that cannot be written."""
    from ..formats.text import clean

    with suppress(OSError):
        sys.stdout.flush()
    try:
        for line in lines:
            print(f"{_priority(line)}{clean(line)}", file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def _priority(line: str) -> str:
    """Return the prefix that gives an error or a warning its priority in the journal, "" on any other stderr."""
    if "JOURNAL_STREAM" not in os.environ:
        return ""
    from ..daemon.systemd import in_journal

    kind = next((prefix for begin, prefix in _PRIORITIES.items() if line.startswith(begin)), "")
    return kind if kind and in_journal() else ""


def open_closed_streams() -> None:
    """Open /dev/null as each standard stream that is closed (`>&-`), so that no other file gets its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
            if null != number:
                os.close(null)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


@contextmanager
def ignore_closed_stdout() -> Iterator[None]:
    """Continue after the reader of stdout has closed it; discard the remaining output."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    except SystemExit as stop:  # raised by rich for a closed pipe
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        discard(sys.stdout)


def discard(stream: IO[str]) -> None:
    """Discard all further output of `stream`, including the interpreter's last flush."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
    with suppress(OSError):
        stream.flush()


@contextmanager
def print_policy_traceback() -> Iterator[None]:
    """Print the traceback of an exception in the user's code; the PolicyError goes on."""
    from ..simulate.errors import PolicyError

    try:
        yield
    except PolicyError as error:
        import importlib
        import traceback

        from ..formats import user_policy
        from ..simulate.queue_policies import policy_calls

        before = (user_policy.__file__, policy_calls.__file__, importlib.__file__, "<frozen importlib")
        cause = error.__cause__
        if cause is not None:
            place = cause.__traceback__
            while place is not None and place.tb_frame.f_code.co_filename.startswith(before):
                place = place.tb_next
            note(f"the user's code of policy {error.policy} raised an exception:")
            print_diagnostic(*"".join(traceback.format_exception(type(cause), cause, place)).splitlines())
        raise
