"""Profiles that the daemon learns from the jobs that it runs, for the next ones.

Rule: only jobs without a profile of their own receive a learned profile, and profiles are learned from these jobs
alone. A measured profile is replaced once its forecasts miss; a given profile is never replaced. A named profile
belongs to the owner of the store: jobs of other users may be planned with it, but their runs are stored separately for
each user, and change no job of any other user. A profile store that cannot be used costs a warning, never a job or a
long wait: writes are repeated later, and a locked store is not read for a while. A learned profile never makes a job
that fits somewhere fit nowhere.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from ...formats.text import count, times
from ...profiles.estimate import LATEST
from ...profiles.identity import COMMAND, KIND, name_apart, owner_apart
from ...profiles.interference.scores import added
from ...profiles.store_db import LockedError
from ...simulate.errors import ConfigError
from ...simulate.model.bounded import BoundedByOwner
from ...simulate.model.capacity import EmptyNodes
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Profile, Workflow
from ...simulate.model.snapshot import JobView, Snapshot
from ..report.cycle_report import Observer
from ..report.metrics import Metrics
from ..state.profile_labels import has_default_profile, profile_of
from ..state.queue import JobEvent, Queue
from ..state.queue_entry import Entry
from .job_profiles import (
    NOTHING,
    GivenProfiles,
    fitting,
    if_alike,
    job_measurements,
    learnable,
    measurement_of,
    widened,
    with_learned_profiles,
)
from .profile_drift import MOST_PROFILES, Drifted, ProfileDrift, with_renewed_profile

if TYPE_CHECKING:
    from ...profiles.measure.counters import HardwareCounts
    from ...profiles.measurement import Measurement
    from ...profiles.store import ProfileStore

log = logging.getLogger("pilotfish.profiles")
_Result = TypeVar("_Result")
#: Lock timeout of the profile store, seconds. A cycle waits meanwhile.
PATIENCE_S = 0.2
NO_OWNERS: Mapping[str, int | None] = {}
#: Most runs held back while the store cannot be written; the oldest of the user with the most are dropped first.
MOST_HELD = 1000
#: Jobs of one workflow that are predicted, because each takes about a millisecond; nothing is known of the others.
MOST_PREDICTED = 500
#: Seconds for which profiles are looked up in one step.
LOOK_UP_S = 0.05
#: Seconds until a failed write, or a read of a locked store, is tried again.
AGAIN_S = 10.0


class LearnedProfiles(GivenProfiles):
    """The profile store, opened on first use.

    Args:
        path: its file.
        clock: seconds, monotonic.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._warned, self._clock = path, False, clock
        self._watched = BoundedByOwner[str, deque["Measurement"]](MOST_PROFILES)
        self._held, self._held_ever = BoundedByOwner[int, tuple[Job, "Measurement"]](MOST_HELD), 0
        self._held_until = self._locked_until = 0.0
        self._scored: tuple[int, Cluster, Cluster] | None = None
        self._cluster: Cluster | None = None
        self._nodes: EmptyNodes | None = None

    @cached_property
    def _store(self) -> ProfileStore:
        from ...profiles.store import ProfileStore

        return ProfileStore(self._path, PATIENCE_S)

    def load(self) -> Self:
        """Read what predictions rest on, so that no cycle has to; return these profiles."""
        self._read(lambda: self._store.learn_similar(), None)
        return self

    def with_profiles(self, workflow: Workflow) -> Workflow:
        """Return the workflow with measured or predicted profiles for its jobs without one."""
        steps = self.profile_steps(workflow)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                profiled: Workflow = end.value
                return profiled

    def profile_steps(self, workflow: Workflow) -> Generator[None, None, Workflow]:
        """Do the same in steps of LOOK_UP_S."""
        predictions_left, until = MOST_PREDICTED, self._clock() + LOOK_UP_S
        profiles = dict[str, Profile]()
        for job in workflow.jobs:
            if not has_default_profile(job):
                continue
            profile = self._read(partial(self._expected, job, predict=predictions_left > 0), None)
            if profile is not None:
                profiles[job.id] = profile
                predictions_left -= profile.provenance.source == "predicted"
            if self._clock() > until:
                yield
                until = self._clock() + LOOK_UP_S
        return with_learned_profiles(workflow, lambda job: profiles.get(job.id))

    def with_profile(self, job: Job) -> Job:
        """Return a job with the profile that it names, else with the one learned from similar jobs, if there is one.

        The profile must not have more threads than the job asked for cores; the job still uses all of its cores.
        """
        cores = job.profile.threads
        profile = self._read(lambda: self._known(job), None) if has_default_profile(job) else None
        if profile is None or profile.threads > cores:
            return job
        wide = widened(profile, cores)
        return replace(job, profile=wide) if fitting(job, wide, self._nodes) is wide else job

    def _expected(self, job: Job, *, predict: bool) -> Profile | None:
        return fitting(job, self._store.expected(job, predict=predict), self._nodes)

    def _known(self, job: Job) -> Profile | None:
        named = (self._store(self._apart(job)) or self._store(job.profile.name)) if job.profile.name else None
        return named or if_alike(job, self._store.for_job(job)) or self._store.similar(job)

    def _apart(self, job: Job) -> str:
        """Return the name under which a job's user learns its profile: that of the profile, if the store is theirs."""
        if job.owner is None or job.owner == self._store.owner:
            return job.profile.name
        return name_apart(job.profile.name, job.owner)

    def learned_as(self, job: Job) -> str:
        """Return the name under which the errors of a job's profile count, and its runs are learned."""
        return self._apart(job) if job.profile.name and learnable(job) and not _teaches(job) else profile_of(job)

    def learns_from(self, job: Job) -> bool:
        """Return whether the usage of a job is stored."""
        return bool(self.stored_as(job))

    def learn(
        self,
        views: Iterable[JobView],
        counted: Mapping[str, HardwareCounts] = NOTHING,
        owners: Mapping[str, int | None] = NO_OWNERS,
    ) -> None:
        """Store what completed jobs used.

        Args:
            views: of the jobs.
            counted: counts of some of them, by key.
            owners: uids of the users who submitted them to the service, by key.
        """
        from ...profiles.measure.observer import cpu_model

        views = list(views)
        for view in views:
            user = owners.get(view.key)
            for job, run in job_measurements([view], cpu_model(), counted) if _teaches(view.job) else ():
                self._held_ever += 1
                self._held.put(self._held_ever, (job, replace(run, owner=user)), user)
        self.write()
        for view in views:
            if self.learns_from(view.job) and not _teaches(view.job):
                self._watch(self.stored_as(view.job), measurement_of(view, cpu_model(), counted))

    def write(self) -> None:
        """Write the runs that are held back, if the store can be written."""
        self._try(self._write_held, None)
        self._held_until = self._clock() + AGAIN_S

    def _write_held(self) -> None:
        if self._held:
            self._store.record_jobs(run for _, run in sorted(self._held.items(), key=itemgetter(0)))
        self._held.clear()

    def with_interference(self, cluster: Cluster) -> Cluster:
        """Return the cluster with relative scores of programs that slow each other; the same object while they stay.

        From now on, expected profiles must fit on this cluster.
        """
        if cluster is not self._cluster:
            self._cluster, self._nodes = cluster, EmptyNodes(cluster)
        if self._held and self._clock() >= self._held_until:
            self.write()
        return self._read(lambda: self._with_scores(cluster), cluster)

    def _with_scores(self, cluster: Cluster) -> Cluster:
        version, last = self._store.version, self._scored
        if last is not None and last[1] is cluster and last[0] == version:
            return last[2]
        scored = self._store.scored(cluster)
        if last is not None and last[1] is cluster and last[2].types == scored.types:
            scored = last[2]
        elif pairs := added(cluster, scored):
            log.info("%s of programs slow each other by their relative scores", count(pairs, "pair"))
        self._scored = version, cluster, scored
        return scored

    def stored_as(self, job: Job) -> str:
        """Return the name under which a run of a job is stored, "" if it is not."""
        from ...profiles.identity import signature

        if _teaches(job):
            return signature(job) or ""
        if not learnable(job) or job.profile.name.startswith((COMMAND, KIND)):  # only a command teaches its own name
            return ""
        return self.learned_as(job) if job.profile.name else ""

    def store_runs(self, runs: Sequence[tuple[str, Measurement]]) -> bool:
        """Store runs, each under a name from `stored_as`. Return False if none could be stored now."""
        own_runs = [(name, run) for name, run in runs if name.startswith((COMMAND, KIND))]
        if own_runs and not self._try(lambda: self._record_all(own_runs), False):
            return False
        for name, run in runs:
            if not name.startswith((COMMAND, KIND)):
                self._watch(name, run)
        return True

    def _record_all(self, runs: Sequence[tuple[str, Measurement]]) -> bool:
        self._store.record_all(runs)
        return True

    def relearn(self, drifted: Mapping[str, Drifted], latest: int) -> dict[str, Profile]:
        """Learn drifted profiles again and log it; return the new profiles by name.

        Args:
            drifted: by name.
            latest: number of runs to learn from.
        """
        profiles = {}
        for name, drift in drifted.items():
            size = times(1 + drift.median)
            error = f"profile {name} was off by {size} in the median of its last {count(latest, 'job')}"
            if not learnable(drift.job):
                log.warning("%s; it was not measured, so it stays; `pilotfish profile run` measures one", error)
            elif profile := self._try(partial(self._relearn, name, drift.job, latest), None):
                log.warning("%s: learned again from %s", error, count(profile.provenance.runs, "run"))
                profiles[name] = profile
            else:
                log.warning("%s; it stays, because none of them was measured", error)
        return profiles

    def _relearn(self, name: str, job: Job, latest: int) -> Profile | None:
        today = time.strftime("%Y-%m-%d", time.gmtime())
        if _teaches(job):
            return self._store.relearn(name, latest, today)
        runs = list(self._watched.pop(name) or ())[-latest:]
        return self._store.relearn(name, len(runs), today, runs, job.profile.name) if runs else None

    def _watch(self, name: str, measured: Measurement | None) -> None:
        """Keep a run of a measured profile in memory, for the case that the profile drifts."""
        if measured is None:
            return
        runs = self._watched.get(name) or deque(maxlen=LATEST)
        runs.append(measured)
        self._watched.put(name, runs, owner_apart(name))

    def _read(self, do: Callable[[], _Result], otherwise: _Result) -> _Result:
        """Do the same as `_try`, but wait for a locked store once a cycle, not for each job."""
        return otherwise if self._clock() < self._locked_until else self._try(do, otherwise, reads=True)

    def _try(self, do: Callable[[], _Result], otherwise: _Result, *, reads: bool = False) -> _Result:
        """Return the result of `do`, or `otherwise` with a warning if the store cannot be used."""
        try:
            result = do()
        except ConfigError as error:
            if reads and isinstance(error, LockedError):
                self._locked_until = self._clock() + AGAIN_S
            if not self._warned:
                log.warning("the profile store cannot be used, measurements are written later: %s", error)
            self._warned = True
            return otherwise
        self._warned = False
        return result


