"""The state of a learned policy in a service: the last run times of users, and what became of the jobs it ordered.

Rule: each time EACH more jobs have ended, the last WINDOW jobs are replayed as they came and as they ran, once under
the order and once under the baseline, on as many cores as they had together at most; if the model chooses nodes, on the
nodes of the last plan. If their mean wait under the order
is longer by more than the slack, the baseline overrules the order: at once, and until another file of a model is used.
Both replays know the same later submissions and run times, so their difference is the order's. Jobs that still wait are
in both, for the median share of their limits that the others took, so an order that never starts some of them is seen.
Jobs of all users count in turns, so that no user alone decides. A model that raises an exception or is too slow is not
trusted in this plan; if that goes on, the baseline overrules it for REST_S.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..model.bounded import turns
from ..model.cluster import Cluster
from ..model.snapshot import Snapshot
from ..model.workload import Workload
from ..queue_policies.kept import Kept
from ..queue_policies.model_use import Doubt
from ..wording import count
from .model_calls import FAILED, SLOW

if TYPE_CHECKING:
    from ..queue_policies.interface import QueuePolicy
    from ..replay.replay import Replayed

#: Jobs that are compared at most and at least, and after how many ends they are compared again.
WINDOW, LEAST, EACH = 100, 20, 10
#: Users whose run times are kept.
MOST_USERS = 10_000
#: Of the last PLANS, SPOILED are too many; then the baseline overrules the model for so many seconds.
PLANS, SPOILED, REST_S = 5, 3, 3600.0
#: By what share, and by how many seconds, the mean wait may be longer than that of the baseline.
SLACK, SLACK_S = 0.1, 10.0


class GuardedModel(Protocol):
    """A model with its baseline.

    Attributes:
        digest: SHA-256 that names the model.
        is_proven: a verdict says that it beats the baseline on jobs that it has not seen.
        baseline_spec: SPEC of the baseline.
    """

    @property
    def digest(self) -> str: ...  # noqa: D102
    @property
    def is_proven(self) -> bool: ...  # noqa: D102
    @property
    def baseline_spec(self) -> str: ...  # noqa: D102

    def planned(
        self, seed: int, run_times: Mapping[object, tuple[float, float]], clock: Callable[[], float] | None = None
    ) -> QueuePolicy:  # fmt: skip
        """Return the policy of a plan; it, or its `queue`, has `scored` and `calls`.

        Args:
            seed: of random choices.
            run_times: the last two of each user, seconds.
            clock: see `ModelCalls`.
        """
        ...

    def replays(self, jobs: Workload, cluster: Cluster, cores: int) -> tuple[Replayed, Replayed]:
        """Replay jobs under the model and under the baseline.

        Args:
            jobs: each fits into `cores`; run times are those on the slowest node.
            cluster: the nodes.
            cores: the most that jobs had together.
        """
        ...

    def most_of(self, cluster: Cluster) -> float:
        """Return the most cores of a job that the model has a say in."""
        ...

    def jobs_compared(self, cluster: Cluster) -> int:
        """Return the most ended jobs, and the most others, that `replays` takes well under 0.2 s for."""
        ...

    def pace_of(self, nodes: Sequence[str], cluster: Cluster) -> float:
        """Return the speed of the slowest of some nodes as a factor on the slowest of all; 1: nodes are alike."""
        ...


@dataclass(frozen=True, slots=True)
class OrderedJob:
    """A job that the order has seen.

    Args:
        user: who submitted it.
        submit_time: epoch seconds.
        size: cores.
        limit: seconds.
        start_time, finish_time: epoch seconds; nan: not yet.
        pace: speed of its node as a factor on the slowest, if the model compares nodes.
    """

    user: Any
    submit_time: float
    size: int
    limit: float
    start_time: float = math.nan
    finish_time: float = math.nan
    pace: float = 1.0

    @property
    def run_time(self) -> float:
        """The run time; nan: it has not ended, seconds."""
        return min(self.finish_time - self.start_time, self.limit)

    def run_time_at(self, now: float, share: float) -> float:
        """Return the run time; of a job that has not ended a share of its limit, or how long it runs, seconds.

        Args:
            now: epoch seconds.
            share: of their limits that jobs take, (0, 1].
        """
        if not math.isnan(self.run_time):
            return self.run_time
        running = 0.0 if math.isnan(self.start_time) else now - self.start_time
        return min(self.limit, max(self.limit * share, running))


class KeptModel(Kept):
    """Keeps it.

    Args:
        model: the guarded model.
        clock: of its plans, see `ModelCalls`.
    """

    def __init__(self, model: GuardedModel, clock: Callable[[], float] | None = None) -> None:
        self._model, self._clock = model, clock
        self._cluster: Cluster | None = None  # of the last plan
        self._lately = dict[Any, tuple[float, float]]()  # by user
        self._running = dict[str, tuple[Any, float]]()  # user and start, by key
        self._present = dict[str, OrderedJob]()  # jobs that wait or run, by key
        self._ended = deque[OrderedJob](maxlen=WINDOW)
        self._fresh = 0  # jobs that ended since the last comparison
        self._why = ""
        self._now, self._doubt, self._spoiled = -math.inf, Doubt(), deque[bool](maxlen=PLANS)
        self._rest = 0.0, ""  # until when the baseline overrules the model, and why

    def policy(self, seed: int, now: float, cluster: Cluster) -> QueuePolicy:
        """Return the policy of a plan."""
        self._cluster = cluster
        return self._model.planned(seed, self._lately, self._clock)

    def note_plan(self, doubt: Doubt) -> None:
        """Note why the baseline decided in a plan, and let it overrule a model that goes on to fail."""
        self._doubt = doubt
        self._spoiled.append(doubt.reason in (FAILED, SLOW))
        if sum(self._spoiled) >= SPOILED:
            self._rest = self._now + REST_S, f"{doubt.text}, in {SPOILED} of the last {PLANS} plans; for an hour"
            self._spoiled.clear()

    def note_waiting(self, jobs: Mapping[str, OrderedJob], underway: Collection[str] = ()) -> None:
        """Note the jobs of a plan.

        Args:
            jobs: those that wait, by key.
            underway: keys of the others, which run, or were handed over and are not seen to run yet.
        """
        held = {*jobs, *underway, *self._running}
        self._present = {key: one for key, one in self._present.items() if key in held}
        for key, one in jobs.items():
            self._present.setdefault(key, one)

    def observe(self, snapshot: Snapshot) -> None:
        """Note what has started and ended since the last snapshot, and compare if it is time. O(jobs)."""
        self._now = now = snapshot.time
        running = dict[str, tuple[Any, float]]()
        for view in snapshot.jobs:
            if view.state.takes_nodes and view.start_time is not None:  # a job that is stopped has not ended
                running[view.key] = view.job.owner, view.start_time
                if (one := self._present.get(view.key)) is not None and math.isnan(one.start_time):
                    pace = 1.0 if self._cluster is None else self._model.pace_of(view.nodes, self._cluster)
                    self._present[view.key] = replace(one, start_time=view.start_time, pace=pace)
        for key in sorted(self._present.keys() - self._running.keys()):  # what began and ended since the last snapshot
            last = snapshot.jobs.by_key.get(key)
            if last is not None and last.state.ended and last.start_time is not None:
                self._running[key] = last.job.owner, last.start_time
        for key, (user, start) in self._running.items():
            last = snapshot.jobs.by_key.get(key)
            if last is None or last.state.ended:
                self._end(key, user, start, now if last is None or last.finish_time is None else last.finish_time)
            elif last.state.takes_nodes:
                running.setdefault(key, (user, start))
            elif (one := self._present.get(key)) is not None:  # it was put back into the queue
                self._present[key] = replace(one, start_time=math.nan)
        self._running = running
        while len(self._lately) > MOST_USERS:
            del self._lately[next(iter(self._lately))]
        if self._fresh >= EACH and not self._why:
            self._fresh, self._why = 0, self._harm(now)

    def _end(self, key: str, user: Any, start: float, end: float) -> None:
        run_time = max(0.0, end - start)
        if user is not None:
            last, _ = self._lately.pop(user, (run_time, run_time))
            self._lately[user] = run_time, last
        if (one := self._present.pop(key, None)) is not None:
            self._ended.append(replace(one, start_time=start, finish_time=start + run_time))
            self._fresh += 1

    def _harm(self, now: float) -> str:
        """Return by how much the order has made jobs wait longer, "" if that is within the slack or not known yet."""
        cluster, model = self._cluster, self._model
        if cluster is None:
            return ""
        most = min(WINDOW, model.jobs_compared(cluster))
        jobs = [*list(self._ended)[-most:], *list(self._present.values())[:most]]
        jobs = sorted((one for one in jobs if one.submit_time <= now), key=lambda one: one.submit_time)
        cores = _most_at_once(jobs, now)
        jobs = [one for one in jobs if one.size <= min(cores, model.most_of(cluster))]
        if len(jobs) < LEAST:
            return ""
        share = float(np.median([one.run_time / max(one.limit, 1.0) for one in self._ended]))
        counted = turns([one.user for one in jobs])[:WINDOW]
        run_times = [one.run_time_at(now, share) * one.pace for one in jobs]
        replays = model.replays(_workload(jobs, run_times), cluster, cores)
        waits = [one.start_time - one.workload.submit_time for one in replays]
        wait, baseline = (float(one[counted].mean()) for one in waits)
        if wait <= (1.0 + SLACK) * baseline + SLACK_S:
            return ""
        return (
            f"the last {count(len(counted), 'job')} wait {wait:,.0f} s on average under its order, and would wait "
            f"{baseline:,.0f} s under {model.baseline_spec}"
        )

    def overruled(self) -> tuple[str, str] | None:
        """Return the SPEC of the baseline, and why it overrules the order; None: it does not."""
        until, failing = self._rest
        why = self._why or (failing if self._now < until else "")
        return (self._model.baseline_spec, why) if why else None

    def decided(self) -> object:
        """Return why the order is overruled: that is on disk before anything follows from it."""
        return self._why, self._rest

    def doubt(self) -> Doubt:
        """Return why the baseline decided in the last plan."""
        return self._doubt

    def state(self) -> dict[str, Any]:
        """Return run times of users, and the jobs that this model has ordered; times in seconds."""
        return {
            "model": self._model.digest,
            "why": self._why,
            "rest": [*self._rest],
            "lately": [[user, *times] for user, times in self._lately.items()],
            "ended": [_row(one) for one in self._ended],
            "present": [[key, *_row(one)] for key, one in self._present.items()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with the run times of users, and with all of it if it is of the same model."""
        with suppress(KeyError, TypeError, ValueError):
            self._lately = {user: (float(last), float(before)) for user, last, before in state["lately"]}
            if state["model"] == self._model.digest:
                self._why = str(state["why"])
                until, failing = state["rest"]
                self._rest = float(until), str(failing)
                self._ended.extend(_job_of(row) for row in state["ended"])
                self._present = {str(key): _job_of(row) for key, *row in state["present"]}


