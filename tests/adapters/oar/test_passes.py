"""When OAR is asked for a pass: after a change, at whole seconds of its clock, and not while a pass is under way."""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.adapters.oar.passes import DEAF_S, FOR_S, LATER_S, PASS_S, Passes
from tests.support.clock import Clock
from tests.support.oar_records import job, world

BEGAN = 1000.25  #: OAR's clock when the monotonic one shows 0
WAITING = replace(world(job(5)), now=BEGAN + 0.1)


@pytest.fixture
def server(real: None) -> Iterator[socket.socket]:
    """Takes requests as Almighty does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def asked(server: socket.socket) -> int:
    """How often a pass was asked for since the last call."""
    count = 0
    while True:
        try:
            connection = server.accept()[0]
        except BlockingIOError:
            return count
        with connection:
            assert connection.makefile().read() == "Term\n"
        count += 1


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def passes(server: socket.socket, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Passes]:
    """Requests to the server; an OAR on this machine is not heard."""
    monkeypatch.setattr("pilotfish.adapters.oar.passes.FIRST_PROGRAM", tmp_path / "first")
    (tmp_path / "first").write_text("")
    (tmp_path / "placements").write_text("")
    passes = Passes(server.getsockname(), tmp_path / "placements", clock)
    yield passes
    passes.close()


def test_after_a_change_and_at_each_whole_second_until_the_job_begins(
    server: socket.socket, clock: Clock, passes: Passes
) -> None:
    assert passes.next_at(math.inf) == math.inf
    passes.wait_for(5, BEGAN)
    passes.ask(WAITING, BEGAN, at_once=True)
    assert asked(server) == 1
    for second in range(3):
        assert passes.next_at(math.inf) == pytest.approx(0.75 + second + LATER_S)
        passes.ask(WAITING, BEGAN + clock.now)
        assert asked(server) == 0
        clock.now = passes.next_at(math.inf)
        passes.ask(WAITING, BEGAN + clock.now)
        assert asked(server) == 1
    clock.now = passes.next_at(math.inf)
    passes.ask(replace(world(job(5, state="toLaunch")), now=BEGAN + clock.now), BEGAN + clock.now)
    assert (asked(server), passes.next_at(math.inf)) == (0, math.inf)


@pytest.mark.parametrize("read", ["placements", "first"])
def test_not_while_a_pass_is_under_way(
    server: socket.socket, clock: Clock, passes: Passes, tmp_path: Path, read: str
) -> None:
    clock.now = 0.3
    assert passes.descriptor is not None and not passes.hear(0.0)
    (tmp_path / read).read_text()
    assert passes.hear(1.0)
    passes.wait_for(5, BEGAN + 0.3)
    passes.ask(WAITING, BEGAN + 0.3, at_once=True)
    assert asked(server) == 0
    assert passes.next_at(math.inf) == pytest.approx(1.75 + LATER_S) and passes.next_at(math.inf) > PASS_S
    clock.now = passes.next_at(math.inf)
    passes.ask(WAITING, BEGAN + clock.now)
    assert asked(server) == 1


def test_a_job_that_does_not_begin_is_not_asked_for_for_ever(clock: Clock, passes: Passes) -> None:
    passes.wait_for(5, BEGAN)
    while passes.next_at(math.inf) < math.inf:
        passes.ask(WAITING, BEGAN + clock.now)
        clock.now += 1.0
    assert FOR_S < clock.now < FOR_S + 3


def test_there_is_news_once_more_when_oar_was_deaf_after_a_pass(clock: Clock, passes: Passes, tmp_path: Path) -> None:
    assert not passes.hear(0.0) and passes.next_at(math.inf) == math.inf
    (tmp_path / "first").read_text()
    assert passes.hear(1.0)
    assert passes.next_at(math.inf) == clock() + DEAF_S
    clock.now += DEAF_S - 0.1
    assert not passes.hear(0.0)
    clock.now += 0.1
    assert passes.hear(0.0) and not passes.hear(0.0) and passes.next_at(math.inf) == math.inf
