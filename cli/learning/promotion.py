"""`pilotfish model report`: whether a model has earned its place at a site, from the site's own jobs.

Rule: nothing is changed. The service promotes no model by itself: the report offers the line for its configuration, and
a person writes it. What is not known counts as not shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...formats.models.order_model import OrderModel
from ...formats.text import count
from ...learning.day_gain import DayGain, day_gain
from ...simulate.queue_policies.model_use import ModelUse
from ...simulate.queue_policies.policy_specs import parse
from ...simulate.replay.replay import replay
from ...simulate.world.known_run_times import PREDICTED, WALLTIME
from ...trust import as_account, owner_of
from ..output.model_decisions import use_lines
from ..output.text import Screen, TextColumn, hanging, numbers
from ..streams import show
from .learning_tasks import TraceInput, predicted
from .net_replays import with_net
from .verdict_report import JUDGED, is_unseen

#: What a model has to show: days and jobs, and how much longer the longest wait may be.
LEAST_DAYS, LEAST_JOBS, LONGEST = 7, 1000, 1.25
#: How the table names the objective `mix`, and marks that of the training.
BOTH, MARK = "mean slowdown and wait", "*"
#: The most changes of mode that are read.
_CHANGES = 100_000


@dataclass(frozen=True, slots=True)
class Promotion:
    """The verdict of a site's jobs on a model.

    Args:
        gain: over its baseline.
        trips: how often the guard rail of the service overruled a model or its forecasts; None: it was not asked.
        missing: what is not shown; nothing: the model has earned its place.
        use: how far the model decided itself.
    """

    gain: DayGain
    trips: int | None
    missing: Sequence[str]
    use: ModelUse


def promotion_of(model: OrderModel, file: Path, source: TraceInput, trips: int | None) -> Promotion:
    """Replay a site's jobs under a model and under its baseline. Raises ConfigError, OSError.

    Args:
        model: the model.
        file: its file.
        source: the jobs.
        trips: see `Promotion`.
    """
    (trace,) = source.traces()
    run_times = predicted(trace) if model.baseline.run_times == PREDICTED else WALLTIME
    policy: Any = parse(model.baseline.policy)
    baseline = replay(trace.jobs, trace.processors, policy, run_times=run_times)
    learned = with_net(trace, model, str(file))
    assert learned.model_use is not None
    gain = day_gain(trace, learned, baseline)
    high = gain.ratios[model.objective][2]
    needs = [
        (gain.days >= LEAST_DAYS, f"{count(LEAST_DAYS, 'day')} with jobs; these are {gain.days}"),
        (gain.jobs >= LEAST_JOBS, f"{count(LEAST_JOBS, 'job')}; these are {gain.jobs:,}"),
        (is_unseen(model, source.digests[0], source.part), "jobs that it was not trained on"),
        (high < 1.0, f"an interval that ends below 1; it ends at {high:.2f}"),
        (
            gain.longest_wait <= LONGEST,
            f"a longest wait of at most {LONGEST} of the baseline's; it is {gain.longest_wait:.2f}",
        ),
        (trips == 0, "a service in shadow whose guard rail never tripped"),
    ]
    missing = [text for is_shown, text in needs if not is_shown]
    return Promotion(gain, trips, missing, learned.model_use)


def trips_of(config: Path) -> int:
    """Return how often the guard rail of a service let a plain policy decide. Raises ConfigError, OSError.

    Args:
        config: the configuration of the service.
    """
    from ...daemon.config import load_config
    from ...daemon.mode_log import GUARD_RAIL
    from ...daemon.state.audit import AuditQuestion
    from ...daemon.state.journal import Journal
    from ...simulate.errors import ConfigError

    journal_file = load_config(config).journal
    if not journal_file.is_file():
        raise ConfigError(str(journal_file), "", "there is no such file", "the journal of a service that has run")
    with as_account(owner_of(journal_file)), closing(Journal(journal_file, in_memory=True)) as journal:
        lines = journal.audited(AuditQuestion(most=_CHANGES))
    return sum(
        line["kind"] == "mode" and line["by"] == GUARD_RAIL and (line["after"] or {}).get("mode") == "fallback"
        for line in lines
    )


def show_promotion(screen: Screen, file: Path, site: str, model: OrderModel, promotion: Promotion) -> None:
    """Print the report."""
    gain, decided = promotion.gain, use_lines(promotion.use)
    screen.title(f"{file.name} on {site}: {count(gain.jobs, 'job')}, {count(gain.days, 'day')}")
    screen.put(f"baseline: {model.baseline.policy}, run times: {model.baseline.run_times}")
    screen.put(f"{count(gain.moved, 'job')} would start at another time", "")
    rows = [
        (
            JUDGED.get(name, BOTH),
            f"{ratio:.2f}",
            f"{low:.2f} to {high:.2f}",
            MARK if name == model.objective else "",
        )
        for name, (ratio, low, high) in gain.ratios.items()
    ]
    rows.append(("longest wait", f"{gain.longest_wait:.2f}", "", ""))
    screen.table([TextColumn("OF THE BASELINE'S"), *numbers("RATIO", "95 %"), TextColumn("")], rows)
    screen.put(f"{MARK} what it was trained to lower")
    means = "Ratios of the means over all jobs as they came, with the model's net; intervals are over days. "
    one_case = "That is one schedule: `evaluate` says how the ratio differs among shaken copies, without the net."
    screen.put(*hanging("", means + one_case, screen.cells))
    for head, line in zip(("decided: ", *[" " * 9] * len(decided)), decided, strict=False):
        screen.put(*hanging(head, line, screen.cells))
    trips = "not known (--config)" if promotion.trips is None else count(promotion.trips, "time")
    screen.put(f"guard rail of the service tripped: {trips}", "")
    if promotion.missing:
        screen.put("Not to be promoted yet. It lacks:")
        for text in promotion.missing:
            screen.put(*hanging("- ", text, screen.cells))
        return
    screen.put("It has earned its place. For the configuration of the service:")
    for line in lines_for(file, model):
        show(f"  {line}")  # a path stays whole


def lines_for(file: Path, model: OrderModel) -> list[str]:
    """Return the lines of the service's configuration that promote a model."""
    proof = [] if model.is_proven else ["allow_unproven: true  # or write a verdict: pilotfish evaluate --save"]
    return [f"policy: learned:{file.resolve()}", *proof]
