"""Runs Slurm's commands: one at a time, with a time limit, and with errors that name the one who must act.

Rule: a command that failed or timed out may have changed nothing, or may still do so later; a caller that changes
something reads before it tries again. Output on stderr counts even if a command exits with 0. A user's text is bytes:
bytes that are not UTF-8 become surrogates, and no line end is changed.
Source: behaviour of Slurm 22.05 with its controller, munge or accounting away.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence

from ....formats.text import count
from ...base import inherited
from ...run_command import EndedCommand, run_command, stream_command

Runner = Callable[[Sequence[str]], str]

#: Words on stderr of a controller, or of accounting, that cannot be reached or cannot identify the caller.
_AWAY = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Zero Bytes were transmitted",
    "Protocol authentication error",
    "Munge encode failed",
    "Invalid authentication credential",
    "Transport endpoint is not connected",
    "Slurm temporarily unable to accept job",
    "Slurm backup controller in standby",
    "Resource temporarily unavailable",
    "Unexpected message received",
    "Message receive failure",
    "Problem talking to the database",
    "DBD_GET_JOBS_COND failure",
)
#: Beginnings of a line that only a developer of Slurm needs, such as `error: _parse_next_key: `.
_FUNCTIONS = re.compile(r"^(?:(?:error|fatal|\w+_\w*(?: error)?): )+")
#: Of the lines that a command prints on stderr, how many are shown, and how many characters of each.
MOST_LINES, MOST_OF_A_LINE = 4, 200
#: Characters of a list of tasks that `squeue` prints; a longer one is cut.
LONGEST_TASK_LIST = 4096
ENVIRONMENT = {
    "TZ": "UTC",
    "LC_ALL": "C",
    "SLURM_TIME_FORMAT": "standard",
    "SLURM_BITSTR_LEN": str(LONGEST_TASK_LIST),
}
_NEEDS = "the Slurm adapter needs Slurm's commands"
#: Commands that change nothing, besides `scontrol show`.
_READS = frozenset(("squeue", "sinfo", "sacct", "sdiag", "sacctmgr", "sprio", "sshare"))
_MEANT_FOR_USERS = ("SQUEUE_", "SINFO_", "SACCT_", "SBATCH_", "SLURM_CLUSTERS")
#: Variables that would make a user's `sbatch` submit something else than one job, or change its answer.
_NOT_EVEN_FOR_USERS = ("SBATCH_WAIT", "SBATCH_ARRAY_INX", "SBATCH_CLUSTERS", "SLURM_CLUSTERS", "SBATCH_DEBUG")


class CommandRunner:
    """Runs commands.

    Args:
        timeout_s: Time limit of a command, seconds; a controller that is down answers after 9 to 10.
        as_user: Run in the user's own environment, which submitted jobs inherit.

    Attributes:
        commands: How many it has run.
    """

    def __init__(self, timeout_s: float = 15.0, *, as_user: bool = False) -> None:
        self.timeout_s, self.commands = timeout_s, 0
        left_out = _NOT_EVEN_FOR_USERS if as_user else _MEANT_FOR_USERS
        variables = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
        token = {key: value for key, value in variables.items() if key == "SLURM_JWT"}  # Slurm's commands may need it
        self._environment = variables if as_user else {**inherited(variables), **token, **ENVIRONMENT}

    def __call__(self, argv: Sequence[str]) -> str:
        """Return what the command printed. Raises AdapterError."""
        self.commands += 1
        reads = argv[0] in _READS or "show" in argv[1:3]
        result = run_command(argv, self.timeout_s, self._environment, _NEEDS, reads=reads)
        _check(argv, result)
        return result.text

    def stream(self, argv: Sequence[str]) -> Iterator[bytes]:
        """Yield what a command prints; it must change nothing. Raises AdapterError, also after it has printed."""
        self.commands += 1
        _check(argv, (yield from stream_command(argv, self.timeout_s, self._environment, _NEEDS)))


def _check(argv: Sequence[str], result: EndedCommand) -> None:
    """Raise the error of a command that failed."""
    away = any(words in result.stderr for words in _AWAY)
    if result.exit_code or away:
        why = readable(argv[0], result.stderr, last=away) or f"exit code {result.exit_code}"
        raise result.failure(argv, f"{argv[0]}: {why}", result.stderr, away=away)


def readable(command: str, stderr: str, *, last: bool = False) -> str:
    """Return what a command printed on stderr as one sentence: each line once, without names of Slurm's functions.

    Args:
        command: its name, which begins most lines.
        stderr: what it printed.
        last: keep only the last line.
    """
    lines = [
        _FUNCTIONS.sub("", line.removeprefix(f"{command}: ").strip())[:MOST_OF_A_LINE] for line in stderr.splitlines()
    ]
    messages = [*dict.fromkeys(filter(None, lines[-1:] if last else lines))]
    if len(messages) > MOST_LINES:
        messages[1 : 2 - MOST_LINES] = [f"... {count(len(messages) - MOST_LINES + 1, 'more line')} ..."]
    return "; ".join(messages)
