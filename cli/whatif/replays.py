"""The replays of one `whatif`: which there are, carrying them out, and the outcomes of those that ended.

Rule: the site and a scenario are compared over the seeds that both have ended with, in the order of the seeds, so that
the result does not depend on who replayed what when, nor on an interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ...formats.site.site_folder import time_zone
from ...simulate.slurm.site_outcome import SiteOutcome, replayed_outcome
from ...simulate.slurm.twin import SiteReplay
from ..output.sweep import SweepProgress
from ..sweeps.run_journal import JournalKind, Numbers, RunJournal
from ..sweeps.tasks import Failure
from .replay_tasks import RecordedSite, ReplayTask, decoded, encoded, replay_task
from .scenarios import Scenario

if TYPE_CHECKING:
    from ...simulate.slurm.site import Site
    from ..sweeps.workers import WorkerPool


class Replays:
    """Replays of a site under each scenario, with each seed.

    Args:
        source: the files of the site.
        site: the site as it was read.
        scenarios: the first has no changes.
        seeds: of the replays of each scenario.

    Raises:
        typer.BadParameter, ConfigError: a change is not possible on this site.
    """

    def __init__(self, source: RecordedSite, site: Site, scenarios: Sequence[Scenario], seeds: Sequence[int]) -> None:
        self.site, self.scenarios, self.seeds, self._source = site, scenarios, seeds, source
        self.unknown = [self.changed(one).unknown for one in scenarios]
        self.failures = dict[str, str]()  # identity of a replay -> why it failed
        self._ended = dict[str, Numbers]()

    def changed(self, scenario: Scenario) -> Site:
        """Return the site with the changes of a scenario."""
        with scenario.errors():
            folder, zone = Path(self._source.trace.path).parent, time_zone(self._source.zone)
            return scenario.change.changed(self.site, folder, zone)

    def journal(self, path: Path | None) -> AbstractContextManager[RunJournal | None]:
        """Open the journal, if there is one, and use what it has. Raises ConfigError, OSError."""
        if path is None:
            return nullcontext()
        journal = RunJournal(path, JournalKind("whatif", self._source.inputs))
        self._ended |= journal.done
        return journal

    def first(self, journal: RunJournal | None) -> tuple[Site, SiteReplay]:
        """Replay the first scenario, or the site without any, with the first seed, in this process."""
        scenario, seed = self.scenarios[:2][-1], self.seeds[0]
        site = self.changed(scenario)
        replay = scenario.change.replay(site, seed)
        task = ReplayTask(self._source, seed, scenario.change)
        if task.identity not in self._ended:
            self._add({task.identity: encoded(replayed_outcome(site, replay))}, journal)
        return site, replay

    def todo(self) -> list[ReplayTask]:
        """Return the replays that have not ended, each once: all scenarios with a seed before the next seed."""
        tasks = (ReplayTask(self._source, seed, one.change) for seed in self.seeds for one in self.scenarios)
        return list({task.identity: task for task in tasks if task.identity not in self._ended}.values())

    def conduct(self, pool: WorkerPool, tasks: Sequence[ReplayTask], journal: RunJournal | None) -> None:
        """Carry out replays, and show the progress. Raises KeyboardInterrupt; what ended is kept.

        Args:
            pool: the workers.
            tasks: of `todo`.
            journal: gets the outcomes.
        """
        with SweepProgress(len(tasks)) as progress, pool as crew:
            for batch in crew.each(replay_task, tasks):
                good = {task.identity: answer for task, answer in batch if not isinstance(answer, Failure)}
                self.failures |= {task.identity: one.why for task, one in batch if isinstance(one, Failure)}
                self._add(good, journal)
                progress.ended([{"status": "done" if task.identity in good else "failed"} for task, _ in batch])

    def _add(self, ended: dict[str, Numbers], journal: RunJournal | None) -> None:
        if journal is not None and ended:
            journal.add(ended)
        self._ended |= ended

    def outcomes(self, *scenarios: Scenario) -> list[list[SiteOutcome]]:
        """Return the outcomes of some scenarios, over the seeds with which all of them ended."""
        names = [[ReplayTask(self._source, seed, one.change).identity for seed in self.seeds] for one in scenarios]
        complete = [row for row in zip(*names, strict=True) if all(name in self._ended for name in row)]
        return [[decoded(self._ended[row[side]]) for row in complete] for side in range(len(scenarios))]
