"""Contests of `evaluate`: models of one kind and their rivals, on copies of traces.

Rule: the models of one command are training seeds of one recipe, so they are of one kind, and those that choose pairs
have one objective and one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...formats.model_file import Model
from ...formats.models.order_model import OrderModel
from ...formats.models.pair_model import PairModel
from ...formats.models.rule_model import RuleModel
from ...formats.models.verdicts import IN_TRAINING
from ...formats.replays.machines import read_machine
from ...learning.contenders import rivals
from ...learning.environments.pairs import PairNode
from ...learning.evaluation import Scores
from ...learning.pair_contenders import easy_orders, rules_with_mask
from ...simulate.errors import ConfigError
from ...simulate.learned.pair_network import KERNEL as PAIR_SCORES
from ...simulate.model.cluster import Cluster
from ...simulate.queue_policies.learned_order import LearnedOrder
from ...simulate.world.known_run_times import PREDICTED
from ...simulate.world.rule_options import KERNEL as RULE_CHOICES
from ..output.sweep import SweepProgress
from ..streams import note
from ..sweeps.tasks import Failure
from ..worker_options import worker_pool
from .learning_tasks import ScoreTask, TraceInput, joined, score_task
from .net_replays import NetTask
from .pair_tasks import PairInput, PairScoreTask, pair_score_task
from .rule_tasks import RuleInput, RuleScoreTask, pairs_on, rule_score_task

#: Copies that one task replays.
_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Judged:
    """A trace that models are judged on; `name` for people, `digest` of its file, and the `tasks` that replay it."""

    name: str
    digest: str
    tasks: Sequence[ScoreTask] | Sequence[PairScoreTask] | Sequence[RuleScoreTask]


@dataclass(frozen=True, slots=True)
class Contest:
    """Models with their rivals.

    Args:
        learned: names of the models.
        sides: how a rival is chosen -> the rivals among which the best one is.
        numbers: what is judged, keys of `Scores.numbers`; tables are sorted by the first.
        kernels: that the replays need.
        traces: what they are judged on.
        carry_out: returns the numbers of a task.
        unit: what is replayed of a trace: shaken `copies`, or `windows`, which prove nothing.
        nets: replays of the models with their nets, as far as they have nets.
        has_nets: the tables are about models with their nets, too.
    """

    learned: Sequence[str]
    sides: Mapping[str, Sequence[str]]
    numbers: Sequence[str]
    kernels: Sequence[str]
    traces: Sequence[Judged]
    carry_out: Callable[[Any], dict[str, dict[str, list[float]]]]
    unit: str = "copies"
    nets: Sequence[NetTask] = ()
    has_nets: bool = False

    @property
    def rivals(self) -> list[str]:
        """Return all rivals."""
        return list(dict.fromkeys(name for names in self.sides.values() for name in names))

    def scores(self, workers: int | None) -> list[Scores]:
        """Replay all copies, and return the numbers of each trace. Raises ConfigError: a task failed.

        Args:
            workers: processes; None: as many as there are cores.
        """
        tasks, answers = [task for trace in self.traces for task in trace.tasks], dict[str, Any]()
        with SweepProgress(len(tasks)) as progress, worker_pool(workers, None, len(tasks)) as crew:
            for batch in crew.each(self.carry_out, tasks):
                for task, answer in batch:
                    if isinstance(answer, Failure):
                        raise ConfigError(Path(task.trace.path).name, "", answer.why)
                    answers[task.identity] = answer
                progress.ended([{"status": "done"}] * len(batch))
        return [joined(trace.name, [answers[task.identity] for task in trace.tasks]) for trace in self.traces]


def contest_of_orders(
    orders: Sequence[tuple[LearnedOrder, bool]], chosen: set[str], inputs: Sequence[TraceInput], copies: int, *,
    predicting: bool,
) -> Contest:  # fmt: skip
    """Return the contest of learned orders. Raises ConfigError, OSError: a trace cannot be read.

    Args:
        orders: each with whether it knows predicted run times.
        chosen: names of the rivals that were best in training.
        inputs: one for each trace.
        copies: of each trace.
        predicting: rivals may have predicted run times.
    """
    if not predicting and any(predicts for _, predicts in orders):
        predicting = True
        note("--no-predictions: a model knows predicted run times, so its rivals do, too")
    names = [one.name for one in rivals(max(order.max_wait for order, _ in orders), predicting)]
    traces = [
        Judged(
            source.traces()[0].name, source.digests[0],
            [ScoreTask(source, tuple(orders), predicting, number, first) for first, number in _parts(copies)],
        )
        for source in inputs
    ]  # fmt: skip
    sides = {IN_TRAINING: sorted(chosen.intersection(names)), "best in hindsight": names}
    kernels = ("queue.easy", "queue.easy_rich", "queue.conservative")
    return Contest([order.text for order, _ in orders], sides, ("bsld", "wait"), kernels, traces, score_task)


def contest_of_pairs(models: Mapping[Path, PairModel], traces: Sequence[Path], part: str, copies: int) -> Contest:
    """Return the contest of models that choose pairs.

    Args:
        models: by file.
        traces: their files.
        part: of each trace, as of --part.
        copies: of each trace.

    Raises:
        ConfigError: a model has no net, or is of another machine or objective; a trace is wrong.
        OSError: a trace cannot be read.
    """
    (_, first), *_ = models.items()
    for path, model in models.items():
        model.guarded(str(path), "")  # what was seen in training may be missing
        for key in ("objective", "nodes", "sight"):
            if getattr(model, key) != getattr(first, key):
                raise ConfigError(str(path), key, "not as that of the first model", "seeds of one training")
    nodes = tuple(PairNode(*node) for node in first.nodes)
    named = tuple((str(path), model) for path, model in models.items())
    sources = [PairInput.of(path, nodes) for path in traces]
    judged = [
        Judged(
            source.trace(part).name, source.digest,
            [PairScoreTask(source, part, named, number, start) for start, number in _parts(copies)],
        )
        for source in sources
    ]  # fmt: skip
    orders, rules = [*easy_orders()], [*rules_with_mask(first.sight, nodes)]
    sides = {
        IN_TRAINING: sorted({_name_of(model.baseline) for model in models.values()}),
        "best order of EASY in hindsight": orders, "best rule in hindsight": rules,
    }  # fmt: skip
    numbers = tuple(dict.fromkeys((first.objective, "wait")))
    nets = [NetTask(source, part, name, model) for source in sources for name, model in named]
    return Contest(
        [str(path) for path in models], sides, numbers, ("mapping.entry", PAIR_SCORES), judged, pair_score_task,
        nets=nets, has_nets=True,
    )  # fmt: skip


def contest_of_rules(
    models: Mapping[Path, RuleModel], traces: Sequence[Path], part: str, windows: int, cluster: Cluster
) -> Contest:  # fmt: skip
    """Return the contest of models that choose pairs of rules, against each pair alone.

    Args:
        models: by file.
        traces: their files.
        part: of each trace, as of --part.
        windows: of each trace, spread evenly, as long as the episodes of the training.
        cluster: the nodes on which all are judged.

    Raises:
        ConfigError: a model is of another objective or episode than the first, or a trace is wrong.
        OSError: a trace cannot be read.
    """
    (_, first), *_ = models.items()
    for path, model in models.items():
        if (model.objective, model.trained.get("episode")) != (first.objective, first.trained.get("episode")):
            raise ConfigError(str(path), "objective", "it or the episode is not that of the first model", "the same")
    named = tuple((str(path), model) for path, model in models.items())
    sources = [RuleInput.of(path, cluster) for path in traces]
    judged = [
        Judged(
            source.name, source.digest,
            [RuleScoreTask(source, part, named, windows, start, number) for start, number in _parts(windows)],
        )
        for source in sources
    ]  # fmt: skip
    names = list(pairs_on(cluster))
    sides = {IN_TRAINING: sorted({model.baseline for model in models.values()}), "best in hindsight": names}
    numbers = tuple(dict.fromkeys((first.objective, "wait")))
    kernels = (RULE_CHOICES, "mapping.entry")
    return Contest([str(path) for path in models], sides, numbers, kernels, judged, rule_score_task, "windows")


def contest_of(
    models: Mapping[Path, Model], traces: Sequence[Path], part: str, copies: int, processors: int | None, *,
    predicting: bool, cluster: Path | None = None,
) -> Contest:  # fmt: skip
    """Return the contest of some models. Raises ConfigError, OSError, see the two kinds; or they are of both kinds.

    Args:
        models: by file.
        traces: files and folders of sites.
        part: of each trace, as of --part.
        copies: of each trace.
        processors: of the machine of orders; None: as each trace says.
        predicting: rivals may have predicted run times.
        cluster: file of the nodes for models that choose rules; None: not given.
    """
    orders = {path: model for path, model in models.items() if isinstance(model, OrderModel)}
    pairs = {path: model for path, model in models.items() if isinstance(model, PairModel)}
    rules = {path: model for path, model in models.items() if isinstance(model, RuleModel)}
    if max(len(orders), len(pairs), len(rules)) < len(models):
        path = next(iter([*rules, *pairs]))
        raise ConfigError(
            str(path), "kind", f"{models[path].kind}, and another model is of another kind", "models of one kind"
        )
    if rules:
        if cluster is None:
            path, model = next(iter(rules.items()))
            raise ConfigError(str(path), "kind", f"{model.kind}: on which nodes is not known", "--cluster FILE")
        return contest_of_rules(rules, traces, part, copies, read_machine(cluster))
    if cluster is not None:
        raise ConfigError("evaluate", "--cluster", "no model here chooses rules", "models of the kind rule-choice")
    if pairs:
        return contest_of_pairs(pairs, traces, part, copies)
    named = [(model.order(str(path)), model.run_times == PREDICTED) for path, model in orders.items()]
    chosen = {_name_of(model.baseline.policy, model.baseline.run_times) for model in orders.values()}
    inputs = [TraceInput.of([path], processors, part) for path in traces]
    contest = contest_of_orders(named, chosen, inputs, copies, predicting=predicting)
    guarded_ones = [(str(path), model) for path, model in orders.items() if model.seen]
    return replace(contest, nets=[NetTask(source, part, *one) for source in inputs for one in guarded_ones])


def _parts(copies: int) -> list[tuple[int, int]]:
    """Return the first copy of each task, and its number of copies."""
    return [(first, min(_AT_ONCE, copies - first)) for first in range(0, copies, _AT_ONCE)]


def _name_of(policy: str, run_times: str = "") -> str:
    """Return how tables name a baseline."""
    name = policy if "order=" in policy else f"{policy}:order=fcfs"
    return f"{name}, predicted" if run_times == PREDICTED else name
