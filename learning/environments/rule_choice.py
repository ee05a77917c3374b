"""Environment B: each decision chooses a pair of rules, which then starts waiting jobs, or starts none.

Rule: the world is that of `pilotfish simulate` under `pairs`: jobs of one-core tasks that contend for memory, on
processors whose power is known. An episode is a whole workload. An observation holds what a scheduler knows at that
time: requests, elapsed times, present rates and watts; no run time, no later submission, nothing of the workload as a
whole. What a copy plays depends on the seed, its number and its actions, and not on the number of copies.
Source: IRMaSim (Herrera et al., CCGrid 2021), IV.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...simulate.arrays import Array
from ...simulate.errors import ConfigError, PolicyError
from ...simulate.kernels.mapping import choice_tables as tables
from ...simulate.kernels.mapping.layout import Scratch, World
from ...simulate.kernels.object_cache import load
from ...simulate.model.cluster import Cluster
from ...simulate.model.workload import Workload
from ...simulate.planning.workflow_tables import scratch_for
from ...simulate.world.rule_options import KERNEL, VOID, RuleOptions
from ...simulate.world.rule_worlds import choice_tables, fresh_world
from ...simulate.world.task_tables import ProcessorTables, processors_of
from .faces import Faces


class RuleChoiceEnvironment(Faces):
    """Copies of the world; each step carries out one action in each of them.

    The arrays are views of the engine's memory, and each step changes them. After the step that ends an episode they
    show the next one, which has begun. Each copy takes one call of a compiled kernel a step.

    Args:
        workloads: at least one; an episode is one of them. Jobs may have `volume`, `memory` and `asked`, see
            `simulate.world.task_tables`.
        cluster: the nodes; their power is known where energy is paid for or compared.
        options: of the environment.
        copies: 1 or more.
        seed: 0 or more; draws the workloads, and what random rules draw.

    Attributes:
        state: float32 [copies, numbers], in [0, 1]. `normal`: of each node the share of its memory that is free; of
            each processor the share of its bandwidth that is free; of each core its speed and its watts as shares of
            their peaks, and the share that is left of the requested time of its task; then the queue. `small`: the
            same without the cores. `minimal`: the queue: minimum, quartiles and maximum over the waiting jobs of
            requested time, cores, memory of a task, and bytes that a task moves; then the change of the number of
            waiting jobs, 0.5: none.
        mask: bool [copies, actions].
        reward: float64 [copies]: minus the cost of the time since the last decision.
        done: bool [copies]: whether the step ended an episode.
        observations, last_observations: `state`, now and at the end of each copy's last episode, by name.
        workloads: the workloads.
        workload_count: how many they are.
        first_actions: the pairs of rules.
        last_return, last_makespan, last_joules: float64 [copies], of the last episode: sum of the rewards, seconds from
            the first submission to the last end, joules.

    Raises:
        ConfigError: a job can never start, a workload has no job or has dependencies, the power of the machine is
            needed and not known, or an option is wrong.
    """

    def __init__(
        self, workloads: Sequence[Workload], cluster: Cluster, options: RuleOptions = RuleOptions(), *,
        copies: int = 1, seed: int = 0,
    ) -> None:  # fmt: skip
        for key, number in (("copies", copies), ("workloads", len(workloads))):
            if number < 1:
                raise ConfigError("environment", key, repr(number), "1 or more")
        machine = processors_of(cluster)
        if options.objective != "makespan" and not machine.powered:
            problem = "the power of this machine is not known"
            raise ConfigError(cluster.source, "objective", problem, "nodes with power, or the objective makespan")
        self.options, self.copies, self.workload_count, self._machine = options, copies, len(workloads), machine
        self.workloads = tuple(workloads)
        self._fresh = [_playable_world(workload, machine, options) for workload in workloads]
        self._sizes = np.array([len(workload) for workload in workloads])
        self._first = np.cumsum(self._sizes) - self._sizes
        self._choices = choices = choice_tables(workloads, machine, options, copies)
        self._worlds = [dict[int, tuple[World, Scratch]]() for _ in range(copies)]
        self._plays = np.zeros(copies, np.int64)  # the workload that each copy plays
        self.state, self.mask, self.reward = choices.seen, choices.mask.view(bool), choices.reward
        self.done = np.zeros(copies, bool)
        self._last_state = self.state.copy()
        self.observations, self.last_observations = {"state": self.state}, {"state": self._last_state}
        self.last_return, self.last_makespan, self.last_joules = np.zeros((3, copies))
        self.first_actions: Array = np.flatnonzero([action != VOID for action in options.actions])
        self._call, self._places = load(KERNEL), [(0, 0)] * copies
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Draw all that follows from a seed, and begin an episode in each copy."""
        self._generators = [np.random.default_rng([seed, copy]) for copy in range(self.copies)]
        self.reset()

    def reset(self, starts: Array | Sequence[int] | None = None) -> None:
        """Begin an episode in each copy.

        Args:
            starts: number of the workload of each [copies], from 0; None: they are drawn.

        Raises:
            ConfigError: there is no such workload.
        """
        if starts is not None and not all(0 <= start < self.workload_count for start in starts):
            raise ConfigError("environment", "starts", repr(starts), f"workloads from 0 to {self.workload_count - 1}")
        self.done[:], self.reward[:] = False, 0.0
        for copy in range(self.copies):
            self._begin(copy, None if starts is None else int(starts[copy]))

    def step(self, actions: Array | Sequence[int]) -> None:
        """Carry out an action in each copy, and go on to its next decision.

        Args:
            actions: numbers of actions, in the order of the option `actions` [copies].

        Raises:
            PolicyError: the mask forbids an action; nothing has changed.
        """
        numbers = np.asarray(actions, np.int64)
        inside = (numbers >= 0) & (numbers < self.mask.shape[1])
        allowed = inside & self.mask[np.arange(self.copies), np.where(inside, numbers, 0)]
        if not allowed.all():
            wrong = int(np.argmin(allowed))
            raise PolicyError("", f"copy {wrong}", f"the mask forbids action {numbers[wrong]}")
        self.done[:] = False
        call, address, places = self._call, self._choices.address, self._places
        for copy, action in enumerate(numbers.tolist()):
            if call(address, *places[copy], copy, action):
                self._end(copy)
                self._begin(copy, None)

    def schedule(self, copy: int = 0) -> tuple[Array, Array]:
        """Return when each job of the present episode started and ended, seconds; nan: it has not [jobs] each."""
        world, _ = self._worlds[copy][int(self._plays[copy])]
        return world.jobs["start"].copy(), world.jobs["finish"].copy()

    def _begin(self, copy: int, workload: int | None) -> None:
        """Begin an episode in a copy, of a workload that is drawn if it is None."""
        generator, worlds = self._generators[copy], self._worlds[copy]
        number = int(generator.integers(self.workload_count)) if workload is None else workload
        if number not in worlds:
            world = self._fresh[number].copy()
            worlds[number] = world, scratch_for(world, len(self._machine.of_core))
        world, scratch = worlds[number]
        np.copyto(world.buffer, self._fresh[number].buffer)
        world.random["state"] = generator.integers(2**63)
        self._plays[copy], self._choices.copies["first"][copy] = number, self._first[number]
        self._places[copy] = world.address, scratch.address
        self._call(self._choices.address, world.address, scratch.address, copy, tables.BEGIN)

    def _end(self, copy: int) -> None:
        """Keep what the end of an episode looks like."""
        row = self._choices.copies[copy]
        self.done[copy], self._last_state[copy] = True, self.state[copy]
        self.last_return[copy], self.last_joules[copy] = row["total"], row["joules"]
        self.last_makespan[copy] = row["since"] - row["begin"]


def _playable_world(workload: Workload, machine: ProcessorTables, options: RuleOptions) -> World:
    """Return the tables of an episode before anything runs. Raises ConfigError."""
    if not len(workload):
        raise ConfigError(workload.name, "", "no jobs", "at least one")
    world, fits = fresh_world(workload, machine, options)
    if not fits.all():
        job_id = workload.more.get("name", workload.id)[np.argmin(fits)]
        raise ConfigError(workload.name, f"job {job_id}", "it can never start", "jobs that fit on the empty machine")
    return world
