"""The progress of a run on stderr: a picture redrawn in place on a terminal, lines elsewhere.

Rule: it shows what the queue contains and nothing else; a closed stderr does not stop the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ...daemon.report.cycle_report import CycleReport
from ...daemon.state.queue import Entry, Submission
from ...formats.hostlist import fold
from ...formats.text import clean, count, fit, pad, seconds, width
from ...simulate.model.cluster import Cluster
from ...simulate.model.plan import Plan, Start
from ...simulate.model.snapshot import JobState
from ..streams import print_diagnostic

if TYPE_CHECKING:
    from rich.console import Console, Group

_MOST_NODES = 24
_BAR = 24


class View(Protocol):
    """A view of a run."""

    def show(self, report: CycleReport | None) -> None:
        """Show the report of a cycle; None: only time has passed."""
        ...

    def close(self) -> None:
        """Restore the terminal."""
        ...


def view(submission: Submission, plan: Plan, cluster: Cluster, clock: Callable[[], float], *, live: bool) -> View:
    """Return a picture if `live` and stderr is a terminal, else lines.

    Args:
        submission: the run's jobs.
        plan: the forecast.
        cluster: the nodes.
        clock: seconds, monotonic.
        live: draw a picture, if possible.
    """
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if live and console.is_terminal and not console.is_dumb_terminal:
        return Picture(submission, plan, cluster, clock, console)
    return Lines(submission, plan, clock)


class Lines:
    """One line for each start and end: `12.5 s  end  align on cpu0: completed in 4.1 s (forecast 4.0 s)`."""

    def __init__(self, submission: Submission, plan: Plan, clock: Callable[[], float]) -> None:
        self._clock, self._began = clock, clock()
        self._planned = {job.id: job for job in plan.jobs}
        self._shown: set[str] = set()
        self._submission = submission

    def show(self, report: CycleReport | None) -> None:
        """Print the starts and ends since the last call."""
        if report is None:
            return
        for entry in self._submission.entries.values():
            if entry.state.ended and entry.key not in self._shown:
                self._shown.add(entry.key)
                self._print("end", self._ending(entry))
        for applied in report.applied:
            if isinstance(applied.action, Start) and not applied.error:
                self._print("start", f"{_name(applied.action.job.id)} on {fold(applied.action.nodes)}")

    def _ending(self, entry: Entry) -> str:
        if entry.start_time is None or entry.finish_time is None or entry.state is JobState.CANCELLED:
            return f"{_name(entry.job.id)}: {entry.reason or entry.state}"
        planned = self._planned[entry.job.id]
        run_time, forecast = entry.finish_time - entry.start_time, planned.finish_time - planned.start_time
        how = f"{entry.state} in {seconds(run_time)} (forecast {seconds(forecast)})"
        return f"{_name(entry.job.id)} on {fold(entry.nodes)}: {how}"

    def _print(self, kind: str, text: str) -> None:
        print_diagnostic(f"{self._clock() - self._began:7.2f} s  {kind:5}  {text}")

    def close(self) -> None:
        """Nothing to restore."""


def _name(job: str, cells: int = 40) -> str:
    return fit(clean(job), cells)


class Picture:
    """Progress, time and forecast, and the jobs on each node, redrawn in place."""

    def __init__(
        self,
        submission: Submission,
        plan: Plan,
        cluster: Cluster,
        clock: Callable[[], float],
        console: Console,
    ) -> None:
        from rich.live import Live

        self._submission, self._plan, self._cluster, self._clock = submission, plan, cluster, clock
        self._console, self._began = console, clock()
        self._planned = {job.id: job for job in plan.jobs}
        self._started: dict[str, float] = {}
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def show(self, report: CycleReport | None) -> None:
        """Redraw the picture."""
        for applied in report.applied if report else ():
            if isinstance(applied.action, Start) and not applied.error:
                self._started[applied.action.job.id] = self._clock()
        self._live.update(self._draw(), refresh=True)

    def close(self) -> None:
        """Remove the picture; the tables follow."""
        self._live.stop()

    def _draw(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        cells = min(self._console.width, 120)
        ascii_only = self._console.options.ascii_only
        running: dict[str, list[str]] = {node.name: [] for node in self._cluster.nodes}
        for entry in self._submission.entries.values():
            if entry.state is JobState.RUNNING:
                for name in entry.nodes:
                    running[name].append(self._job(entry))
        names = [clean(name) for name in running]
        margin = min(max(map(width, names)), cells // 4)
        lines = [Text(fit(self._progress(ascii_only), cells), style="bold")]
        for name, jobs in list(zip(names, running.values(), strict=True))[:_MOST_NODES]:
            what = ", ".join(jobs) or "idle"
            text = f"{pad(name, margin)}  {fit(what, cells - margin - 2)}"
            lines.append(Text(text, style="" if jobs else "dim"))
        if len(names) > _MOST_NODES:
            lines.append(Text(f"{count(len(names) - _MOST_NODES, 'further node')}", style="dim"))
        return Group(*lines)

    def _job(self, entry: Entry) -> str:
        planned = self._planned[entry.job.id]
        ran = self._clock() - self._started.get(entry.job.id, self._clock())
        return f"{_name(entry.job.id, 24)} {ran:.1f}/{planned.finish_time - planned.start_time:.1f} s"

    def _progress(self, ascii_only: bool) -> str:
        entries = self._submission.entries.values()
        done = sum(entry.state.ended for entry in entries)
        full = round(_BAR * done / len(entries))
        bar = ("#" if ascii_only else "█") * full + ("." if ascii_only else "░") * (_BAR - full)
        elapsed = self._clock() - self._began
        return f"{bar} {done}/{len(entries)} jobs, {elapsed:.1f} s of {self._plan.makespan:.1f} s forecast"
