"""Replays of models with their nets: how many decisions a service would leave to them, and why not the others.

Rule: only decisions since the first job that counts are counted; before, the replay makes the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...formats.model_file import guarded
from ...formats.models.order_model import OrderModel
from ...formats.models.pair_model import PairModel
from ...learning.environments.site_pairs import cluster_of
from ...learning.traces import Trace
from ...simulate.errors import ConfigError
from ...simulate.model.machine import machine_of
from ...simulate.queue_policies.model_use import ModelUse
from ...simulate.replay.replay import Replayed, replay
from ...simulate.world.known_run_times import PREDICTED, WALLTIME
from ..output.model_decisions import use_lines
from ..output.text import Screen, hanging
from ..sweeps.tasks import Failure
from ..worker_options import worker_pool
from .learning_tasks import TraceInput, predicted

if TYPE_CHECKING:
    from .pair_tasks import PairInput


@dataclass(frozen=True, slots=True)
class NetTask:
    """A replay of a trace, as it came, under a model with its net.

    Args:
        source: the trace.
        part: of it, one of PARTS.
        name: of the model.
        model: the model.
    """

    source: TraceInput | PairInput
    part: str
    name: str
    model: OrderModel | PairModel

    @property
    def trace(self) -> TraceInput | PairInput:
        """Return what it reads."""
        return self.source

    @property
    def identity(self) -> str:
        """Return what tasks of one command differ in."""
        return f"{self.name} {self.source.path}"


def with_net(trace: Trace, model: OrderModel, name: str) -> Replayed:
    """Replay a trace under an order with its net. Raises ConfigError; `name`: of the model, for errors."""
    run_times = predicted(trace) if model.run_times == PREDICTED else WALLTIME
    return replay(trace.jobs, trace.processors, _counting(model, name, trace), run_times=run_times)


def net_task(task: NetTask) -> tuple[str, ModelUse]:
    """Return the name of the trace, and how far the model decided. Raises ConfigError, OSError."""
    if isinstance(task.source, TraceInput):
        assert isinstance(task.model, OrderModel)
        (trace,) = task.source.traces()
        result = with_net(trace, task.model, task.name)
    else:
        trace = task.source.trace(task.part)
        machine = machine_of(cluster_of(task.source.machine))
        result = replay(trace.jobs, machine, _counting(task.model, task.name, trace), contention=True)
    assert result.model_use is not None
    return trace.name, result.model_use


def _counting(model: OrderModel | PairModel, name: str, trace: Trace) -> Any:
    """Return the policy of a model with its net, which counts its decisions since the first job that counts."""
    policy = guarded(model, name).replayed(0)
    if trace.counts is not None:
        policy.model_use.since = float(trace.jobs.submit_time[trace.counts].min())
    return policy


def uses_of(tasks: Sequence[NetTask], workers: int | None) -> list[tuple[str, str, ModelUse]]:
    """Return the names of model and trace, and how far the model decided, of each task. Raises ConfigError.

    Args:
        tasks: the replays.
        workers: processes; None: as many as there are cores.
    """
    answers = dict[str, Any]()
    with worker_pool(workers, None, len(tasks)) as crew:
        for batch in crew.each(net_task, tasks):
            for task, answer in batch:
                if isinstance(answer, Failure):
                    raise ConfigError(Path(task.source.path).name, "", answer.why)
                answers[task.identity] = answer
    return [(task.name, *answers[task.identity]) for task in tasks]


def show_uses(screen: Screen, uses: Sequence[tuple[str, str, ModelUse]]) -> None:
    """Print how far models decided, under their names."""
    for name, trace, use in uses:
        first, *reasons = use_lines(use)
        screen.put(*hanging("  ", f"{name} on {trace}: {first}", screen.cells))
        for reason in reasons:
            screen.put(*hanging("    ", reason, screen.cells))
