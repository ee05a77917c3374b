"""The pages of a made-up cluster of 1,000 nodes and 10,000 jobs in a real Chromium: bytes, requests, paint, long tasks.

`PILOTFISH_PICTURES=docs/guides` also writes the pictures of the guide there: 1280 and 390 pixels wide, light and dark.
The pages are those of `pilotfish web`; what they show is made up from a seed. There is an update every two seconds; its
time is CPU time of the page's thread, the paint and the tasks are on the wall.
"""

from __future__ import annotations

import base64
import io
import os
import random
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import requests

from pilotfish.daemon.report.board import JOB_COLUMNS, NODE_COLUMNS
from pilotfish.daemon.state.recorded_outcome import ForecastOutcome, QueueRecord

from .show import heading, table

NODES, JOBS, QUICK_JOBS, CORES = 1000, 10_000, 1000, 64
#: Name of a picture, pixels of its width, and its colours.
SCREENS = (
    ("web.png", 1280, "light"), ("web-dark.png", 1280, "dark"),
    ("web-phone-light.png", 390, "light"), ("web-phone.png", 390, "dark"),
)  # fmt: skip
NAMES = ("qe-scf", "lammps", "wrf-hires", "vasp", "gromacs", "openfoam-les", "post", "train_resnet")
USERS = ("ada", "bob", "erin", "heidi", "ivan", "nils")
#: Updates that are measured, and seconds between two of them.
UPDATES, EVERY_S, PATIENCE_S = 10, 2.0, 60.0
FIGURES = """
const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
return {bytes: entries.reduce((sum, one) => sum + (one.transferSize || 0), 0), requests: entries.length,
        paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null, tasks: window.long_tasks}
"""
WATCH = """
window.long_tasks = [];
new PerformanceObserver((list) => window.long_tasks.push(...list.getEntries().map((one) => one.duration)))
  .observe({type: 'longtask', buffered: true});
"""


SHOWS = "return document.querySelectorAll('#quality table').length == 3 && document.querySelector('#rows tr') !== null"
#: What is looked for in the pictures, so that the list of jobs is short.
FIND = "10300"


