"""What may not have happened to any job, whatever went wrong: judged from what the jobs wrote and from Slurm's own log.

Rule: pure. A job's own lines say when it ran and how often, Slurm says how it ended and how often it requeued it, the
campaign says what its user asked for and when Slurm itself was away. What Slurm lost (a controller that was killed
before it had written its state) is Slurm's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from pilotfish.adapters.slurm.handed_over import ownership

#: Seconds after the end of its hold within which a job begins: 30 s for which it may be held back to be bound, a pass of
#: Slurm's, the reaper, a busy machine.
ALLOWANCE_S = 30.0 + 40.0
#: Seconds until a requeued job may start: its credential must have expired.
REQUEUE_S = 11.0
#: Seconds for which a pin that has not become a start may stay.
PIN_S = ALLOWANCE_S
NAMED = re.compile(r"^\[(\S+?)\].*\bJobId=(\d+)", re.MULTILINE)
STARTED = re.compile(r"^\[(\S+?)\].*(?:Allocate|Started) JobId=(\d+)", re.MULTILINE)
RESIZED = re.compile(r"^\[(\S+?)\].*setting nodes to (\S+) for JobId=(\d+)", re.MULTILINE)
CLASSES = ("lost", "doubled", "late", "resized", "loosened", "changed", "pinned", "ended", "fault")
Span = tuple[float, float]
#: A begin time that is moved this little looks, to a daemon that did not see the job before, as it was handed over.
EARLY_S, LATE_S = ownership.EARLY_S, ownership.LATE_S + 1.0


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a job, epoch seconds; `end` is None if the job did not see it."""

    restart: int
    begin: float
    end: float | None = None


@dataclass(slots=True)
class Job:
    """A job of a campaign. Times are epoch seconds.

    Args:
        name: Its name, which no other has.
        user: Its user.
        handed: Whether it was handed over.
        submitted: When its submission was sent.
        due: When it begins at the latest if Slurm has room, by what its user last asked for.
        asked: What its user asked for, as Slurm shows it.
        begins: When Slurm accepted a begin time of its user's -> that begin time.
        holds: When its user held it, and released it.
        held: The earliest and the latest begin time that may be the one with which it was handed over, as Slurm sees it.
        known: Whether a daemon had noted that begin time when its user moved it.
        state: As Slurm showed it last; "" if it does not show the job any more, and the job had not ended.
        unsure: Slurm did not say what became of a change of its user's: its times say nothing.
        forgotten: Slurm had not written what it knew of it when it was killed.
        started: When Slurm's log says that it was started; a job's own first line may be seconds later.
        own_nodes: Its user named its nodes.
        one_node: Its user excluded all nodes but one.
    """

    name: str
    user: str
    handed: bool
    submitted: float
    due: float
    asked: dict[str, str] = field(default_factory=dict)
    begins: list[Span] = field(default_factory=list)
    holds: list[Span] = field(default_factory=list)
    held: Span = (0.0, 0.0)
    known: bool = False
    id: int = 0
    state: str = ""
    nodes: str = ""
    restarts: int = 0
    requeued: float = 0.0
    cancelled: float = 0.0
    unsure: bool = False
    forgotten: bool = False
    own_nodes: bool = False
    one_node: bool = False
    ahead: Job | None = None
    changed: dict[str, str] = field(default_factory=dict)
    pinned_s: float = 0.0
    runs: list[Run] = field(default_factory=list)
    started: list[float] = field(default_factory=list)

    @property
    def tied(self) -> bool:
        """True if it waits as long as certain nodes are away, whoever places it."""
        return self.own_nodes or self.one_node


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that may not happen: which of CLASSES, to which job, when, and in words."""

    kind: str
    job: str
    time: float
    words: str


def violations(job: Job, outages: Sequence[Span]) -> list[Violation]:
    """Return what happened to a job that may not happen.

    Args:
        job: The job, after its end.
        outages: When Slurm itself was away.
    """
    found: list[tuple[str, float, str]] = []
    runs = sorted(job.runs, key=lambda run: run.begin)
    if not job.forgotten:
        if job.state != "COMPLETED" and not job.cancelled:
            found.append(("lost", job.submitted, f"{job.state or 'not in the queue'}, {len(runs)} runs"))
        elif job.state == "COMPLETED" and not runs:
            found.append(("lost", job.submitted, "completed without having run"))
        if len(runs) > job.restarts + 1:
            found.append(("doubled", runs[-1].begin, f"{len(runs)} runs, {job.restarts} requeues"))
        found += [
            ("doubled", second.begin, "two runs at a time")
            for first, second in pairwise(runs)
            if first.end is not None and first.end > second.begin
        ]
        found += [] if job.unsure else _times(job, runs, outages)
        found += [("changed", job.submitted, f"{name}: {what}") for name, what in job.changed.items()]
    if job.handed and job.pinned_s > PIN_S:
        found.append(("pinned", job.submitted, f"its pin stayed for {job.pinned_s:.0f} s"))
    return [Violation(kind, job.name, time, words) for kind, time, words in found]


def _times(job: Job, runs: Sequence[Run], outages: Sequence[Span]) -> Iterable[tuple[str, float, str]]:
    if not runs:
        return
    first = runs[0].begin
    if not (job.tied or job.restarts) and (waited := lateness(job, outages)) > ALLOWANCE_S:
        yield "late", first, f"{waited:.1f} s after the end of its hold"
    if job.requeued and runs[-1].begin > job.requeued and not job.tied:
        again = runs[-1].begin - job.requeued - REQUEUE_S - away(outages, job.requeued, runs[-1].begin)
        if again > ALLOWANCE_S:
            yield "late", runs[-1].begin, f"{again:.1f} s after it was requeued"
    accepted = [begin for since, begin in job.begins if since < first]
    as_held = bool(accepted) and job.held[0] - EARLY_S <= accepted[-1] <= job.held[1] + LATE_S
    if accepted and first < accepted[-1] - 1.5 and (job.known or not as_held):
        yield "loosened", first, f"began {accepted[-1] - first:.1f} s before the begin time of its user"
    began = [max((time for time in job.started if time <= run.begin), default=run.begin) for run in runs]
    if any(since + 0.5 < time < until for since, until in job.holds for time in began):
        yield "loosened", first, "began while its user held it"


def lateness(job: Job, outages: Sequence[Span]) -> float:
    """Return by how many seconds a job began after it was due, without Slurm's outages; 0 if it never began."""
    if not job.runs:
        return 0.0
    first = min(run.begin for run in job.runs)
    ends = [run.end or run.begin for run in job.ahead.runs] if job.ahead else []
    due = max([job.due, *ends, *(until for since, until in job.holds if since < first)])
    return first - due - away(outages, job.submitted, first)


