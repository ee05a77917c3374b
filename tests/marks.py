"""Real and pure tests. A real test starts processes or threads, uses sockets, sleeps or sends signals; a pure test that
does one of these fails.

A test is real if it or its module has the marker `real`, or if a fixture that it uses requests the fixture `real`. A
real test may fail and be tried again; a pure test is tried once. `make check` runs the pure tests but those with the
marker `long`: they compute for more than a second, and would not find the same with less. It does not collect
tests/real, where a pure test is an error.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Generator
from typing import Any

import pytest

AGAIN = 2
#: The folder in which all tests are real, below the root, as it is in the names of tests.
HOME = "tests/real/"
#: What a pure test must not do, by the name of its audit event.
DEEDS = {
    **dict.fromkeys(("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"), "starts a process"),
    **dict.fromkeys(("os.kill", "os.killpg", "signal.pthread_kill"), "sends a signal"),
    **dict.fromkeys(("socket.bind", "socket.connect"), "uses a socket"),
    "_thread.start_new_thread": "starts a thread",
    "time.sleep": "sleeps",
}
#: The file of the frames that import modules.
IMPORTS = "<frozen importlib._bootstrap>"
#: The thread that runs a pure test now; a thread that an earlier test left behind is not its deed.
_pure_thread: int | None = None


@pytest.fixture(scope="session")
def real() -> None:
    """Mark the tests that use this fixture, perhaps through another one, as real."""


def pytest_configure(config: pytest.Config) -> None:
    """Describe the markers."""
    config.addinivalue_line("markers", "long: computes for more than a second, also with few examples")
    config.addinivalue_line("markers", "real: starts processes or threads, uses sockets, sleeps or sends signals")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests whose fixtures are real, and let real tests be tried again."""
    for item in items:
        if "real" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.real)
        if item.get_closest_marker("real"):
            item.add_marker(pytest.mark.flaky(reruns=AGAIN, reruns_delay=2))
        elif item.nodeid.startswith(HOME):
            raise pytest.UsageError(
                f"{item.nodeid}: a pure test in tests/real, which `make check` does not collect: move it"
            )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Watch a pure test; its teardown may end what belongs to tests before it."""
    global _pure_thread
    _pure_thread = None if item.get_closest_marker("real") else threading.get_ident()
    try:
        return (yield)
    finally:
        _pure_thread = None


pytest_runtest_call = pytest_runtest_setup


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Fail the pure test that causes this audit event. What a package does while it is imported is not the test's."""
    if event not in DEEDS or threading.get_ident() != _pure_thread:
        return
    if arguments and arguments[-1] == 0:  # signal 0 asks whether a process exists, and a sleep of 0 s lasts no time
        return
    if not any(frame.f_code.co_filename == IMPORTS for frame, _ in traceback.walk_stack(None)):
        pytest.fail(f"a pure test {DEEDS[event]} ({event}): mark it, or the fixture that does this, as real")


def _audited(function: Any, event: str) -> Any:
    def audited(*arguments: Any) -> Any:
        sys.audit(event, *arguments)
        return function(*arguments)

    return audited


sys.addaudithook(_refuse)
if sys.version_info < (3, 13):  # newer ones report these by themselves
    time.sleep = _audited(time.sleep, "time.sleep")
    threading.Thread.start = _audited(threading.Thread.start, "_thread.start_new_thread")  # type: ignore[method-assign]
