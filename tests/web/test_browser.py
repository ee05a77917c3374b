"""The page in a real browser, next to a real daemon: it shows the jobs, follows them without a reload, and fits a phone."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not CHROMIUM or not DRIVER:
    pytest.skip("chromium and chromium-driver are not here", allow_module_level=True)
CLUSTER = """schema: pilotfish/cluster/v1
name: here
node_types: {half: {cores: 1, memory: 1GiB, memory_bandwidth: 1GB/s}}
nodes: [{names: a, type: half, cpus: "%d"}]
"""
CONFIG = """schema: pilotfish/daemon/v1
cluster: cluster.yaml
state_dir: state
socket: {path: %s/s.sock}
access: {root: true}
metrics: {enabled: false}
accounting: {enabled: false}
"""
JOBS = """schema: pilotfish/workflow/v1
name: pair
jobs:
  first: {command: [sleep, "%s"], walltime: 900}
  second: {command: [sleep, "1"], after: [first], walltime: 900}
"""


def within(seconds: float, holds: Callable[[], object]) -> object:
    """What holds within so many seconds."""
    until = time.monotonic() + seconds
    while not (value := holds()) and time.monotonic() < until:
        time.sleep(0.1)
    assert value
    return value


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """The address of the pages of a daemon, and its folder."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "cluster.yaml").write_text(CLUSTER % min(os.sched_getaffinity(0)))
    (folder / "pilotfish.yaml").write_text(CONFIG % folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    run = [sys.executable, "-m", "pilotfish.cli"]
    daemon = subprocess.Popen([*run, "daemon", "--config", str(folder / "pilotfish.yaml")])
    web = subprocess.Popen([*run, "web", "--socket", str(folder / "s.sock"), "--listen", address])
    try:
        within(60, (folder / "s.sock").is_socket)
        yield f"http://{address}", folder
    finally:
        for process in (web, daemon):
            process.terminate()
            process.wait(30)


@pytest.fixture(scope="module")
def browser() -> Iterator:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def text(browser, selector: str) -> str:
    return browser.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)


def test_a_page_follows_the_jobs_without_a_reload(pages, browser) -> None:
    address, folder = pages
    browser.get(address)
    within(30, lambda: "1 node: 1 up" in text(browser, "#nodes-text"))
    browser.execute_script("window.loaded_once = true")
    (folder / "jobs.yaml").write_text(JOBS % 8)
    submission = subprocess.run(
        [sys.executable, "-m", "pilotfish.cli", "submit", "--socket", str(folder / "s.sock"), str(folder / "jobs.yaml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert submission.returncode == 0, submission.stderr
    workflow = submission.stdout.strip()
    within(20, lambda: "1 of 1 core " in text(browser, "#nodes-text"))
    within(20, lambda: f"{workflow}/second" in text(browser, "#rows"))
    within(
        40, lambda: "0 jobs running" in text(browser, "#gantt-text") and "0 of 1 core " in text(browser, "#nodes-text")
    )
    assert browser.execute_script("return window.loaded_once")
    browser.get(f"{address}/jobs/{workflow}/second")
    within(20, lambda: "completed" in text(browser, "#job-body") and "ended" in text(browser, "#story"))
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (390, "dark"), (1280, "light"), (3840, "dark")])
def test_a_page_fits_the_screen(pages, browser, width, scheme) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.get(pages[0])
    within(30, lambda: "1 node" in text(browser, "#nodes-text"))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return document.documentElement.classList.contains('dark')") == (scheme == "dark")
    assert browser.execute_script("return document.getElementById('gantt').height") > 20


def test_a_page_can_be_used_with_the_keyboard_alone(pages, browser) -> None:
    """Everything that can be clicked can be reached, and says what it is."""
    browser.get(pages[0])
    within(30, lambda: "1 node" in text(browser, "#nodes-text"))
    unnamed = browser.execute_script(
        "return [...document.querySelectorAll('button, a, input, select, canvas')].filter((each) =>"
        " !(each.innerText || each.labels?.length || each.getAttribute('aria-describedby'))).map((each) => each.outerHTML)"
    )
    assert unnamed == []
    assert browser.execute_script("return document.documentElement.lang") == "en"


def test_a_page_says_that_the_service_is_away(pages, browser) -> None:
    address, folder = pages
    browser.get(address)
    within(30, lambda: "1 node" in text(browser, "#nodes-text"))
    (folder / "s.sock").rename(folder / "moved.sock")
    try:
        within(30, lambda: "no pilotfish daemon listens" in text(browser, "#trouble"))
        assert "1 node" in text(browser, "#nodes-text")
    finally:
        (folder / "moved.sock").rename(folder / "s.sock")
    within(30, lambda: not text(browser, "#trouble"))
