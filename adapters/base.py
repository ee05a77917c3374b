"""The protocols that connect a resource manager to the daemon, and their errors.

Rule: an adapter observes and carries out; it never decides. Every action is idempotent under its key: submitting a job
twice starts it once.

To add a resource manager, derive a class from `Adapter`, which puts the small protocols together. Implement `name`,
`snapshot` and `wait`, and the actions that it can carry out; every other member has a default. Offer it as an entry
point (see `registry`) and run the contract tests on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from ..formats.hostlist import fold
from ..formats.site.site_texts import SiteTexts
from ..simulate.errors import PilotfishError
from ..simulate.model.accounting_record import AccountingRecord
from ..simulate.model.observed_queue import ObservedQueue
from ..simulate.model.plan import Action, Cancel, Place, PowerOff, PowerOn, Release, Submit, SubmitAhead
from ..simulate.model.snapshot import JobView, Snapshot


class BreakerState(StrEnum):
    """State of a circuit breaker: CLOSED passes all requests, OPEN none, HALF_OPEN a single one as a test."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


@dataclass(frozen=True, slots=True)
class Load:
    """Requests to a resource manager since the start, for metrics.

    Args:
        requests: Number of requests by call and outcome: `ok`, or the kind of the AdapterError (`open` and `budget`:
            not sent).
        seconds: Number of requests sent and seconds waited for their answers, by call.
        breakers: State of the circuit breaker of each service.
        budget_left: Requests that may be sent now without a pause.
        unreadable: Number of rows of the newest answers that cannot be read, by what they describe.
        delays: Number of jobs and sum of a delay of theirs, seconds, by kind.
        unknown_ends: Number of jobs that ended in a way that is not known.
        closed: Queues in which no job starts, though jobs of theirs are handed over.
    """

    requests: Mapping[tuple[str, str], int] = field(default_factory=dict)
    seconds: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    breakers: Mapping[str, BreakerState] = field(default_factory=dict)
    budget_left: float = 0.0
    unreadable: Mapping[str, int] = field(default_factory=dict)
    delays: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    unknown_ends: int = 0
    closed: Sequence[str] = ()


#: Kinds of errors with which an adapter sends no request, to protect the resource manager.
NOT_SENT = frozenset(("open", "budget"))
#: All other kinds of errors of the built-in adapters. Their counts begin at 0, so that a rate sees the first error.
ERROR_KINDS = (
    "absent", "clock", "closed", "failed", "gone", "missing", "moved", "parse", "read", "refused", "rights", "spawn",
    "state", "stopped", "timeout", "token", "unreachable", "unrecorded", "unsupported",
)  # fmt: skip