def away(outages: Iterable[Span], since: float, until: float) -> float:
    """Return for how many seconds of a time Slurm was away; outages that overlap count once."""
    total, reached = 0.0, since
    for begin, end in sorted(outages):
        total += max(0.0, min(end, until) - max(begin, reached))
        reached = max(reached, min(end, until))
    return total


def forgotten(log: str, kills: Iterable[Span]) -> list[tuple[int, float]]:
    """Return the jobs of which a killed controller had not written everything: id, and when it was killed.

    Args:
        log: The log of slurmctld, which names the job at each change.
        kills: From when on its controller wrote nothing, until it was gone.
    """
    named = [(_epoch(time), int(job)) for time, job in NAMED.findall(log)]
    return [(job, until) for since, until in kills for time, job in named if since <= time <= until]


def differences(job: Job, shown: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return by field how what Slurm shows of a job differs from what its user asked for.

    Args:
        job: The job.
        shown: What Slurm shows of it.
        before: What its user had asked for when Slurm was asked; what they change meanwhile may be shown or not.
    """
    asked = job.asked.items() & before.items()
    return {name: f"{text!r} became {shown.get(name, '')!r}" for name, text in asked if shown.get(name, "") != text}


def starts(log: str) -> dict[int, list[float]]:
    """Return by job id when Slurm started it, from the log of slurmctld; a launch may take seconds from then on."""
    found: dict[int, list[float]] = {}
    for time, job in STARTED.findall(log):
        found.setdefault(int(job), []).append(_epoch(time))
    return found


def resizes(log: str) -> list[tuple[float, int, str]]:
    """Return time, job id and nodes of each change of a running job's nodes, from the log of slurmctld."""
    return [(_epoch(time), int(job), nodes) for time, nodes, job in RESIZED.findall(log)]


def _epoch(text: str) -> float:
    """Return a local time such as `2026-11-22T22:15:15.773` in epoch seconds."""
    return datetime.fromisoformat(text).timestamp()
