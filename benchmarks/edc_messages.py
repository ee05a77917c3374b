"""Decisions per second of a decision component of Batsim over our engine, and where the time goes.

Rule: the component does nothing but first come, first served, in a process of its own, over a socket. Jobs come and end
one at a time, or many at one instant, which share messages. The two processes wait for each other, so that decisions/s
are at most those by the CPU time of both. The same bytes are then sent again by processes that only send and receive:
that is what the sockets allow.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import zmq

from pilotfish.adapters.batsim.replay_under_component import replay_under_component
from pilotfish.adapters.batsim.sockets import asking
from pilotfish.benchmarks.show import heading, number, table
from pilotfish.simulate.model.machine import Machine
from pilotfish.simulate.model.workload import Workload

PROCESSORS = 64
#: In place of the last reply of a component: its CPU time is sent back.
END = b""


def measure(quick: bool) -> None:
    """Print the table."""
    heading("A decision component over ZeroMQ: first come, first served")
    rows = []
    for together in (1, 8, 64):
        jobs = _jobs((2_000 if quick else 20_000) // together * together, together)
        exchanges = list[tuple[bytes, bytes]]()
        with tempfile.TemporaryDirectory() as folder, _component(Fcfs(), folder) as (ask, cpu_of_component):
            (trace := Path(folder) / "load.swf").write_text("; a trace that is in memory\n")

            def recorded_ask(
                message: bytes, ask: Callable[[bytes], bytes] = ask, exchanges: list[tuple[bytes, bytes]] = exchanges
            ) -> bytes:
                exchanges.append((message, ask(message)))
                return exchanges[-1][1]

            machine, began, own_cpu_s = Machine(PROCESSORS, powers=None), time.perf_counter(), time.process_time()
            replayed, messages = replay_under_component(recorded_ask, "edc", jobs, machine, [trace])
            spent, own_cpu_s = time.perf_counter() - began, time.process_time() - own_cpu_s
            total_cpu_s = own_cpu_s + cpu_of_component()
        assert not replayed.rejected.any()
        durations = spent, total_cpu_s, own_cpu_s, _again(exchanges)
        rows.append(
            [f"{together}", f"{len(jobs):,}", f"{messages:,}", *(number(len(jobs) / span) for span in durations)]
        )
    table(("jobs at once", "decisions", "messages", "decisions/s", "by CPU of both", "by ours", "bytes alone"), rows)


def _again(exchanges: Sequence[tuple[bytes, bytes]]) -> float:
    """Return how many seconds the sockets take for these messages and replies."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _component(Playback([reply for _, reply in exchanges]), folder) as (ask, _),
    ):
        began = time.perf_counter()
        for message, _ in exchanges:
            ask(message)
        return time.perf_counter() - began


def _jobs(count: int, together: int) -> Workload:
    """Return jobs that come, and end, `together` at once; they end before the next ones come."""
    submit = np.repeat(np.arange(count // together) * 10.0, together)
    return Workload(
        "load", np.arange(count), submit, np.full(count, 5.0), np.full(count, 9.0), np.ones(count, np.int64)
    )


@contextmanager
def _component(
    reply: Callable[[bytes], bytes], folder: str
) -> Iterator[tuple[Callable[[bytes], bytes], Callable[[], float]]]:
    """Start a component; yield what asks it, and what ends it and returns its CPU time, seconds."""
    endpoint, (parent_end, child_end) = f"ipc://{folder}/edc", multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(endpoint, reply, child_end), daemon=True
    )
    process.start()
    try:
        parent_end.recv()  # it has started
        with asking(endpoint, 60.0) as ask:

            def end() -> float:
                ask(END)
                return float(parent_end.recv())

            yield ask, end
    finally:
        process.kill()
        process.join()


def _serve(endpoint: str, reply: Callable[[bytes], bytes], pipe: Connection) -> None:
    """Answer messages, in the process of a component."""
    socket = zmq.Context().socket(zmq.REP)
    socket.bind(endpoint)
    pipe.send("ready")
    began = time.process_time()
    while (message := socket.recv()) != END:
        socket.send(reply(message))
    pipe.send(time.process_time() - began)
    socket.send(END)


class Playback:
    """A component that gives known replies in their order."""

    def __init__(self, replies: list[bytes]) -> None:
        self.left = deque(replies)

    def __call__(self, raw: bytes) -> bytes:
        """Return the next reply."""
        return self.left.popleft()


class Fcfs:
    """A component that starts jobs in their order, on any free hosts."""

    def __init__(self) -> None:
        self.free, self.held, self.queue = list[int](), dict[str, list[int]](), deque[tuple[str, int]]()

    def __call__(self, raw: bytes) -> bytes:
        """Return the reply to a message."""
        message, free, held, queue = json.loads(raw), self.free, self.held, self.queue
        for event in message["events"]:
            kind, data = event["type"], event["data"]
            if kind == "JOB_SUBMITTED":
                queue.append((data["job_id"], data["job"]["res"]))
            elif kind == "JOB_COMPLETED":
                free += held.pop(data["job_id"])
            elif kind == "SIMULATION_BEGINS":
                free += range(data["nb_compute_resources"])
        now, parts = message["now"], list[str]()
        while queue and queue[0][1] <= len(free):
            job, size = queue.popleft()
            held[job] = free[-size:]
            del free[-size:]
            hosts = " ".join(map(str, held[job]))
            parts.append(f'{{"timestamp":{now},"type":"EXECUTE_JOB","data":{{"job_id":"{job}","alloc":"{hosts}"}}}}')
        return f'{{"now":{now},"events":[{",".join(parts)}]}}'.encode()