class AdapterError(PilotfishError):
    """A request to the resource manager failed.

    Args:
        message: One sentence for a person.
        transient: Whether another attempt later may succeed.
        kind: A short word for the metrics label, of ERROR_KINDS or NOT_SENT where one fits.
        argv: The command that failed, if there was one.
        exit_code: Its exit code.
        stderr_tail: The end of its stderr.

    Attributes:
        again_s: Seconds until another attempt makes sense, as far as it is known.
    """

    again_s = 0.0

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
    """The resource manager's answer could not be parsed."""

    def __init__(self, message: str, *, argv: Sequence[str] = (), stderr_tail: str = "") -> None:
        super().__init__(message, transient=False, kind="parse", argv=argv, stderr_tail=stderr_tail)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a resource manager, so that the daemon never checks its name.

    Args:
        accounting: Its accounting knows what ended jobs used, and snapshots do not; see `Accounting`.
        virtual_time: Its clock is not the wall clock; time passes only in `wait` and `advance`.
        events: `wait` returns when something happens; otherwise it only sleeps, and the daemon polls.
        resolution_s: Times of jobs are whole multiples of this, seconds.
        begins_within_s: Longest time from placing a job to its start, seconds.
        launch_s: Usual time from placing a job to its start, seconds.
        offers: Its users hand jobs over to pilotfish through it; see `HandOver`.
        pins_stay: A pin outlives us, and a requeue of its job; see `HandOver`.
        power: Idle nodes can be powered down and up, and wake for a job; see `PowerControl`.
        here: Its jobs run on this machine.
        late_s: Longest time after which a submission that was not answered may still be carried out, seconds.
        ahead_s: How long before its start a job of our own may be submitted, seconds; 0: not before; see `Launch`.
    """

    accounting: bool = False
    virtual_time: bool = False
    events: bool = True
    resolution_s: float = 0.0
    begins_within_s: float = 0.0
    launch_s: float = 0.0
    offers: bool = False
    pins_stay: bool = False
    power: bool = False
    here: bool = False
    late_s: float = 0.0
    ahead_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Activity:
    """Counters of events. While a counter is unchanged, none of its events has happened.

    Args:
        arrivals: Jobs that were submitted or changed: one of them may be handed over.
        others: All other events of jobs and nodes, such as starts and ends.
        nodes: Nodes that reported, as they also do when nothing has happened.
    """

    arrivals: Hashable
    others: Hashable = ()
    nodes: Hashable = ()


class Observe(Protocol):
    """The part that every adapter has: read the nodes and jobs.

    Every call raises AdapterError if the resource manager cannot be reached or refuses.
    """

    @property
    def name(self) -> str:
        """Short name, used as the metrics label. Required."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the resource manager. Default: it reports events, and nothing else."""
        return Capabilities()

    @property
    def notes(self) -> Sequence[str]:
        """Sentences that the daemon logs once when it starts, such as a missing permission. Default: none.

        To assign it in `__init__`, declare `notes: Sequence[str] = ()` in the class.
        """
        return ()

    def keep_state(self, folder: Path, *, read_only: bool) -> None:
        """Use a directory for state that must outlive this process. Default: there is no such state.

        Args:
            folder: Directory of this adapter alone; made when it is first needed.
            read_only: Change nothing there (a dry run).

        Raises:
            ConfigError: The directory cannot be used.
        """
        return

    def snapshot(self) -> Snapshot:
        """Read all nodes and jobs. Required.

        Returns:
            A snapshot with a higher version and no earlier time than the one before.

        Raises:
            AdapterError: The state cannot be read; never return an empty snapshot instead.
        """
        ...

    def settle(self, timeout_s: float) -> None:
        """Wait, at most so many seconds, for what a snapshot only begins to ask for. Default: it asks for nothing.

        Only a caller that takes a single snapshot needs it.
        """
        return

    def refresh(self, keys: Collection[str]) -> Snapshot:
        """Read again the jobs that will be changed; other jobs may be as before. Default: a new snapshot."""
        return self.snapshot()

    def queue(self) -> ObservedQueue | None:
        """Return the whole queue as of the last snapshot, with one small request at most. Default: None, unknown."""
        return None

    def site(self) -> SiteTexts | None:
        """Go on to read what the resource manager's own scheduler rests on; never wait for it.

        Returns:
            Its texts once they are complete and new; before, none, and why if they cannot be read. Default: None, its
            rules are not known.
        """
        return None

    def recall(self, since: Mapping[str, float]) -> Mapping[str, JobView] | None:
        """Look up jobs that have left the queue. Unknown jobs are omitted. Default: no record is kept.

        Args:
            since: Key -> time before which the job cannot have started, epoch seconds.

        Returns:
            Key -> job; a job on record that has not ended, and is not `restartable`, is UNKNOWN. None: no record is
                kept.
        """
        return None

    def load(self) -> Load | None:
        """Return counts of the requests so far. Safe to call from any thread. Default: None, nothing is counted."""
        return None

    def wait(self, timeout_s: float) -> bool:
        """Block until something may have changed, at most `timeout_s` seconds; return whether it did. Required."""
        ...

    def fileno(self) -> int | None:
        """Return a descriptor that is readable when `wait` would return, for a poller. Default: None."""
        return None

    def timer_s(self) -> float:
        """Return after how many seconds a poller must call `wait` in any case. Default: inf, never."""
        return math.inf

    def close(self) -> None:
        """Close connections and files; jobs go on. Default: nothing is open."""
        return


class Count(Protocol):
    """Counters of events, which are much cheaper than a snapshot, so that snapshots are read only for a reason.

    They may miss events, so the daemon also reads a snapshot from time to time.
    """

    def activity(self) -> Activity | None:
        """Read the counters, in one small request. Default: None, no counters: each cycle reads all."""
        return None

    def next_change(self, now: float) -> float:
        """Return when the last snapshot, of `now`, changes by time alone, epoch seconds. Default: inf, never."""
        return math.inf


class Launch(Protocol):
    """Jobs of our own. The resource manager stores their keys, so that a repeated action does not run a job twice."""

    def submit(self, action: Submit) -> None:
        """Start a job; do nothing if one was ever started under its key. Default: refused."""
        raise AdapterError(f"{action.key}: no jobs can be submitted through this adapter", kind="refused")

    def submit_ahead(self, action: SubmitAhead) -> None:
        """Submit a job that a `Submit` under its key starts later, sooner than one that is only submitted then.

        It is needed where `Capabilities.ahead_s` is above 0. Meanwhile its view is `ahead` and `restartable`, and a
        `Cancel` removes it. Without us the resource manager starts it some time after the jobs before it have ended; it
        does nothing then if one of them has not completed, and is `restartable` again. Default: refused.
        """
        raise AdapterError(f"{action.key}: no jobs can be submitted ahead through this adapter", kind="refused")

    def cancel(self, action: Cancel) -> None:
        """End a job of our own; do nothing if it has ended or is unknown. Default: refused."""
        raise AdapterError(f"{action.key}: no jobs can be cancelled through this adapter", kind="refused")

    def forget(self, key: str) -> None:
        """Drop the records of an ended job. Raises AdapterError if it has not ended. Default: nothing is kept."""
        return

    def output(self, key: str) -> tuple[Path, Path] | None:
        """Return the files of a job's stdout and stderr. Default: None, they are unknown."""
        return None


