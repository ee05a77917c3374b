"""`pilotfish whatif --adapter slurm`: what the queue of a running Slurm does in the next day, as it is and changed.

Rule: Slurm is only asked, each file once; nothing is written. Every scenario has the same draws of run times and the
same phases of the clocks, so a difference is one of the scenario. What is not known is said.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...formats.site.site_file_list import PRESENT
from ...simulate.errors import ConfigError
from ..kernel_loading import load_kernels
from ..output.present_waits import Drain, PresentQueue, PresentScenario
from ..streams import warn
from ..usage_errors import adapter_errors
from .change_options import ChangeOptions
from .scenarios import UNCHANGED, Scenario

if TYPE_CHECKING:
    from ...profiles.prediction.site_run_times import SiteRunTimes
    from ...profiles.prediction.start_hindcasts import StartBounds
    from ...simulate.slurm.present import Present, SiteOutlook
    from ...simulate.slurm.site import Site

#: How far is looked ahead, and how far back for run times, seconds. Seconds until a command is given up.
HORIZON_S, PAST_S, PATIENCE_S = 86_400.0, 7 * 86_400.0, 60.0
_AS_OF = re.compile(r"Configuration data as of (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")


def present_queue(
    texts: Mapping[str, str], choices: Sequence[Scenario], zone: str, seeds: range, workers: int = 1
) -> PresentQueue:  # fmt: skip
    """Let the queue of a site go on.

    Args:
        texts: what Slurm prints of its present, and `sacct.psv` of its past, by name of the file.
        choices: scenarios.
        zone: name of the time zone of the times in changes.
        seeds: of the draws.
        workers: scenarios that go on at the same time.

    Raises:
        ConfigError: the texts do not describe a site, or a scenario is not possible.
    """
    from ...formats.site.site_folder import read_site, time_zone
    from ...profiles.prediction.site_run_times import SiteRunTimes
    from ...profiles.prediction.start_hindcasts import bounds_from_past
    from ...simulate.slurm.arrivals import Arrivals
    from ...simulate.slurm.present import Present, present_site

    clock = time_zone(zone)
    past = texts.get("sacct.psv", "")
    texts = {name: text for name, text in texts.items() if name != "sacct.psv"}
    now = _server_time(texts["scontrol_config.txt"])
    load_kernels("bars.columns", "slurm.site_requests")
    site = present_site(read_site(texts))
    ended = read_site({**texts, "scontrol_job.txt": "", "sacct.psv": past}).jobs if past.strip() else ()
    arrivals = Arrivals((*ended, *site.jobs), now) if ended else None
    base, first = Present(site, now, arrivals), Scenario(UNCHANGED, ChangeOptions())
    ran_s = np.where(base.runs, np.maximum(now - base.start, 1.0), 0.0)
    run_times = SiteRunTimes(ended, base.site.jobs, base.limit_s, ran_s)
    bounds = bounds_from_past(site, (*ended, *site.jobs) if ended else (), now)

    def outcome(scenario: Scenario) -> PresentScenario:
        with scenario.errors():
            changed = scenario.change.changed(site, texts, clock, now)
        present = base if scenario is first else base.changed(changed)
        return _outcome(scenario, present, run_times, bounds, seeds, site)

    with ExitStack() as stack:
        outcomes: Callable[..., Iterable[PresentScenario]] = map
        if workers > 1 and choices:  # compiled passes of several threads run at the same time
            outcomes = stack.enter_context(ThreadPoolExecutor(workers)).map
        scenarios = [*outcomes(outcome, (first, *choices))]
    waiting = np.flatnonzero(base.waits).tolist()
    predicted = int(run_times.is_predicted[base.runs | base.waits].sum())
    running = int(base.runs.sum())
    return PresentQueue(now, site, waiting, running, run_times.learned, predicted, len(seeds), bounds.starts, scenarios)


def present_texts(adapter: str | None, config: Path | None) -> dict[str, str]:
    """Ask Slurm for its present, and for the jobs that ended lately.

    Args:
        adapter: name of the resource manager; None: that of `config`.
        config: configuration of the service; None: none.

    Raises:
        AdapterError: Slurm cannot be asked.
        ConfigError: it is not Slurm, or the configuration is wrong.
    """
    from ...adapters.slurm.site_commands import site_texts
    from ...adapters.slurm.transport.runner import CommandRunner
    from ..inputs import configured_adapter

    name, settings, _ = configured_adapter(adapter, config)
    if name != "slurm":
        raise ConfigError("--adapter", "", f"{name!r} has no rules that are known", "slurm")
    now = time.time()
    with adapter_errors(config):
        run = CommandRunner(max(PATIENCE_S, float(settings.get("timeout_s", 0.0))))
        answers = site_texts(run, (*PRESENT, "sacct.psv"), now - PAST_S, now)
    warn(*(f"{file}: {reason}" for file, reason in answers.missing.items()))
    return answers.texts


def _server_time(text: str) -> float:
    """Return the time of Slurm's clock when it showed its configuration, epoch seconds; else that of this machine."""
    from ...formats.slurm_values import moment

    match = _AS_OF.search(text)
    return (moment(match[1]) if match else None) or time.time()


def _outcome(
    scenario: Scenario, present: Present, run_times: SiteRunTimes, bounds: StartBounds, seeds: range, site: Site
) -> PresentScenario:  # fmt: skip
    from ...simulate.model.plan import LEVEL
    from ...simulate.slurm.arrivals import quantiles

    waits = present.waits
    outlooks = [present.outlook(run_times.drawn(seed), HORIZON_S, seed) for seed in seeds]
    starts = np.array([np.nan_to_num(one.start[waits], nan=np.inf) for one in outlooks])
    low, middle, high = quantiles(starts, LEVEL)
    low, high = bounds.widened(present.now, low, middle, high)
    drains = tuple(_drains(present, outlooks, site))
    return PresentScenario(scenario.name, scenario.change.described(), present.site.unknown, middle, low, high, drains)


def _drains(present: Present, outlooks: Sequence[SiteOutlook], site: Site) -> Iterator[Drain]:
    """Yield the times in which nodes of the site take no jobs that the site itself does not have."""
    old = set(site.events)
    windows = dict[tuple[float, float], set[str]]()
    for event in present.site.events:
        if event not in old:
            end = np.inf if event.end is None else event.end
            windows.setdefault((event.start, end), set()).add(event.node)
    for (start, end), names in sorted(windows.items()):
        nodes = np.array([node.name in names for node in present.site.nodes])
        running = present.runs & outlooks[0].uses(nodes)
        late = np.zeros(len(running))
        for one in outlooks:
            late += one.uses(nodes) & (one.start < start) & (one.finish > start)
        late = late * (present.runs | present.waits) / len(outlooks)
        rows = sorted(np.flatnonzero(late).tolist(), key=lambda row: (-late[row], row))
        yield Drain(
            len(names), start, float(end), int(running.sum()), int((running & (late <= 0.5)).sum()),
            tuple((present.site.jobs[row].id, float(late[row])) for row in rows),
        )  # fmt: skip