class MadeUp:
    """Answers as a service with so many jobs does; each second some of them have other forecasts."""

    def __init__(self, jobs: int) -> None:
        self._random, self._now = random.Random(41), time.time()
        running = [*self._running()]
        self._rows = [*running, *self._planned(running, 10)]
        self._rows += [self._waiting(number) for number in range(jobs - len(self._rows))]

    def _row(self, number: int, **values: Any) -> dict[str, Any]:
        draw = self._random
        words = {
            "key": f"slurm/{100_000 + number}", "name": draw.choice(NAMES), "uid": draw.randrange(len(USERS)),
            "partition": draw.choice(("short", "standard", "largescale")), "state": "pending", "why": "", "nodes": [],
            "decided_by": "the resource manager", "submit_time": self._now - draw.expovariate(1 / 3e4),
            "walltime": draw.choice((3600.0, 14_400.0, 43_200.0, 86_400.0)), "tasks": 1,
        }  # fmt: skip
        return dict[str, Any].fromkeys(JOB_COLUMNS) | words | values

    def _running(self) -> Iterator[dict[str, Any]]:
        """Yield jobs on nodes that follow each other, until a few of the nodes are left."""
        first = 0
        while first < NODES - 30:
            last = min(NODES - 30, first + self._random.choice((0, 1, 3, 7, 15, 31)))
            row = self._row(first, state="running", nodes=[(first, last)])
            begin = self._now - self._random.random() * row["walltime"]
            end = self._now + max(60.0, 0.7 * row["walltime"] + begin - self._now)
            yield row | {"start_time": begin, "finish_time": end, "finish_early": end - 300, "finish_late": end + 1800}
            first = last + 1

    def _planned(self, running: list[dict[str, Any]], number: int) -> Iterator[dict[str, Any]]:
        """Yield jobs that get the nodes of those that end next."""
        wide = [row for row in running if row["nodes"][0][1] - row["nodes"][0][0] >= 7]
        for place, before in enumerate(sorted(wide, key=lambda row: row["finish_time"])[:number]):
            begin = before["finish_time"] + 60.0
            row = self._row(2000 + place, nodes=before["nodes"], start_time=begin, finish_time=begin + 7200.0)
            yield row | {"decided_by": "", "why": f"waits for {before['key']}"}

    def _waiting(self, number: int) -> dict[str, Any]:
        begin = self._now + 60.0 + 25.0 * number
        row = self._row(3000 + number, start_time=begin, start_early=begin - 0.3 * (begin - self._now))
        row |= {"start_late": begin + 0.5 * (begin - self._now), "finish_time": begin + 0.6 * row["walltime"]}
        return row | {"manager_start_time": self._now + self._random.random() * 2.0 * (begin - self._now)}

    def _nodes(self) -> dict[str, list[Any]]:
        used = [0] * NODES
        for row in self._rows:
            for first, last in row["nodes"] if row["state"] == "running" else ():
                used[first : last + 1] = [CORES] * (last + 1 - first)
        states = ["down" if number % 113 == 7 else "drained" if number % 139 == 9 else "up" for number in range(NODES)]
        columns: tuple[list[Any], ...] = (
            [f"n{number:04}" for number in range(NODES)], states, [CORES] * NODES, used, [int(one > 0) for one in used],
            [2e9 * one for one in used], [2e11] * NODES, [90.0 + 4.0 * one for one in used],
        )  # fmt: skip
        return dict(zip(NODE_COLUMNS, columns, strict=True))

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Answer a request of the pages."""
        if do == "accuracy":
            return {
                "jobs": [_values(one) for one in self._outcomes()],
                "starts": [_values(one) for one in self._starts()],
            }
        if do == "card":
            return _card(self._now)
        mark = int(time.time())
        for row in self._random.sample(self._rows, min(100, len(self._rows))):
            row["finish_time"] += 1.0
        about = {
            "time": time.time(), "mark": str(mark), "for_everybody": True, "mode": "shadow", "policy": "lookahead",
            "cycle": mark % 100_000, "cluster": "lab", "forecast_time": time.time() - 4.0,
            "forecasts": {"jobs": len(self._rows)},
            "guard": {"median_factor": 1.18, "bound": 2.0, "model": "max-min", "source": "measured"},
        }  # fmt: skip
        rows = [[round(one) if isinstance(one, float) else one for one in row.values()] for row in self._rows]
        users = {str(number): name for number, name in enumerate(USERS)}
        return about | {
            "columns": JOB_COLUMNS,
            "jobs": rows,
            "nodes": self._nodes(),
            "users": users,
            "jobs_left_out": 0,
        }

    def _outcomes(self) -> Iterator[ForecastOutcome]:
        for number in range(2000):
            ran = 3600.0 * self._random.lognormvariate(0.0, 0.25)
            source = self._random.choice(("measured", "predicted"))
            yield ForecastOutcome(f"slurm/{number}", self._now, 3600.0, ran, f"cmd: {NAMES[number % 8]}", source=source,
                                  shortest_s=2600.0, longest_s=4900.0)  # fmt: skip

    def _starts(self) -> Iterator[QueueRecord]:
        for number in range(800):
            begin, waits = self._now - 90_000.0 + 60 * number, self._random.expovariate(1 / 3000)
            ours, managers = (begin + waits * self._random.lognormvariate(0.0, sigma) for sigma in (0.2, 0.9))
            yield QueueRecord(f"slurm/{number}", said_time=begin, said_start=ours, manager_start=managers,
                              compared_start=ours, start_time=begin + waits)  # fmt: skip


def _values(record: Any) -> list[Any]:
    return [getattr(record, name) for name in record.__slots__]


def _card(now: float) -> dict[str, Any]:
    waiting = {"recorded": 5400.0, "twin": 5280.0, "pilotfish": 4110.0, "low": -1420.0, "high": -910.0}
    turnaround = {"recorded": 15_300.0, "twin": 15_180.0, "pilotfish": 14_010.0, "low": -1420.0, "high": -910.0}
    slowdown = {"recorded": 6.1, "twin": 6.0, "pilotfish": 3.7, "low": -2.9, "high": -1.7}
    means = {"waiting": waiting, "turnaround": turnaround, "slowdown": slowdown}
    card = {
        "judged": "easy:order=sjf", "days": 7.0, "verdict": "a gain in mean wait",
        "handed": {"seen": 38_412, "compared": 37_905, "placed": 31_207.0, "released": 6698.0},
        "measures": {name: {"mean": values} for name, values in means.items()},
        "utilisation": {"recorded": 0.91, "twin": 0.91, "pilotfish": 0.915, "low": 0.0, "high": 0.01}, "energy_j": None,
    }  # fmt: skip
    return {"card": card, "time": now - 7200.0, "why_not": ""}


@contextmanager
def pages(service: MadeUp) -> Iterator[str]:
    """Serve the pages of a service; yield their address."""
    import uvicorn

    from pilotfish.web.server import application

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        app = application(service.ask, ["127.0.0.1"])
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def browser() -> Iterator[Any]:
    """Yield a Chromium."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        yield driver
    finally:
        driver.quit()