def _row(one: OrderedJob) -> list[Any]:
    times = (None if math.isnan(time) else time for time in (one.start_time, one.finish_time))
    return [one.user, one.submit_time, one.size, one.limit, *times, one.pace]


def _job_of(row: list[Any]) -> OrderedJob:
    user, *numbers = row
    submit, size, limit, *others = (math.nan if number is None else float(number) for number in numbers)
    return OrderedJob(user, submit, int(size), limit, *others)


def _most_at_once(jobs: Iterable[OrderedJob], now: float) -> int:
    """Return the most cores that started jobs had at one time."""
    changes = list[tuple[float, int]]()
    for one in jobs:
        if not math.isnan(one.start_time):
            end = now if math.isnan(one.finish_time) else one.finish_time
            changes += [(one.start_time, one.size), (end, -one.size)]
    used = most = 0
    for _, change in sorted(changes):
        used += change
        most = max(most, used)
    return most


def _workload(jobs: list[OrderedJob], run_times: list[float]) -> Workload:
    """Return jobs, in the order of submission, with these run times in seconds."""
    users = {user: number for number, user in enumerate(dict.fromkeys(one.user for one in jobs))}
    columns = [(one.submit_time - jobs[0].submit_time, one.limit, one.size) for one in jobs]
    submit, limit, size = np.array(columns, np.float64).T
    more = {"user": np.array([users[one.user] for one in jobs], np.int64)}
    return Workload(
        "ordered", np.arange(len(jobs)), submit, np.array(run_times), limit, size.astype(np.int64), more=more
    )
