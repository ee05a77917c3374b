"""The profile of a job that a user submitted to the resource manager, from jobs that ended before.

Rule: the run time is predicted as `predict evaluate` does it, from at least ENOUGH jobs of the same user. Its other
needs are those of the user's latest job of its name and size. If only a job of another size has run, each thread needs
what it needed there, and the power is unknown. Without any job of its name, it is assumed to be busy on all its cores,
and its other needs are unknown.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from ...formats.text import count
from ...simulate.model.bounded import BoundedByOwner
from ...simulate.model.job import Job, Profile
from ..estimate import estimate
from ..measurement import Measurement
from .predictors import TRAITS, History, SubmittedJob
from .similar_commands import lasting

#: Least number of jobs behind a prediction.
ENOUGH = 3
#: Runs that are read at first. After as many again, all but this many are forgotten: the oldest of the user with the
#: most.
MOST = 2000
#: Jobs that a user submits within so many seconds are one batch.
_BATCH_S = 1200.0
#: Traits of jobs that need the same, but for their run time; and of those whose threads do.
_ALIKE, _SAME_NAME = ("user", "executable", "size"), ("user", "executable")


def traits_of(job: Job, submit_time: float | None = None) -> dict[str, Any]:
    """Return the traits that are stored with the run of a job; empty if nothing identifies its kind.

    Args:
        job: as it was submitted.
        submit_time: epoch seconds; None = now.
    """
    if not job.traits:
        return {}
    size = job.nodes * job.profile.threads
    return {**dict(job.traits), "size": size, "walltime": job.walltime, "submit_time": submit_time}


class SimilarJobs:
    """Predicts profiles from the runs that it was given."""

    def __init__(self) -> None:
        self.latest = 0  #: number of the last run in the store; 0: all are to be read
        self._history, self._models, self._learned = History(), dict[Hashable, Measurement](), 0
        self._runs = BoundedByOwner[int, Measurement](MOST)

    def learn(self, number: int, run: Measurement) -> None:
        """Learn a run; the older first. `number`: in the store."""
        self.latest = number
        if not run.traits or run.exit_code:
            return
        self._runs.put(number, run, run.traits.get("user"))
        self._add(run)
        if self._learned >= 2 * MOST:
            self._history, self._models, self._learned = History(), {}, 0
            for _, measurement in sorted(self._runs.items(), key=itemgetter(0)):
                self._add(measurement)

    def _add(self, run: Measurement) -> None:
        self._learned += 1
        self._history.learn(_submitted(run.traits), run.wall_s)
        self._models |= {_key(run.traits, _ALIKE): run, _key(run.traits, _SAME_NAME): run}

    def predicted(self, job: Job, name: str) -> Profile | None:
        """Return the profile of a job; None if too few jobs are like it.

        Args:
            job: as it was submitted.
            name: of the profile.
        """
        traits = traits_of(job)
        guess = self._history.predict(_submitted(traits)) if traits else None
        if guess is None or guess.jobs < ENOUGH or not guess.kind.startswith("user"):
            return None
        model = replace(job.profile, name=name)
        if run := self._models.get(_key(traits, _ALIKE)):
            model = estimate(name, [run]) or model
        elif run := self._models.get(_key(traits, _SAME_NAME)):
            template = estimate(name, [run]) or model
            threads = tuple(replace(group, count=job.profile.threads) for group in template.groups[:1])
            model = replace(template, groups=threads, power_watts=None, instructions=None)
        note = f"from {count(guess.jobs, 'job')} with the same {guess.kind.replace('executable', 'name')}"
        return lasting(model, guess.value, (guess.low or guess.value, guess.high or guess.value), guess.jobs, note)


def _submitted(traits: Mapping[str, Any]) -> SubmittedJob:
    when = traits.get("submit_time")
    batch = None if when is None else (traits.get("user"), when // _BATCH_S)
    return SubmittedJob(tuple(traits.get(trait) for trait in TRAITS), traits.get("walltime"), batch)


def _key(traits: Mapping[str, Any], alike: Sequence[str]) -> Hashable:
    return tuple(traits.get(trait) for trait in alike)