@dataclass
class DriftRenewal(Observer):
    """Learns drifted profiles again after each snapshot; waiting jobs are planned with the new ones.

    Args:
        drift: collects the drifted profiles.
        profiles: learn them again.
        metrics: counts them.
        queue: whose waiting jobs are changed.
        renewed: called for each job that was changed.
    """

    drift: ProfileDrift
    profiles: LearnedProfiles
    metrics: Metrics
    queue: Queue
    renewed: Callable[[Entry], None]

    def on_events(self, events: Sequence[JobEvent], snapshot: Snapshot) -> None:
        """Learn again what has drifted, and change the waiting jobs."""
        drifted = self.drift.take_drifted()
        if not drifted:
            return
        relearned, nodes = self.profiles.relearn(drifted, self.drift.window), EmptyNodes(snapshot.cluster)
        self.metrics.errors.relearned.inc(len(relearned))
        for entry in self.queue.active() if relearned else ():
            learned_as = self.profiles.learned_as(entry.job)
            profile = relearned.get(learned_as) if entry.waiting and learnable(entry.job) else None
            if profile and (job := with_renewed_profile(entry.job, profile, nodes)):
                entry.change(job)
                self.renewed(entry)


def _teaches(job: Job) -> bool:
    from ...profiles.identity import signature

    return has_default_profile(job) or job.profile.name == signature(job)
