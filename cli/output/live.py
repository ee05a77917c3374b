"""The progress of a run on stderr: a picture redrawn in place on a terminal, lines elsewhere.

Rule: it shows only what the queue contains; a closed stderr does not stop the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ...daemon.report.cycle_report import CycleReport
from ...daemon.state.queue import Submission
from ...daemon.state.queue_entry import Entry
from ...formats.hostlist import fold
from ...formats.text import clean, count, fit, pad, seconds, width
from ...simulate.model.cluster import Cluster
from ...simulate.model.plan import Plan, Start
from ...simulate.model.snapshot import JobState
from ..streams import print_after
from .text import cells_of

_MOST_NODES = 24
_BAR = 24


def view(submission: Submission, plan: Plan, cluster: Cluster, clock: Callable[[], float], *, live: bool) -> Lines:
    """Return a picture if `live` and stderr is a terminal, else lines.

    Args:
        submission: the run's jobs.
        plan: the first one.
        cluster: the nodes.
        clock: seconds, monotonic.
        live: draw a picture, if possible.
    """
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if live and console.is_terminal and not console.is_dumb_terminal:
        return Picture(submission, plan, clock, cluster, console)
    return Lines(submission, plan, clock)


class Lines:
    """One line for each start and end: `12.5 s  end  align on cpu0: completed in 4.1 s (forecast 4.0 s)`."""

    def __init__(self, submission: Submission, plan: Plan, clock: Callable[[], float]) -> None:
        self._submission, self._plan = submission, plan
        self._clock, self._began = clock, clock()
        self._shown: set[str] = set()

    def show(self, report: CycleReport | None) -> None:
        """Print the starts and ends since the last call; without a report, only time has passed."""
        if report is None:
            return
        for entry in self._submission.entries.values():
            if entry.state.ended and entry.key not in self._shown:
                self._shown.add(entry.key)
                self._print("end", self._ending(entry))
        for start in _starts(report):
            self._print("start", f"{_name(start.job.id)} on {_name(fold(start.nodes))}")

    def close(self) -> None:
        """Restore the terminal."""

    def _ending(self, entry: Entry) -> str:
        if entry.start_time is None or entry.finish_time is None or entry.state is JobState.CANCELLED:
            return f"{_name(entry.job.id)}: {entry.reason or entry.state}"
        ending = f"{entry.state} in {seconds(entry.finish_time - entry.start_time)}"
        if entry.forecast:
            ending += f" (forecast {seconds(entry.forecast.run_time)})"
        return f"{_name(entry.job.id)} on {_name(fold(entry.nodes))}: {ending}"

    def _print(self, kind: str, text: str) -> None:
        print_after(f"{self._clock() - self._began:7.2f} s  {clean(kind):5}  ", text)


def _starts(report: CycleReport | None) -> Iterator[Start]:
    for applied in report.applied if report else ():
        if isinstance(applied.action, Start) and not applied.error:
            yield applied.action


def _name(name: str, cells: int = 40) -> str:
    return fit(clean(name), cells)


class Picture(Lines):
    """Progress, time and forecast, and the jobs on each node, redrawn in place."""

    def __init__(
        self, submission: Submission, plan: Plan, clock: Callable[[], float], cluster: Cluster, console: Console
    ) -> None:
        super().__init__(submission, plan, clock)
        self._cluster, self._console = cluster, console
        self._started: dict[str, float] = {}
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def show(self, report: CycleReport | None) -> None:
        """Redraw the picture."""
        self._started |= {start.job.id: self._clock() for start in _starts(report)}
        self._live.update(self._draw(), refresh=True)

    def close(self) -> None:
        """Remove the picture; the tables follow."""
        self._live.stop()

    def _draw(self) -> Group:
        cells = cells_of(self._console)
        running: dict[str, list[str]] = {clean(node.name): [] for node in self._cluster.nodes}
        for entry in self._submission.entries.values():
            if entry.state is JobState.RUNNING:
                for name in entry.nodes:
                    running[clean(name)].append(self._job(entry))
        margin = min(max(map(width, running)), cells // 4)
        lines = [Text(fit(self._progress(), cells), style="bold")]
        for name, jobs in list(running.items())[:_MOST_NODES]:
            text = f"{pad(name, margin)}  {fit(', '.join(jobs) or 'idle', cells - margin - 2)}"
            lines.append(Text(text, style="" if jobs else "dim"))
        if len(running) > _MOST_NODES:
            lines.append(Text(f"{count(len(running) - _MOST_NODES, 'further node')}", style="dim"))
        return Group(*lines)

    def _job(self, entry: Entry) -> str:
        ran = self._clock() - self._started.get(entry.job.id, self._clock())
        forecast = f"/{entry.forecast.run_time:.1f}" if entry.forecast else ""
        return f"{_name(entry.job.id, 24)} {ran:.1f}{forecast} s"

    def _progress(self) -> str:
        entries = self._submission.entries.values()
        ended = sum(entry.state.ended for entry in entries)
        full, empty = "#." if self._console.options.ascii_only else "█░"
        bar = (full * round(_BAR * ended / len(entries))).ljust(_BAR, empty)
        elapsed = self._clock() - self._began
        return f"{bar} {ended}/{count(len(entries), 'job')}, {elapsed:.1f} s of {self._plan.makespan:.1f} s forecast"
