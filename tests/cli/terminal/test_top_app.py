"""The views in a terminal: what they show at 80x24, their keys, and that a service that is away does no harm."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from pilotfish.daemon.report.board import JOB_COLUMNS, NODE_COLUMNS
from pilotfish.daemon.socket.ipc import NoDaemonError

textual = pytest.importorskip("textual")

from pilotfish.cli.terminal.top_app import MOST_ROWS, TopApp

pytestmark = pytest.mark.real  # the service is asked in threads
NOW = 1_700_000_000.0
NODE = {
    "state": "up",
    "cores": 8,
    "threads": 4,
    "jobs": 1,
    "bandwidth": 5e9,
    "memory_bandwidth": 1e10,
    "power_watts": 250.0,
}


def job(key: str, state: str = "pending", **values: Any) -> list[Any]:
    blank = dict.fromkeys(JOB_COLUMNS) | {
        "decided_by": "",
        "tasks": 1,
        "why": "",
        "name": f"name-{key[5:]}",
        "partition": "batch",
    }
    return list((blank | {"key": key, "state": state, "uid": 7, "nodes": []} | values).values())


class World:
    """A service with some nodes, a running job, a planned one and others that wait."""

    def __init__(self, nodes: int = 3, waiting: int = 2) -> None:
        self.down, self.cycle, self.asked = "", 1, list[str]()
        self.nodes = [{"name": f"n{number:03d}"} | NODE for number in range(nodes)]
        self.jobs = [
            job("rjms/1", "running", start_time=NOW - 600, finish_time=NOW + 1800, walltime=7200, nodes=[(0, 1)]),
            job("rjms/2", start_time=NOW + 3600, start_late=NOW + 5400, finish_time=NOW + 7200, nodes=[(0, 0)],
                why="a reservation of node n002", manager_start_time=NOW + 86_400),
            *(job(f"rjms/{number}", start_time=None) for number in range(3, 1 + waiting)),
        ]  # fmt: skip

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        self.asked.append(do)
        if self.down:
            raise NoDaemonError(self.down)
        if do == "accuracy":
            return {"jobs": [], "starts": []}
        if do == "card":
            return {"card": None, "why_not": "it is made tomorrow"}
        if do == "explain":
            shown = {"key": arguments["job"], "state": "pending", "walltime": 7200}
            story = [{"time": NOW, "kind": "wait", "text": "power is short\x1b[2J"}]
            return {"job": shown, "time": NOW, "owner": "ada", "waits": "too few nodes", "story": story}
        guard = {"median_factor": 1.25, "bound": 1.5, "model": "max-min", "source": "measured"}
        about = {"mark": f"{self.cycle}", "time": NOW, "cluster": "here", "mode": "shadow", "policy": "lookahead"}
        about |= {"cycle": self.cycle, "guard": guard, "blocked": "forecast errors are large"}
        columns = {name: [node[name] for node in self.nodes] for name in NODE_COLUMNS}
        return about | {"columns": JOB_COLUMNS, "jobs": self.jobs, "nodes": columns, "users": {"7": "ada"}}


def text(app: TopApp) -> str:
    """The screen as text, a line each."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def visit(
    world: World, walk: Callable[[TopApp, Any], Coroutine[Any, Any, None]], size: tuple[int, int] = (80, 24)
) -> None:
    """Walk through the application with a pilot."""

    async def run() -> None:
        app = TopApp(world.ask, lambda: NOW)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app._shown > 0 or world.down)
            await walk(app, pilot)

    asyncio.run(run())


async def until(pilot: Any, holds: Callable[[], Any]) -> None:
    for _ in range(200):
        await pilot.pause(0.05)
        if holds():
            return
    raise AssertionError("it never came")


def test_every_view_is_one_key_away_and_fits_80_columns() -> None:
    async def walk(app: TopApp, pilot: Any) -> None:
        shown = text(app)
        assert "here  mode shadow  policy lookahead  cycle 1" in shown
        assert "3 nodes: 3 up; 12 of 24 cores in use; 0.8 kW" in shown and "#####-----   4 of 8" in shown
        await pilot.press("2")
        shown = text(app)
        assert "waiting: 1 of 2 jobs" in shown and "a reservation of node n002" in shown
        assert all(word in shown for word in ("ada", "in 1 h", "in 1 h 30 min", "in 1 d"))
        await pilot.press("3")
        lines = text(app).splitlines()
        first, last = (next(line for line in lines if name in line) for name in ("n000", "n002"))
        assert "#" in first and "." in first and "o" in first and not set(last) & set("#o")
        await pilot.press("4")
        await until(pilot, lambda: "it is made tomorrow" in text(app))
        shown = text(app)
        assert "forecast errors are large" in shown and "a factor of 1.25" in shown
        assert all(len(line) <= 80 for line in shown.splitlines())

    visit(World(), walk)


def test_jobs_are_found_and_their_story_is_shown() -> None:
    async def walk(app: TopApp, pilot: Any) -> None:
        await pilot.press("slash")
        await until(pilot, lambda: app.focused is app.query_one("#find"))
        await pilot.press(*"name-2")
        await until(pilot, lambda: "with name-2: 1 of 4 jobs" in text(app))
        await pilot.press("enter", "enter")
        await until(pilot, lambda: "too few nodes" in text(app))
        shown = text(app)
        assert "Job rjms/2" in shown and "2:00:00" in shown and "power is short\\x1b[2J" in shown
        await pilot.press("escape")
        await until(pilot, lambda: "Job rjms/2" not in text(app))
        await pilot.press("slash", "s", "s")
        await pilot.pause()
        assert "all: 4 of 4 jobs" in text(app)

    visit(World(waiting=4), walk)


def test_a_change_is_shown_and_a_service_that_is_away_is_said() -> None:
    async def walk(app: TopApp, pilot: Any) -> None:
        world.cycle, world.nodes[0]["state"] = 2, "down"
        await until(pilot, lambda: "2 up, 1 down" in text(app))
        world.down = "no daemon listens"
        await until(pilot, lambda: "no daemon listens" in text(app))
        assert "2 up, 1 down" in text(app)

    world = World()
    visit(world, walk)


def test_a_service_that_never_answers_is_said() -> None:
    async def walk(app: TopApp, pilot: Any) -> None:
        await until(pilot, lambda: "no daemon listens" in text(app))
        await pilot.press("1", "2", "3", "4", "s", "z", "slash")
        assert "no daemon listens" in text(app)

    world = World()
    world.down = "no daemon listens"
    visit(world, walk)


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (20, 5)])
def test_a_large_cluster_is_bounded_at_any_size(size: tuple[int, int]) -> None:
    async def walk(app: TopApp, pilot: Any) -> None:
        await pilot.press("2")
        assert app.query_one("#jobs").row_count == MOST_ROWS  # type: ignore[attr-defined]
        await pilot.press("3", "z", "z", "1")
        assert app.query_one("#times").row_count == 300  # type: ignore[attr-defined]
        await pilot.press("q")

    visit(World(nodes=300, waiting=3000), walk, size)
