"""What the daemon learns from the jobs that it runs, and remembers for the next ones.

Rule: only jobs that came without a profile of their own are given one and teach; a store that cannot be
used costs a warning, never a job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..simulate.errors import ConfigError
from ..simulate.job import Job, Workflow
from ..simulate.snapshot import JobView
from .learned import learn, rests_on_default, widened, with_learned

if TYPE_CHECKING:
    from ..profiles.store import ProfileStore

log = logging.getLogger("pilotfish.profiles")
_Result = TypeVar("_Result")


class Memory:
    """The profile store in the file at `path`, opened on first use."""

    def __init__(self, path: Path) -> None:
        self._path, self._warned = path, False

    @cached_property
    def _store(self) -> ProfileStore:
        from ..profiles.store import ProfileStore

        return ProfileStore(self._path)

    def recall(self, workflow: Workflow) -> Workflow:
        """The workflow with what earlier runs showed of jobs that came without a profile, or let expect of them."""
        return self._try(lambda: with_learned(workflow, self._store.expected), workflow)

    def named(self, job: Job) -> Job:
        """A job that names a profile, with that profile if it is known and has threads for no more cores than the job
        asked for. The job still takes all of its cores."""
        name, cores = job.profile.name, job.profile.threads
        profile = self._try(lambda: self._store(name), None) if name and rests_on_default(job) else None
        return job if profile is None or profile.threads > cores else replace(job, profile=widened(profile, cores))

    def keep(self, views: Iterable[JobView]) -> None:
        """Keep what completed jobs used."""
        from ..profiles.watch import cpu_model

        mine = [view for view in views if _teaches(view.job)]
        if mine:
            self._try(lambda: learn(mine, self._store, cpu_model()), 0)

    def _try(self, do: Callable[[], _Result], otherwise: _Result) -> _Result:
        try:
            result = do()
        except ConfigError as error:
            if not self._warned:
                log.warning("the profile store cannot be used, nothing is learned: %s", error)
            self._warned = True
            return otherwise
        self._warned = False
        return result


def _teaches(job: Job) -> bool:
    from ..profiles.signature import signature

    return rests_on_default(job) or job.profile.name == signature(job)