class HandOver(Protocol):
    """Jobs of the resource manager's users, who hand them over to us (`JobView.offered`).

    Such a job is held by a deadline that the resource manager enforces, or a heartbeat (`keep_holding`): without us it
    starts. A pin is a hold, too. If pins outlive the adapter, its module has a function `reap` that removes them; see
    `registry`.
    """

    @property
    def hand_over_by(self) -> str:
        """A command by which a user hands a job over. Default: none is shown."""
        return ""

    def place(self, action: Place) -> None:
        """Pin a job to nodes and end its hold, so that it starts there within `begins_within_s`. Default: refused.

        It does nothing if the job has begun, and is refused if the job is not handed over or must wait.
        """
        raise AdapterError(f"{action.key}: no jobs can be placed through this adapter", kind="refused")

    def keep_holding(self, until: float) -> None:
        """Continue to hold jobs until this time, epoch seconds of the resource manager, or until a later call.

        A live daemon calls it after each cycle that saw the cluster. A dry run, and a command that only reads, never
        do. Default: nothing is needed, because the resource manager itself enforces each job's deadline.
        """
        return

    def note_gain(self, key: str, gain_s: float) -> None:
        """Learn the seconds that holding a job to choose its nodes has gained, for similar jobs. Default: ignored."""
        return

    def release(self, action: Release) -> None:
        """Clear the pin of a job that has not started, or end the hold of a job for good. Default: nothing is held."""
        return


class Accounting(Protocol):
    """The resources that ended jobs used, if snapshots do not contain them."""

    def usage(self, since: Mapping[str, float]) -> Mapping[str, AccountingRecord] | None:
        """Look up what ended jobs used; `since` is as for `Observe.recall`. Default: no accounting.

        Returns:
            Key -> usage; jobs without a complete record are omitted. None: there is no accounting.
        """
        return None


class PowerControl(Protocol):
    """Idle nodes that can be powered down, and powered up again."""

    def power_off(self, action: PowerOff) -> None:
        """Let idle nodes be powered down; a node wakes for a job. Default: refused."""
        raise AdapterError(f"power off: {fold(action.nodes)} cannot be powered down", kind="refused")

    def power_on(self, action: PowerOn) -> None:
        """Power up nodes that are powered down; do nothing to a node that is on. Default: refused."""
        raise AdapterError(f"power on: {fold(action.nodes)} cannot be powered up", kind="refused")


@dataclass(frozen=True, slots=True)
class Reaped:
    """A release by the reaper, as one line, and as facts for the audit.

    Args:
        line: what is shown.
        key: of the job; "": it concerns no single job.
        owner: uid of its user; None: not known.
        why: the reason, or "".
        before: the job before: state, nodes, held_until, pinned_since (epoch seconds).
        error: why it failed, or "".
    """

    line: str
    key: str = ""
    owner: int | None = None
    why: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


class Adapter(Observe, Count, Launch, HandOver, Accounting, PowerControl, Protocol):
    """A resource manager. Derive from this class to inherit the defaults."""

    def apply(self, action: Action) -> None:
        """Carry out one action, idempotently.

        Raises:
            AdapterError: The action was refused, or its outcome is unknown (transient).
        """
        methods: dict[type, Callable[[Any], None]] = {
            Submit: self.submit, SubmitAhead: self.submit_ahead, Place: self.place, Release: self.release,
            Cancel: self.cancel, PowerOff: self.power_off, PowerOn: self.power_on,
        }  # fmt: skip
        methods[type(action)](action)

    def preview(self, action: Action) -> Sequence[str]:
        """Return the commands that `apply` would run now, as a person would type them. Changes nothing. Default: ()."""
        return ()


#: Variables that a service manager sets for a service (systemd.exec(5), sd_notify(3)), and a token of Slurm's.
_OF_THE_SERVICE = frozenset(
    f"{kind}_DIRECTORY" for kind in ("STATE", "RUNTIME", "CACHE", "LOGS", "CONFIGURATION", "CREDENTIALS")
) | {"INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "MAINPID", "MANAGERPID", "FDSTORE", "SYSTEMD_EXEC_PID",
     "SLURM_JWT"}  # fmt: skip
_OF_THE_SERVICE_TOO = ("LISTEN_", "WATCHDOG_", "MEMORY_PRESSURE_", "MONITOR_", "TRIGGER_")


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a daemon's environment that its jobs may have."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _OF_THE_SERVICE and not name.startswith(_OF_THE_SERVICE_TOO)
    }
