"""What the daemon learns from the jobs that it runs, and remembers for the next ones.

Rule: only jobs that came without a profile of their own are given one and teach; a profile that was measured is
replaced once its forecasts miss, one that was given never; a store that cannot be used costs a warning, never a job,
nor is it waited for: what could not be written is written later, and one that cannot be read because it is locked is
left alone for a while. Nothing that was learned makes of a job that fits somewhere one that fits nowhere.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..profiles.estimate import LATEST
from ..profiles.scored import added
from ..profiles.signature import COMMAND, KIND
from ..profiles.store_file import LockedError
from ..simulate.errors import ConfigError
from ..simulate.fits import never_fits
from ..simulate.job import Job, Profile, Workflow
from ..simulate.platform import Cluster
from ..simulate.snapshot import JobView
from .learned import NOTHING, alike, learnable, measured, rests_on_default, taught, widened, with_learned
from .relearning import MOST, Missed
from .render.text import count, percent, times

if TYPE_CHECKING:
    from ..profiles.counters import Counted
    from ..profiles.measurement import Measurement
    from ..profiles.store import ProfileStore

log = logging.getLogger("pilotfish.profiles")
_Result = TypeVar("_Result")
#: How long is waited for who has locked the store, seconds: a cycle waits meanwhile.
PATIENCE_S = 0.2
#: Runs that are held back at the most while the store cannot be written; the oldest are given up first.
MOST_HELD = 1000
#: After so many seconds it is tried again to write them, and to read what was locked.
AGAIN_S = 10.0


class Memory:
    """The profile store in the file at `path`, opened on first use.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._warned, self._clock = path, False, clock
        self._watched: dict[str, deque[Measurement]] = {}
        self._held: deque[tuple[Job, Measurement]] = deque(maxlen=MOST_HELD)
        self._held_until = self._locked_until = 0.0
        self._scored: tuple[int, Cluster, Cluster] | None = None
        self._cluster: Cluster | None = None

    @cached_property
    def _store(self) -> ProfileStore:
        from ..profiles.store import ProfileStore

        return ProfileStore(self._path, PATIENCE_S)

    def recall(self, workflow: Workflow) -> Workflow:
        """The workflow with what earlier runs showed of jobs that came without a profile, or let expect of them."""
        return self._read(lambda: with_learned(workflow, self._expected), workflow)

    def named(self, job: Job) -> Job:
        """A job that names a profile, with that profile if it is known and has threads for no more cores than the job
        asked for; one that names none, with what others of its kind showed. The job still takes all of its cores."""
        cores = job.profile.threads
        profile = self._read(lambda: self._known(job), None) if rests_on_default(job) else None
        if profile is None or profile.threads > cores:
            return job
        wide = widened(profile, cores)
        return replace(job, profile=wide) if self._fits(job, wide) else job

    def _expected(self, job: Job) -> Profile | None:
        profile = self._store.expected(job)
        return profile if profile is not None and self._fits(job, profile) else None

    def _fits(self, job: Job, profile: Profile) -> bool:
        """Whether a job with such a profile fits somewhere, or would not without it either."""
        site = self._cluster
        if site is None or never_fits(replace(job, profile=profile), site) is None:
            return True
        return never_fits(job, site) is not None

    def _known(self, job: Job) -> Profile | None:
        named = self._store(job.profile.name) if job.profile.name else None
        return named or alike(job, self._store.for_job(job))

    def learns(self, job: Job) -> bool:
        """Whether anything is kept of what a job uses."""
        return _teaches(job) or bool(job.profile.name and learnable(job))

    def keep(self, views: Iterable[JobView], counted: Mapping[str, Counted] = NOTHING) -> None:
        """Keep what completed jobs used, and what counters said of some, by key."""
        from ..profiles.watch import cpu_model

        views = list(views)
        self._held.extend(taught((view for view in views if _teaches(view.job)), cpu_model(), counted))
        self.write()
        for view in views:
            if self.learns(view.job) and not _teaches(view.job):
                self._watch(view.job.profile.name, measured(view, cpu_model(), counted))

    def write(self) -> None:
        """Write what is held back."""
        written = self._try(self._written, False)
        if written:
            self._held.clear()
        self._held_until = self._clock() + AGAIN_S

    def _written(self) -> bool:
        if self._held:
            self._store.record_jobs(self._held)
        return True

    def company(self, cluster: Cluster) -> Cluster:
        """The nodes with what programs cost each other by their relative scores; the same object while that stays.

        On these nodes must fit, from now on, what is expected of jobs.
        """
        self._cluster = cluster
        if self._held and self._clock() >= self._held_until:
            self.write()
        return self._read(lambda: self._with_scores(cluster), cluster)

    def _with_scores(self, cluster: Cluster) -> Cluster:
        version, last = self._store.version, self._scored
        if last is not None and last[1] is cluster and last[0] == version:
            return last[2]
        found = self._store.scored(cluster)
        if last is not None and last[1] is cluster and last[2].types == found.types:
            found = last[2]
        elif pairs := added(cluster, found):
            log.info("%s of programs slow each other by their relative scores", count(pairs, "pair"))
        self._scored = version, cluster, found
        return found

    def kept_as(self, job: Job) -> str:
        """The name under which a run of a job that has ended is kept, "" where it teaches nothing."""
        from ..profiles.signature import signature

        return (signature(job) or "") if _teaches(job) else job.profile.name if learnable(job) else ""

    def book(self, runs: Sequence[tuple[str, Measurement]]) -> bool:
        """Keep runs that the resource manager's books tell of, each under a name of `kept_as`; False where that is not
        possible now, and then none is kept."""
        own = [(name, run) for name, run in runs if name.startswith((COMMAND, KIND))]
        if own and not self._try(lambda: self._booked(own), False):
            return False
        for name, run in runs:
            if not name.startswith((COMMAND, KIND)):
                self._watch(name, run)
        return True

    def _booked(self, runs: Sequence[tuple[str, Measurement]]) -> bool:
        self._store.record_all(runs)
        return True

    def relearn(self, missed: Mapping[str, Missed], latest: int) -> dict[str, Profile]:
        """Learn profiles anew from the latest runs, and say so; returns those for which that was possible."""
        found = {}
        for name, what in missed.items():
            error = f"profile {name} missed by {_error(what.median)} in the median of its last {count(latest, 'job')}"
            if not learnable(what.job):
                log.warning("%s; it was not measured, and stays: `pilotfish profile run` measures", error)
            elif profile := self._try(partial(self._relearn, name, what.job, latest), None):
                log.warning("%s: learned anew from %s", error, count(profile.provenance.runs, "run"))
                found[name] = profile
            else:
                log.warning("%s; nothing was measured of them to learn from", error)
        return found

    def _relearn(self, name: str, job: Job, latest: int) -> Profile | None:
        today = time.strftime("%Y-%m-%d", time.gmtime())
        if _teaches(job):
            return self._store.relearn(name, latest, today)
        runs = list(self._watched.pop(name, ()))[-latest:]
        return self._store.relearn(name, len(runs), today, runs) if runs else None

    def _watch(self, name: str, measured: Measurement | None) -> None:
        """Keep a run of a measured profile, which does not count unless that is learned anew."""
        if measured is None:
            return
        self._watched[name] = runs = self._watched.pop(name, None) or deque(maxlen=LATEST)
        runs.append(measured)
        if len(self._watched) > MOST:
            del self._watched[next(iter(self._watched))]

    def _read(self, do: Callable[[], _Result], otherwise: _Result) -> _Result:
        """As `_try`, but many who ask in one cycle do not each wait for who has locked the store."""
        if self._clock() < self._locked_until:
            return otherwise
        return self._try(partial(self._unlocked, do), otherwise)

    def _unlocked(self, do: Callable[[], _Result]) -> _Result:
        try:
            return do()
        except LockedError:
            self._locked_until = self._clock() + AGAIN_S
            raise

    def _try(self, do: Callable[[], _Result], otherwise: _Result) -> _Result:
        try:
            result = do()
        except ConfigError as error:
            if not self._warned:
                log.warning("the profile store cannot be used, what jobs show is written later: %s", error)
            self._warned = True
            return otherwise
        self._warned = False
        return result


def _teaches(job: Job) -> bool:
    from ..profiles.signature import signature

    return rests_on_default(job) or job.profile.name == signature(job)


def _error(ratio: float) -> str:
    return percent(ratio) if ratio < 1 else times(1 + ratio)