def look(driver: Any, address: str, width: int, scheme: str) -> None:
    """Open the pages on a screen, and wait until they show everything."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    colours = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", colours)
    driver.execute_cdp_cmd("Network.clearBrowserCache", {})
    driver.get(address)
    until = time.monotonic() + PATIENCE_S
    shows = (
        "return document.querySelectorAll('#quality table').length == 3 && document.querySelector('#rows tr') != null"
    )
    while not driver.execute_script(shows):
        if time.monotonic() > until:
            raise RuntimeError(f"the pages show no jobs after {PATIENCE_S:.0f} s")
        time.sleep(0.1)


def picture(driver: Any, file: Path) -> None:
    """Write a picture of the whole page, with at most 256 colours, the rare ones among them."""
    from PIL import Image

    driver.find_element("id", "find").send_keys(FIND)
    time.sleep(1.0)
    answer = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
    with Image.open(io.BytesIO(base64.b64decode(answer["data"]))) as full:
        full.quantize(256, Image.Quantize.MAXCOVERAGE).save(file, optimize=True)


def thread_seconds(driver: Any) -> float:
    """Return the CPU seconds of the page's thread so far."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def measure(quick: bool) -> None:
    """Print the figures of each screen."""
    jobs, folder = QUICK_JOBS if quick else JOBS, os.environ.get("PILOTFISH_PICTURES")
    heading(f"pages of {NODES:,} nodes and {jobs:,} jobs, in Chromium")
    rows = []
    with pages(MadeUp(jobs)) as address, browser() as driver:
        board = requests.get(f"{address}api/v1/board", stream=True, timeout=PATIENCE_S)
        board_bytes = len(board.raw.read())
        for name, width, scheme in SCREENS:
            look(driver, address, width, scheme)
            first, before = driver.execute_script(FIGURES), thread_seconds(driver)
            time.sleep(UPDATES * EVERY_S)
            update_s = (thread_seconds(driver) - before) / UPDATES
            paint = "unknown" if first["paint"] is None else f"{first['paint']:.0f} ms"
            rows.append((
                f"{width} px, {scheme}", f"{first['bytes'] / 1e3:.0f} kB + {board_bytes / 1e3:.0f} kB",
                str(first["requests"]), paint, f"{max(first['tasks'], default=0.0):.0f} ms", f"{update_s * 1e3:.0f} ms",
            ))  # fmt: skip
            if folder:
                picture(driver, Path(folder, name))
    table(("screen", "pages + data", "requests", "first paint", "longest task", "an update, CPU"), rows)
