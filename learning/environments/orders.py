"""Environment C: each decision orders the queue of EASY backfilling, or the jobs behind its reservation.

Rule: the world is that of `pilotfish simulate` under `easy`. An observation holds what a scheduler knows at that time:
no later submission, no run time of a job that has not ended, nothing of the trace as a whole. No action delays a
reservation. What a copy plays depends on the seed, its number and its actions, and not on the number of copies.
Sources: D. Carastan-Santos, R. Y. de Camargo (SC 2017) for orders as scores; RLBackfilling (HPDC poster, 2022) for the
choice behind the reservation; SchedInspector (D. Zhang et al., HPDC 2022) for waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...simulate.arrays import Array
from ...simulate.errors import ConfigError
from ...simulate.kernels.orders import tables
from ...simulate.model.workload import Workload
from ...simulate.queue_policies.learned_order import UNKNOWN_USER
from ...simulate.queue_policies.order_ranks import static_keys
from .episodes import Episodes, check_numbers
from .trace_copies import TraceCopies

KERNEL = "orders.choices"
#: What a policy decides, by name.
DECIDES = {"order": tables.ORDER, "fill": tables.FILL, "inspect": tables.INSPECT}
#: What a job's start costs, by name: its bounded slowdown, its wait in seconds.
OBJECTIVES = {"bsld": tables.BSLD, "wait": tables.WAIT}
#: Rules that order the queue where the policy does not.
QUEUES = ("fcfs", "sjf", "smallest", "largest")
#: Time that is seen as 1, on a logarithmic scale, seconds.
LONGEST_S = 90 * 86_400.0
#: How long one wait lasts at most, and how long a job is made to wait in all, seconds; both are SchedInspector's.
PAUSE_S, PATIENCE_S = 600.0, 43_200.0
#: What is seen is at most this.
_MOST = 1.0 - 1e-5
#: Episodes without a decision in a row, before that is an error.
_MOST_IDLE = 1000


@dataclass(frozen=True, slots=True)
class OrderOptions:
    """The options of the environment.

    Args:
        decides: a key of DECIDES. `order`: which job is next, at first any that waits; once one of them did not fit and
            has the reservation, one of those that can start behind it. `fill`: the latter alone. `inspect`: whether the
            next job, which fits, starts now or waits.
        queue: of QUEUES: the order of the queue, and with `inspect` behind the reservation, too.
        objective: a key of OBJECTIVES.
        episode: jobs of an episode.
        warm: how many of them come before those that count.
        rows: jobs that a policy sees, the first in the order of submission; with `fill` those that may be chosen.
    """

    decides: str = "order"
    queue: str = "fcfs"
    objective: str = "bsld"
    episode: int = 256
    warm: int = 0
    rows: int = 128

    def __post_init__(self) -> None:
        for key, names in (("decides", DECIDES), ("queue", QUEUES), ("objective", OBJECTIVES)):
            if getattr(self, key) not in names:
                raise ConfigError("environment", key, repr(getattr(self, key)), ", ".join(names))
        for key, least in (("episode", 1), ("warm", 0), ("rows", 1)):
            if not getattr(self, key) >= least:
                raise ConfigError("environment", key, repr(getattr(self, key)), f"{least} or more")
        if self.warm >= self.episode:
            raise ConfigError("environment", "warm", repr(self.warm), "less than the jobs of an episode")


class OrderEnvironment(TraceCopies):
    """Copies of the world; each step carries out one action in each of them.

    The arrays are views of the engine's memory, and each step changes them. After the step that ends an episode they
    show the next one, which has begun. Where no choice changes a start, none is asked for; an episode without a
    decision is passed over.

    Args:
        traces: at least one; an episode is so many consecutive jobs of one of them, on an empty machine.
        processors: of the machine, all alike; 1 or more.
        options: of the environment.
        copies: 1 or more.
        seed: 0 or more; draws the episodes.
        starts: first jobs of the episodes that are drawn, counted through all traces; None: any that is possible.

    Attributes:
        jobs: float32 [copies, rows, 6], in [0, 1]: wait, limit, expected run time (the mean of the user's last two),
            size, whether it fits now, whether it can start now without delaying the reservation. A row without a job
            is 0. With `inspect`, the first row is the job that is asked about, and there is no other.
        machine: float32 [copies, 6], in [0, 1]: share of the processors that is free, waiting jobs, whether there is a
            reservation, time until it, share of the processors that it leaves then, and with `inspect` how long the
            job was made to wait.
        mask: bool [copies, rows + 1]: whether each visible job may be chosen; the last action is to wait, at most
            PAUSE_S, and never past the earliest reservation that the job had.
        reward: float64 [copies]: minus the objective of the jobs that started since the last decision / number of jobs
            that count.
        done: bool [copies]: whether the step ended an episode.
        last_machine: as `machine`, at the end of each copy's last episode; no job waits then.
        observations, last_observations: `jobs` and `machine`, now and at the end of each copy's last episode, by name.
        first_actions: actions that the mask allows at the first decision of every episode.
        last_return: float64 [copies]: sum of the rewards of the last episode, minus the mean of the objective.

    Raises:
        ConfigError: a trace has a job that does not fit, no run times or limits, or too few jobs; no episode has a
            decision; or an option is wrong.
    """

    def __init__(
        self, traces: Sequence[Workload], processors: int, options: OrderOptions = OrderOptions(), *,
        copies: int = 1, seed: int = 0, starts: Array | None = None,
    ) -> None:  # fmt: skip
        check_numbers(copies=copies, processors=processors, traces=len(traces))
        self.options = options
        jobs, users = _job_table(traces, processors, options)
        per_job = ("queue", "heap_time", "heap_job", "end_time", "end_job", "starts", "expected", "promise", "waited")
        world = tables.OrderCopies(
            {"jobs": jobs},
            {
                **dict.fromkeys(("copies", "upcoming", "action", "reward", "done", "idle", "last_total"), (copies,)),
                **dict.fromkeys(per_job, (copies, options.episode)),
                **dict.fromkeys(("last_run", "run_before"), (copies, users)),
                **dict.fromkeys(("seen_machine", "last_machine"), (copies, tables.MACHINE_COLUMNS)),
                "seen_jobs": (copies, options.rows * tables.JOB_COLUMNS), "mask": (copies, options.rows + 1),
            },
        )  # fmt: skip
        super().__init__(KERNEL, world, Episodes(traces, options.episode, starts))
        settings = world.settings
        settings["longest"], settings["pause"], settings["patience"] = LONGEST_S, PAUSE_S, PATIENCE_S
        settings["processors"], settings["episode"], settings["warm"] = processors, options.episode, options.warm
        settings["rows"], settings["decides"] = options.rows, DECIDES[options.decides]
        settings["objective"] = OBJECTIVES[options.objective]
        self.jobs = world.seen_jobs.reshape(copies, options.rows, tables.JOB_COLUMNS)
        self.machine, self.last_machine = world.seen_machine, world.last_machine
        self.observations = {"jobs": self.jobs, "machine": self.machine}
        self.last_observations = {"jobs": np.zeros_like(self.jobs), "machine": self.last_machine}
        self.first_actions: Array = np.zeros(1, np.int64)  # the first row may always be chosen
        self.seed(seed)

    def schedule(self, copy: int = 0) -> Array:
        """Return when each job of the present episode started, seconds; nan: it has not [jobs]."""
        world = self._world
        row = world.copies[copy]
        starts: Array = world.starts[copy].copy()
        starts[row["next"] :] = starts[world.queue[copy, : row["queued"]]] = np.nan
        return starts

    def _pass_over(self) -> None:
        """Begin other episodes where one had no decision. Raises ConfigError: none has any."""
        for _ in range(_MOST_IDLE):
            idle = np.flatnonzero(self._world.idle).tolist()
            if not idle:
                return
            self._call(self._world.address, tables.AGAIN)
            self._episodes.draw(self._world.upcoming, idle)
        problem = f"no decision in {_MOST_IDLE:,} episodes"
        raise ConfigError("environment", "decides", problem, "a smaller machine, or more jobs in an episode")


def _job_table(traces: Sequence[Workload], processors: int, options: OrderOptions) -> tuple[Array, int]:
    """Return the rows of all jobs, and how many users there are. Raises ConfigError."""
    parts, users = list[Array](), 0
    for trace in traces:
        if trace.dependencies is not None or trace.programs is not None:
            raise ConfigError(trace.name, "", "its jobs depend on others or on the machine", "a trace of rigid jobs")
        if trace.size.max(initial=0) > processors:
            problem = f"a job of {int(trace.size.max())} processors"
            raise ConfigError(trace.name, "", problem, f"at most those of the machine, {processors}")
        if not (np.isfinite(trace.run_time).all() and np.isfinite(trace.walltime).all()):
            raise ConfigError(trace.name, "", "jobs without a run time or a limit", "seconds")
        table = np.zeros(len(trace), tables.QUEUED_JOB)
        table["submit"], table["wall"], table["size"] = trace.submit_time, trace.walltime, trace.size
        table["run"] = np.minimum(trace.run_time, trace.walltime)
        table["key"] = static_keys(options.queue, trace.walltime, trace.size, np.zeros(len(trace)), 0)
        table["long"] = np.minimum(np.log1p(trace.walltime) / np.log1p(LONGEST_S), _MOST)
        table["wide"] = np.minimum(trace.size / processors, _MOST)
        table["user"] = -1
        if (column := trace.more.get("user")) is not None:
            names, rows = np.unique(column, return_inverse=True)
            table["user"] = np.where(column == UNKNOWN_USER, -1, rows + users)
            users += len(names)
        parts.append(table)
    return np.concatenate(parts), users
