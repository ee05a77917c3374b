"""A learned policy in plans: it decides, and each plan says what the baseline would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import PolicyError
from ..kernels.mapping import layout
from ..planning.compiled_queue import time_limits
from ..planning.mapping_policies import Mapped, Request
from ..planning.queue_mapping import QueueMapping
from ..planning.simulation import Simulation
from ..queue_policies.interface import QueuePolicy
from ..queue_policies.policy_specs import parse
from ..queue_policies.uncompiled import uncompiled
from .kept_model import GuardedModel, KeptModel, OrderedJob


class LearnedMapping(QueueMapping):
    """A mapping policy that asks a guarded model.

    Args:
        name: SPEC of the policy.
        model: the model.
        clock: see `ModelCalls`; None: decisions may take any time.
    """

    def __init__(self, name: str, model: GuardedModel, clock: Callable[[], float] | None = None) -> None:
        baseline = partial(uncompiled, parse(model.baseline_spec))
        super().__init__(name, baseline, every_node=True, keep=partial(KeptModel, model, clock))
        self.digest = model.digest  #: names the model
        self.unproven = not model.is_proven
        self._baseline = QueueMapping(model.baseline_spec, baseline)

    def __call__(self, simulation: Simulation, request: Request) -> Mapped:
        """Run the whole workflow as the model decides. Raises PolicyError."""
        starts = self._baseline_starts(simulation, request)
        simulation.reset()
        mapped = super().__call__(simulation, request)
        scored = {number: replace(one, baseline_start_s=starts.get(number)) for number, one in mapped.scored.items()}
        if isinstance(request.kept, KeptModel):
            underway = {one.id for one in request.underway}
            request.kept.note_waiting(dict(self._waiting(simulation, request)), underway)
        return replace(mapped, scored=scored)

    def run(self, simulation: Simulation, request: Request, policy: QueuePolicy) -> Mapped:
        """Run a workflow under the model of one plan. Raises PolicyError."""
        mapped = super().run(simulation, request, policy)
        queue: Any = getattr(policy, "queue", policy)
        if isinstance(request.kept, KeptModel):
            request.kept.note_plan(queue.calls.doubt or queue.first_doubt)
        return replace(mapped, scored=queue.scored)

    @staticmethod
    def _waiting(simulation: Simulation, request: Request) -> Iterator[tuple[str, OrderedJob]]:
        """Yield the jobs of the plan that users submitted and that do not run."""
        waited = {name: submission.waited for submission in request.submitted for name in submission.jobs}
        running, world = {underway.id for underway in request.underway}, simulation.world
        threads, limits = world.classes["threads"][world.jobs["cls"]].tolist(), time_limits(simulation).tolist()
        for number, job in enumerate(simulation.workflow.jobs):
            if job.id in waited and job.id not in running and not job.after:
                size = int(threads[number]) * job.nodes
                yield job.id, OrderedJob(job.owner, request.now - waited[job.id], size, limits[number])

    def _baseline_starts(self, simulation: Simulation, request: Request) -> Mapping[int, float]:
        """Return when the baseline would start the waiting jobs that it reaches, seconds from now, by position."""
        simulation.reset()
        waiting = np.flatnonzero(simulation.world.jobs["state"] < layout.RUNNING)
        try:
            self._baseline(simulation, replace(request, kept=None))
        except PolicyError:  # such as a time limit; the plan of the order says so, if it is still so
            return {}
        jobs = simulation.world.jobs[waiting]
        ended = jobs["state"] == layout.DONE
        return dict(zip(waiting[ended].tolist(), jobs["start"][ended].tolist(), strict=True))
