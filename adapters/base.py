"""What every resource manager looks like to the daemon: one protocol, one error family.

Rule: an adapter observes and carries out; it never decides. `apply` is idempotent under the action's key:
applying the same Start twice starts the job once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..simulate.booked import Booked
from ..simulate.errors import PilotfishError
from ..simulate.plan import Action
from ..simulate.snapshot import JobView, Snapshot
from .load import Load

#: Kinds of errors with which an adapter does not ask at all, for the sake of the resource manager.
NOT_SENT = frozenset(("open", "budget"))


class AdapterError(PilotfishError):
    """The resource manager did not do as asked.

    Args:
        message: one sentence for a person.
        transient: whether asking again later may help.
        kind: a short word for the metrics label: spawn, read, parse, refused, unreachable, ...
        argv: the command that failed, where there was one.
        exit_code: its exit code.
        stderr_tail: the end of what it said.
    """

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        kind: str = "failed",
        argv: Sequence[str] = (),
        exit_code: int | None = None,
        stderr_tail: str = "",
    ) -> None:
        self.transient, self.kind, self.argv = transient, kind, tuple(argv)
        self.exit_code, self.stderr_tail = exit_code, stderr_tail
        super().__init__(message)


class ParseError(AdapterError):
    """The resource manager's answer could not be read."""

    def __init__(self, message: str, *, argv: Sequence[str] = (), stderr_tail: str = "") -> None:
        super().__init__(message, transient=False, kind="parse", argv=argv, stderr_tail=stderr_tail)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a resource manager can do, so that nobody has to ask for its name.

    Args:
        starts: it starts jobs itself when told to (as against releasing held ones).
        usage: it reports what jobs used.
        books: its accounting can be asked for that (see `Adapter.books`).
        virtual_time: its clock is not the wall clock; `advance` moves it.
        events: `wait` notices what happens; else it only sleeps, and the world has to be looked at.
        resolution_s: times of jobs are whole multiples of this.
        begins_within_s: how long a job that was placed may take to begin.
        offers: its users hand jobs to us through it (see `JobView.offered`).
        power: idle nodes can be powered down (`PowerOff`), and wake by themselves.
    """

    starts: bool = True
    usage: bool = False
    books: bool = False
    virtual_time: bool = False
    events: bool = True
    resolution_s: float = 0.0
    begins_within_s: float = 0.0
    offers: bool = False
    power: bool = False


class Adapter(Protocol):
    """A resource manager."""

    @property
    def name(self) -> str:
        """Short name, used as the metrics label."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What a person should know of how it works here, one sentence each (said once at start)."""
        ...

    def snapshot(self) -> Snapshot:
        """Read the world once. Raises AdapterError; never returns an empty world for an unreadable one."""
        ...

    def look_again(self, keys: Collection[str]) -> Snapshot:
        """Read the world once more before jobs are touched; what has to do with other jobs may be as it was."""
        ...

    def recall(self, since: Mapping[str, float]) -> Mapping[str, JobView] | None:
        """What is on record of jobs that a snapshot does not show any more, those that are not known left out.

        Args:
            since: by key, a time before which the job cannot have been started, epoch seconds.

        Returns:
            None where no such record is kept. A job that is on record and has not ended is UNKNOWN.

        Raises:
            AdapterError: the record cannot be read now.
        """
        ...

    def books(self, since: Mapping[str, float]) -> Mapping[str, Booked] | None:
        """What the resource manager's accounting has of what jobs used that have ended, where `usage` does not tell.

        Args:
            since: as for `recall`.

        Returns:
            None where no books are kept. A job that is not in them, or not to its end, is left out.

        Raises:
            AdapterError: they cannot be read now.
        """
        ...

    def load(self) -> Load | None:
        """What was asked of the resource manager so far, where that is counted here; any thread may ask."""
        ...

    def apply(self, action: Action) -> None:
        """Carry out one action, idempotently. Raises AdapterError when it was refused or is not certain.

        A Release where nothing can be pinned does nothing.
        """
        ...

    def preview(self, action: Action) -> Sequence[str]:
        """The commands that `apply` would run now, as a person would type them; empty where there are none.

        Changes nothing.
        """
        ...

    def wait(self, timeout_s: float) -> bool:
        """Block until something may have changed, at most `timeout_s`; True if something did."""
        ...

    def fileno(self) -> int | None:
        """A descriptor that is readable when `wait` would return, for a poller; None: there is none."""
        ...

    def forget(self, key: str) -> None:
        """Let go of what is kept of a job that has ended; a no-op where that happens by itself."""
        ...

    def output(self, key: str) -> tuple[Path, Path] | None:
        """Files of a job's stdout and stderr; None where they are not known here."""
        ...

    def close(self) -> None:
        """Let go of connections and files; jobs go on."""
        ...
