"""A connection must send its request in time; one that is being answered may last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

uvicorn = pytest.importorskip("uvicorn")

from uvicorn.server import ServerState

from pilotfish.web.prompt_requests import REQUEST_S, PromptRequests

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


class Wire(asyncio.Transport):
    """The other end of a connection, which only notes that it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False

    def write(self, data: Any) -> None:
        """Send nothing."""

    def close(self) -> None:
        """Note it."""
        self.is_closed = True

    def is_closing(self) -> bool:
        """Return whether it was closed."""
        return self.is_closed


class Timers(asyncio.SelectorEventLoop):
    """A loop whose time passes by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def time(self) -> float:
        """Return seconds since the start."""
        return self.now

    def turn(self, seconds: float) -> None:
        """Let time pass, and run what is due."""
        self.now += seconds
        for _ in range(5):
            self.call_soon(lambda: None)
            self.call_soon(self.stop)
            self.run_forever()


async def _answer(scope: Any, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def _stream(scope: Any, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await asyncio.Event().wait()


@pytest.fixture
def loop():
    timers = Timers()
    yield timers
    for task in asyncio.all_tasks(timers):
        task.cancel()
    timers.turn(0.0)
    timers.close()


def connection(loop: Timers, app: Any) -> tuple[PromptRequests, Wire]:
    config = uvicorn.Config(app, log_config=None, timeout_keep_alive=3600)
    config.load()
    protocol, wire = PromptRequests(config, ServerState(), {}, _loop=loop), Wire()
    protocol.connection_made(wire)
    return protocol, wire


@pytest.mark.parametrize("drops", [[], [b"GET / HTTP/1.1\r\nHo", b"st: he", b"r"]])
def test_a_connection_without_a_whole_request_is_closed(loop: Timers, drops: list[bytes]) -> None:
    protocol, wire = connection(loop, _answer)
    for drop in drops:
        protocol.data_received(drop)
        loop.turn(REQUEST_S / 4)
        assert not wire.is_closed
    loop.turn(REQUEST_S)
    assert wire.is_closed


def test_a_connection_that_is_answered_lasts_and_then_must_ask_again(loop: Timers) -> None:
    protocol, wire = connection(loop, _answer)
    for _ in range(3):
        loop.turn(REQUEST_S * 0.9)
        protocol.data_received(REQUEST)
        loop.turn(0.0)
    assert not wire.is_closed
    protocol.data_received(REQUEST[:-2])
    loop.turn(REQUEST_S * 1.1)
    assert wire.is_closed


def test_a_stream_lasts(loop: Timers) -> None:
    protocol, wire = connection(loop, _stream)
    protocol.data_received(REQUEST)
    loop.turn(0.0)
    loop.turn(REQUEST_S * 100)
    assert not wire.is_closed


def test_no_timer_outlives_a_connection(loop: Timers) -> None:
    protocol, wire = connection(loop, _answer)
    protocol.connection_lost(None)
    wire.is_closed = False
    loop.turn(REQUEST_S * 2)
    assert not wire.is_closed
