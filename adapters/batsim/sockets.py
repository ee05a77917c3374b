"""The sockets of Batsim's protocol, over ZeroMQ: Batsim connects and asks (REQ), a component binds and answers (REP).

Rule: no wait is endless: a peer that ends or does not answer in time is an error.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import getpid

import zmq
from zmq.utils.monitor import recv_monitor_message

from ...simulate.errors import ConfigError

#: Where Batsim expects its decision component.
ENDPOINT = "tcp://localhost:28000"
#: How often a wait looks whether the process of the component still runs, and how long it may take to end, seconds.
LOOK_S, END_S = 0.2, 5.0
#: Longest wait for a component that decides live to listen, seconds.
CONNECT_S = 1.0


@contextmanager
def component_process(command: str, endpoint: str | None) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run the command of a decision component; yield its endpoint and its process, which is ended at last.

    Args:
        command: words of the command, quoted as in a shell; `{endpoint}` stands for the endpoint.
        endpoint: where it binds; None = ENDPOINT, or a socket of this process if the command has `{endpoint}`.

    Raises:
        ConfigError: the command cannot be started.
    """
    default = f"ipc://@pilotfish-{getpid()}-{time.monotonic_ns()}" if "{endpoint}" in command else ENDPOINT
    endpoint = endpoint or default
    try:
        words = shlex.split(command.replace("{endpoint}", endpoint))
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    except (OSError, ValueError, IndexError) as error:
        raise ConfigError("--command", "", f"{command}: {error}", "a command that can be started") from None
    try:
        yield endpoint, process
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def asking(
    endpoint: str, timeout_s: float, process: subprocess.Popen[bytes] | None = None
) -> Iterator[Callable[[bytes], bytes]]:
    """Yield a function that sends a message to a decision component and returns its reply.

    Args:
        endpoint: where the component is bound.
        timeout_s: longest wait for a reply.
        process: the process of the component, if it is ours.

    Raises:
        ConfigError: the endpoint is wrong; by the function: no reply, or the process has ended.
    """
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, round(1000 * min(LOOK_S, timeout_s)))  # faster than to poll and to receive
        try:
            socket.connect(endpoint)
        except zmq.ZMQError as error:
            raise ConfigError(
                "--endpoint", "", f"{endpoint}: {error}", "an endpoint such as tcp://localhost:28000"
            ) from None

        def ask(message: bytes) -> bytes:
            socket.send(message)
            end = time.monotonic() + timeout_s
            while True:
                with suppress(zmq.Again):
                    return socket.recv()
                if process is not None and process.poll() is not None and not socket.poll(int(1000 * LOOK_S)):
                    raise _no_reply(endpoint, f"its process has ended with status {process.returncode}", message)
                if time.monotonic() >= end:
                    raise _no_reply(endpoint, f"no reply in {timeout_s:g} s", message)

        yield ask


class LiveSocket:
    """A connection to a component that may not be there, may end, or may hang.

    Args:
        endpoint: where it is bound.

    Raises:
        ConfigError: the endpoint is wrong.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint, self._context, self._connected = endpoint, zmq.Context(1), False
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, int(1000 * LOOK_S))
        self._changes = self._socket.get_monitor_socket(zmq.EVENT_CONNECTED | zmq.EVENT_DISCONNECTED)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise ConfigError("policy", "", f"{endpoint}: {error}", "an endpoint of ZeroMQ") from None

    def ask(self, message: bytes, stop: Callable[[], bool]) -> bytes:
        """Send a message and return the reply.

        Args:
            message: the message.
            stop: whether it has waited for too long; called before the message is sent, and a few times a second.

        Raises:
            ConfigError: nothing listens, the connection was closed, or no reply in time.
        """
        began = time.monotonic()
        if stop():
            raise _no_reply(self._endpoint, "it has had the time of this plan", message)
        lost = self._was_lost()
        while not (lost or self._connected):
            if time.monotonic() - began > CONNECT_S or stop():
                raise ConfigError(
                    f"the decision component at {self._endpoint}", "", "nothing listens there", "one that runs"
                )
            self._changes.poll(int(1000 * LOOK_S))
            lost = self._was_lost()
        if not lost:
            self._socket.send(message)
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._changes, zmq.POLLIN)
        while lost or self._socket not in dict(poller.poll(int(1000 * LOOK_S))):
            lost = lost or self._was_lost()
            if lost and not self._socket.poll(int(1000 * LOOK_S)):  # a last reply may be on its way
                raise _no_reply(self._endpoint, "it has closed the connection", message)
            if stop():
                raise _no_reply(self._endpoint, f"no reply in {time.monotonic() - began:.1f} s", message)
            lost = False
        return self._socket.recv()

    def _was_lost(self) -> bool:
        """Read the state of the connection; return whether it was closed since the last call."""
        lost = False
        while self._changes.poll(0):
            self._connected = recv_monitor_message(self._changes)["event"] == zmq.EVENT_CONNECTED
            lost |= not self._connected
        return lost

    def close(self, last: bytes = b"") -> None:
        """Close the connection; `last` is sent before if the other side listens and owes no reply."""
        with suppress(zmq.ZMQError):
            self._was_lost()
            if last and self._connected:
                self._socket.send(last, zmq.NOBLOCK)
                self._socket.poll(int(1000 * LOOK_S))
        self._socket.disable_monitor()
        self._changes.close(0)
        self._socket.close()
        self._context.term()


def _no_reply(endpoint: str, problem: str, message: bytes) -> ConfigError:
    from ...formats.batsim.messages import refusal

    name = f"the decision component at {endpoint}"
    return refusal(name, "", problem, "a reply to each message", message.decode("utf-8", "replace"))


def answer_requests(endpoint: str, answer: Callable[[bytes], tuple[bytes, bool]], timeout_s: float | None) -> None:
    """Answer the messages of Batsim until the last one.

    Args:
        endpoint: where to bind.
        answer: returns the reply to a message, and whether it was the last.
        timeout_s: longest wait for a message; None = endless before the first one.

    Raises:
        ConfigError: the endpoint cannot be bound, or no message in time.
    """
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.setsockopt(zmq.LINGER, int(1000 * END_S))
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as error:
            raise ConfigError(
                "ENDPOINT", "", f"{endpoint}: {error}", "an endpoint such as tcp://127.0.0.1:28000"
            ) from None
        begun, last = False, False
        while not last:
            wait_s = timeout_s if begun else None
            if not socket.poll(None if wait_s is None else int(1000 * wait_s)):
                raise ConfigError(endpoint, "", f"no message of Batsim in {wait_s:g} s", "a message before that")
            reply, last = answer(socket.recv())
            begun = True
            socket.send(reply)
