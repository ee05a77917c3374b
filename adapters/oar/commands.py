"""Runs OAR's commands and `psql`, and sends OAR the notification that makes it look at its queues.

Rule: an `oarsub` that reports that the server is away has still submitted the job, and one that gets no answer may
still submit it. Both are transient errors; afterwards, the job is looked up before it is submitted again. A question
about a user's text has a time limit of its own, its caller does not wait for the answer, and the breaker learns nothing
from it.
Source: behaviour of OAR 2.5.9 with its server, or its database, away.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from ..base import AdapterError, Load, inherited
from ..request_guard import RequestGuard
from ..run_command import BackgroundCommand, run_command

#: Words of `psql`, and of OAR's commands, for a database or server that cannot be reached, or gave up.
_AWAY = (
    "could not connect",
    "connection to server",
    "server closed the connection",
    "the database system is",
    "statement timeout",
    "Connection refused",
    "Cannot connect to database",
    "Can't connect to",
)
#: Errors of `psql` that another attempt does not mend.
_WRONG = ("password", "no pg_hba.conf entry", "permission denied", "does not exist", "timeout expired")
#: `oarsub` and `oardel` when Almighty cannot be reached: what they asked for is in the database.
SERVER_AWAY = 9
_NOISE = re.compile(
    r"\[(?!ERROR\])\w[\w ]*\]|Generate a job key|#|DBD::|DBI |at |LINE \d+:|[^A-Za-z]*$|.* at /\S+ line \d+"
)
_ERROR = re.compile(r"\bERROR:\s+([^\n]*?)(?: at /\S+ line \d+\.)?(?:\n|$)")
#: What PostgreSQL says of a statement that ran out of time.
_LATE = "statement timeout"
POKE_S = 1.0
#: Time limits of a user's properties, seconds: in PostgreSQL, and of the command that asks for it, in any database.
PROPERTIES_S, QUESTION_S = 1.0, 5.0
_NEEDS = "the OAR adapter needs OAR's commands (package oar-user)"
#: Requests in a minute where nothing else is said, and calls that change something.
PER_MINUTE, CHANGES = 3000.0, frozenset(("submit", "cancel"))


class OarCommands:
    """Runs commands.

    Args:
        timeout_s: Time limit of a command, seconds.
        prefix: Words before OAR's commands, such as those of a change of user.
        folder: Folder in which jobs begin; None: the user's home.
        per_minute: Most requests in a minute.
    """

    def __init__(
        self, timeout_s: float, prefix: Sequence[str] = (), folder: Path | None = None, per_minute: float = PER_MINUTE
    ) -> None:
        self.timeout_s, self._prefix = timeout_s, tuple(prefix)
        self.folder = folder if folder is not None else Path("~").expanduser()
        variables = {name: value for name, value in inherited(os.environ).items() if not name.startswith("PG")}
        self._environment = {**variables, "LC_ALL": "C", "PWD": str(self.folder)}
        self._guard = RequestGuard(per_minute, (("oar", "OAR"),))

    def load(self) -> Load:
        """Return the requests so far."""
        return self._guard.load()

    def psql(self, argv: Sequence[str], environment: Mapping[str, str]) -> str:
        """Return what `psql` printed. Raises AdapterError."""
        return self._guard.read("world", self._psql, argv, environment)

    def _psql(self, argv: Sequence[str], environment: Mapping[str, str]) -> str:
        needs = "the OAR adapter reads OAR's database with it (package postgresql-client)"
        result = run_command(argv, self.timeout_s, {**self._environment, **environment}, needs, Path("/"), reads=True)
        if result.exit_code:
            message = " ".join(result.stderr.split())[-300:]
            wrong = any(word in message for word in _WRONG)
            away = not wrong and any(word in message for word in _AWAY)
            raise result.failure(argv[:1], f"OAR's database: {message}", "", away=away)
        return result.text

    def oar(self, call: str, argv: Sequence[str], *, accepted: Sequence[int] = (0,)) -> str:
        """Return what a command of OAR's printed. Raises AdapterError.

        Args:
            call: What it is for, in the counts of requests.
            argv: The command.
            accepted: Exit codes of a success.
        """
        send = self._guard.write if call in CHANGES else self._guard.read
        return send(call, self._oar, argv, accepted, reads=call not in CHANGES)

    def ask_for_nodes(self, properties: str, clock: Callable[[], float]) -> NodesQuestion | None:
        """Begin to ask for the nodes that properties allow; None: not now. Raises AdapterError.

        Args:
            properties: A user's text, in SQL.
            clock: Seconds, monotonic.
        """
        if not self._guard.may_ask_aside():
            return None
        limits = f"-c statement_timeout={PROPERTIES_S * 1000:.0f} -c default_transaction_read_only=on"
        argv = [*self._prefix, "oarnodes", "-J", "--sql", properties]
        command = BackgroundCommand(argv, {**self._environment, "PGOPTIONS": limits}, _NEEDS, Path("/"))
        return NodesQuestion(command, clock, partial(self._guard.note_aside, "properties"))

    def _oar(self, argv: Sequence[str], accepted: Sequence[int], *, reads: bool) -> str:
        folder = self.folder if self.folder.is_dir() else None
        words = [*self._prefix, *argv]
        result = run_command(words, self.timeout_s, self._environment, _NEEDS, folder, reads=reads)
        if result.exit_code not in accepted:
            output = f"{result.stdout.decode(errors='replace')}\n{result.stderr}"
            away = result.exit_code == SERVER_AWAY or any(word in output for word in _AWAY)
            why = readable(output) or f"exit code {result.exit_code}"
            raise result.failure(argv, f"{argv[0]}: {why}", output, away=away)
        return result.text


class NodesQuestion:
    """A question for the nodes that properties allow, whose answer is awaited without blocking.

    Args:
        command: The command that asks.
        clock: Seconds, monotonic.
        note: Called once with the outcome and the seconds that it took.
    """

    def __init__(
        self, command: BackgroundCommand, clock: Callable[[], float], note: Callable[[str, float], None]
    ) -> None:
        self._command, self._clock, self._note, self._began = command, clock, note, clock()

    def poll(self) -> str | None:
        """Return the answer, as `oarnodes -J` prints it; None: not yet.

        Raises:
            AdapterError: The properties take too long (`timeout`), or are wrong (`refused`); transient: OAR's database
                cannot be reached.
        """
        elapsed_s, ended = self._clock() - self._began, self._command.poll()
        if ended is None and elapsed_s <= QUESTION_S:
            return None
        late = ended is None
        stderr = self._command.abandon() if ended is None else ended.stderr
        outcome, answer = "ok", "" if ended is None else ended.text
        try:
            if _LATE in stderr:
                raise AdapterError("not in time", kind="timeout")
            if any(word in stderr for word in (*_AWAY, "FATAL:")) or (ended is not None and ended.exit_code < 0):
                raise AdapterError(readable(stderr), transient=True, kind="unreachable")
            if late:
                raise AdapterError("not in time", kind="timeout")
            if _ERROR.search(stderr) or (ended is not None and ended.exit_code):  # the exit code of a wrong one is 0
                raise AdapterError(readable(stderr) or "oarnodes failed", kind="refused")
            return answer
        except AdapterError as error:
            outcome = error.kind
            raise
        finally:
            self._note(outcome, elapsed_s)

    def abandon(self) -> None:
        """Ask no longer."""
        self._command.abandon()
        self._note("void", self._clock() - self._began)


def readable(output: str) -> str:
    """Return the message in the output of an OAR command, without traces and notes."""
    lines = [line.strip().removeprefix("[ERROR] ") for line in output.splitlines()]
    messages = [line for line in dict.fromkeys(lines) if not _NOISE.match(line) and not line.startswith("OAR_JOB")][-2:]
    why = _ERROR.search(output)  # of the database; those after it follow from it
    if why and messages and not any(why[1] in line for line in messages):
        messages.append(why[1])
    return "; ".join(messages)[:300]


def poke(server: tuple[str, int], word: bytes = b"Term\n") -> bool:
    """Ask OAR for a scheduling pass, as oarnotify(1) does; return whether it heard.

    Args:
        server: Host and port of its server.
        word: The notification; b"": none, only to see whether it listens.
    """
    try:
        with socket.create_connection(server, POKE_S) as connection:
            connection.sendall(word)
    except OSError:
        return False
    return True
