"""The views of the pages as an application of Textual: the cluster, the queue, the future, the guard rails.

Rule: it only reads, by the follower that the pages use, and draws the view that is looked at. Drawing never waits
for the service.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Static, TabbedContent, TabPane

from ...formats.text import clean, count
from ...simulate.errors import PilotfishError
from ...web.facts import Fact, Table, job_facts
from ...web.follower import Follower
from ...web.quality_tables import QualityTables
from .board_words import (
    JOB_HEADS,
    LIMIT,
    NODE_HEADS,
    PAST,
    PLANNED,
    RUNS,
    BoardJob,
    chosen,
    job_rows,
    moment_words,
    node_rows,
    summary,
    time_lines,
)

Ask = Callable[..., dict[str, Any]]
#: Most jobs in the table, and seconds after which the view is drawn again without a change.
MOST_ROWS, QUIET_S = 500, 15.0
#: States of jobs and spans of the future, hours, one of each is shown; a quarter of a span is the past.
STATES, SPANS_H = ("waiting", "running", "all"), (2.0, 12.0, 72.0)
_COLOURS = {PAST: "dim", LIMIT: "blue", PLANNED: "yellow", RUNS: "green"}


class JobScreen(ModalScreen[None]):
    """The story of a job.

    Args:
        key: of the job.
        ask: sends a request to the service.
    """

    BINDINGS: ClassVar[list[BindingType]] = [("escape,q", "dismiss", "Back")]

    def __init__(self, key: str, ask: Ask) -> None:
        super().__init__()
        self._key, self._ask = key, ask

    def compose(self) -> ComposeResult:
        """Make the parts."""
        with VerticalScroll(id="story"):
            yield Static(f"Job {clean(self._key)}", classes="title")
            yield Static("asking ...", id="known", markup=False)
        yield Footer()

    async def on_mount(self) -> None:
        """Ask."""
        self.query_one("#story").focus()
        self.run_worker(self._show())

    async def _show(self) -> None:
        try:
            reply = await asyncio.to_thread(self._ask, "explain", job=self._key)
        except PilotfishError as error:
            self.query_one("#known", Static).update(clean(str(error)))
            return
        story = [(record["kind"], clean(str(record["text"])), [record["time"]]) for record in reply.get("story", ())]
        self.query_one("#known", Static).update(_facts_grid([*job_facts(reply), *story], reply["time"]))


class TopApp(App[None]):
    """The views.

    Args:
        ask: sends a request to the service. Raises PilotfishError.
        clock: epoch seconds.
    """

    TITLE = "pilotfish"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: 1; background: $primary; color: $text; }
    #trouble { height: auto; background: $error; color: $text; display: none; }
    #find { display: none; }
    .line { height: auto; color: $text-muted; }
    .title { text-style: bold; }
    TabbedContent, DataTable { height: 1fr; }
    TabPane { padding: 0; }
    #story { padding: 1 2; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("1", "view('cluster')", "Cluster"),
        ("2", "view('queue')", "Queue"),
        ("3", "view('future')", "Future"),
        ("4", "view('guard')", "Guard rails"),
        ("slash", "find", "Find"),
        ("s", "state", "State"),
        ("z", "span", "Span"),
        ("q", "quit", "Quit"),
    ]

    def __init__(self, ask: Ask, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._ask, self._clock, self._ahead_s = ask, clock, 0.0
        self._follower, self._quality = Follower(ask), QualityTables(ask)
        self._state, self._span, self._words, self._shown = 0, 1, "", 0
        self._jobs = list[BoardJob]()

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield Static("asking the service ...", id="head", markup=False)
        yield Static("", id="trouble", markup=False)
        with TabbedContent(initial="cluster"):
            with TabPane("1 Cluster", id="cluster"):
                yield Static("", id="summary", classes="line", markup=False)
                yield DataTable(id="nodes", cursor_type="row")
            with TabPane("2 Queue", id="queue"):
                yield Input(placeholder="job, name, user, partition", id="find")
                yield Static("", id="queue-line", classes="line", markup=False)
                yield DataTable(id="jobs", cursor_type="row")
            with TabPane("3 Future", id="future"):
                yield Static("", id="future-line", classes="line", markup=False)
                yield DataTable(id="times", cursor_type="row")
            with TabPane("4 Guard rails", id="guard"), VerticalScroll(id="rails"):
                yield Static("", id="facts", markup=False)
                yield Static("", id="quality", markup=False)
        yield Footer()

    async def on_mount(self) -> None:
        """Begin to follow the service."""
        self.query_one("#nodes", DataTable).add_columns(*NODE_HEADS)
        self.query_one("#jobs", DataTable).add_columns(*JOB_HEADS)
        self.run_worker(self._follow())

    async def _follow(self) -> None:
        asking = asyncio.create_task(self._follower.run())
        try:
            with self._follower.looking():
                while True:
                    self._take()
                    await self._follower.news(self._shown, QUIET_S)
        finally:
            asking.cancel()

    def _take(self) -> None:
        """Show the board of this moment."""
        copy, trouble = self._follower.copy, self._follower.trouble
        line = self.query_one("#trouble", Static)
        line.display = bool(trouble)
        line.update(clean(trouble))
        if copy.version and copy.version != self._shown:
            self._shown, self._ahead_s = copy.version, copy.about["time"] - self._clock()
            self._jobs = job_rows(copy)
        if copy.version:
            self._draw()

    @property
    def _now(self) -> float:
        return self._clock() + self._ahead_s

    def _draw(self) -> None:
        """Draw the head and the view that is looked at."""
        about = self._follower.copy.about
        words = [
            clean(str(about.get("cluster", ""))),
            *(f"{name} {about.get(name, '')}" for name in ("mode", "policy", "cycle")),
        ]
        if about.get("pauses"):
            words.append("paused: " + ", ".join(pause["partition"] or "all jobs" for pause in about["pauses"]))
        self.query_one("#head", Static).update(clean("  ".join(words)))
        {"cluster": self._draw_nodes, "queue": self._draw_jobs, "future": self._draw_times, "guard": self._draw_guard}[
            self.query_one(TabbedContent).active
        ]()

    def _draw_nodes(self) -> None:
        copy = self._follower.copy
        self.query_one("#summary", Static).update(summary(copy))
        _fill(self.query_one("#nodes", DataTable), node_rows(copy.nodes))

    def _draw_jobs(self) -> None:
        jobs, now, state = list(chosen(self._jobs, self._words, STATES[self._state])), self._now, STATES[self._state]
        more = f"; the first {MOST_ROWS} are shown, find others with /" if len(jobs) > MOST_ROWS else ""
        filter_words = f", with {clean(self._words)}" if self._words else ""
        self.query_one("#queue-line", Static).update(
            f"{state}{filter_words}: {len(jobs):,} of {count(len(self._jobs), 'job')}{more}. Enter: the story of a job"
        )
        shown = jobs[:MOST_ROWS]
        _fill(self.query_one("#jobs", DataTable), [job.cells(now) for job in shown], [job["key"] for job in shown])

    def _draw_times(self) -> None:
        copy, now, hours = self._follower.copy, self._now, SPANS_H[self._span]
        names = [clean(str(name)) for name in copy.nodes.get("name", ())]
        longest = min(20, max(map(len, names), default=4))
        cells = max(10, self.size.width - longest - 7)
        begin, end = now - hours * 900.0, now + hours * 2700.0
        lines = time_lines(copy, now, begin, end, cells)
        table, place = self.query_one("#times", DataTable), int((now - begin) / (end - begin) * cells)
        axis = f"{moment_words(begin, now)} {'':<{cells}}"[:place] + "| now"
        table.clear(columns=True)
        table.add_column("NODE", width=longest)
        table.add_column(f"{axis:<{cells}}"[: cells - 12] + f"{moment_words(end, now):>12}", width=cells)
        _fill(table, [(name, _coloured(line)) for name, line in zip(names, lines, strict=True)])
        planned = sum(bool(job.waits and job["nodes"]) for job in self._jobs)
        undecided = sum(bool(job.waits and not job["nodes"]) for job in self._jobs)
        self.query_one("#future-line", Static).update(
            f"{RUNS} runs until its expected end  {LIMIT} until its limit  {PLANNED} planned  {PAST} has run. "
            f"{count(planned, 'waiting job')} with planned nodes, {undecided:,} without"
        )

    def _draw_guard(self) -> None:
        copy = self._follower.copy
        facts = copy.document(lambda uid: False)["facts"]
        self.query_one("#facts", Static).update(_facts_grid(facts, self._now))
        self.run_worker(self._show_quality(), group="quality", exclusive=True)

    async def _show_quality(self) -> None:
        try:
            tables = await self._quality.tables()
        except PilotfishError as error:
            self.query_one("#quality", Static).update(clean(str(error)))
            return
        self.query_one("#quality", Static).update(Group(*(part for table in tables for part in _table_parts(table))))

    def on_tabbed_content_tab_activated(self) -> None:
        """Draw the view that is looked at now."""
        if self._follower.copy.version:
            self._draw()
        self._focus()

    def _focus(self) -> None:
        """Let keys go to the view that is looked at, or to the field in which jobs are found."""
        view = self.query_one(TabbedContent).active
        jobs = "#find" if self.query_one("#find").display else "#jobs"
        self.query_one({"cluster": "#nodes", "queue": jobs, "future": "#times", "guard": "#rails"}[view]).focus()

    def on_resize(self) -> None:
        """Draw for another width."""
        if self._shown:
            self._draw()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Show the job on which Enter was pressed."""
        if event.data_table.id == "jobs" and event.row_key.value is not None:
            self.push_screen(JobScreen(event.row_key.value, self._ask))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Find jobs."""
        self._words = event.value
        self._draw_jobs()

    def on_input_submitted(self) -> None:
        """Go to the jobs that were found."""
        self.query_one("#jobs").focus()

    def action_view(self, view: str) -> None:
        """Show another view."""
        self.query_one(TabbedContent).active = view

    def action_find(self) -> None:
        """Show the field in which jobs are found, or empty and hide it."""
        field = self.query_one("#find", Input)
        self.action_view("queue")
        field.display = not field.display
        field.value = ""
        self.call_after_refresh(self._focus)

    def action_state(self) -> None:
        """Show the jobs of another state."""
        self._state = (self._state + 1) % len(STATES)
        self.action_view("queue")
        self._draw_jobs()

    def action_span(self) -> None:
        """Show another span of the future."""
        self._span = (self._span + 1) % len(SPANS_H)
        self.action_view("future")
        self._draw_times()


def _fill(table: DataTable[Any], rows: Sequence[Sequence[Any]], keys: Sequence[str] | None = None) -> None:
    """Replace the rows of a table; its cursor and its place stay."""
    row, place = table.cursor_row, table.scroll_y
    table.clear()
    for number, cells in enumerate(rows):
        table.add_row(*cells, key=keys[number] if keys else None)
    if rows:
        table.move_cursor(row=min(row, len(rows) - 1), scroll=False)
        table.scroll_to(y=place, animate=False)


def _coloured(line: str) -> Text:
    text = Text(line)
    for sign, colour in _COLOURS.items():
        text.highlight_words([sign], colour)
    return text


def _facts_grid(facts: Sequence[Fact], now: float) -> Grid:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(max_width=26, style="bold")
    grid.add_column()
    for name, text, times in facts:
        when = " to ".join(time.strftime("%Y-%m-%d %H:%M", time.localtime(one)) for one in times)
        relative = moment_words(times[0], now) if len(times) == 1 else ""
        grid.add_row(Text(name), Text(", ".join(filter(None, (when, relative, text)))))
    return grid


def _table_parts(table: Table) -> list[RenderableType]:
    grid = Grid(box=None, padding=(0, 1), header_style="dim")
    for place, column in enumerate(table["columns"]):
        grid.add_column(column, justify="right" if place else "left", no_wrap=bool(place))
    for row in table["rows"]:
        grid.add_row(*map(Text, row))
    when = ", " + time.strftime("%Y-%m-%d %H:%M", time.localtime(table["time"])) if table.get("time") else ""
    return [Text(f"\n{table['title']}{when}", style="bold"), *([grid] if table["rows"] else []), Text(table["text"])]
