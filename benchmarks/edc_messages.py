"""Decisions per second of a decision component of Batsim over our engine, and what share of the time is ours.

Rule: the component does nothing but first come, first served, in a process of its own, over a socket. Jobs come and end
one at a time, or many at one instant, which share messages. The share is that of our process in the CPU time of both.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import tempfile
import time
from collections import deque
from pathlib import Path

import numpy as np
import zmq

from pilotfish.adapters.batsim.replay_under_component import replay_under_component
from pilotfish.adapters.batsim.sockets import asking
from pilotfish.benchmarks.show import heading, number, table
from pilotfish.simulate.model.machine import Machine
from pilotfish.simulate.model.workload import Workload

PROCESSORS = 64


def measure(quick: bool) -> None:
    """Print the table."""
    heading("A decision component over ZeroMQ: first come, first served")
    rows = []
    for together in (1, 8, 64):
        jobs = _jobs((2_000 if quick else 20_000) // together * together, together)
        with tempfile.TemporaryDirectory() as folder:
            endpoint, trace = f"ipc://{folder}/edc", Path(folder) / "load.swf"
            trace.write_text("; a trace that is in memory\n")
            component = multiprocessing.get_context("spawn").Process(target=_serve, args=(endpoint,), daemon=True)
            component.start()
            try:
                with asking(endpoint, 60.0) as ask:
                    ask(b'{"now": 0, "events": []}')  # the component has started
                    began, ours = time.perf_counter(), time.process_time()
                    machine = Machine(PROCESSORS, powers=None)
                    done, messages = replay_under_component(ask, "edc", jobs, machine, None, [trace])
                    spent, ours = time.perf_counter() - began, time.process_time() - ours
            finally:
                component.join(5)
                component.kill()
                component.join()
        theirs = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert not done.rejected.any()
        rows.append([f"{together}", f"{len(jobs):,}", f"{messages:,}", number(len(jobs) / spent),
                     number(len(jobs) / ours), f"{ours / (ours + _since(theirs)):.0%}"])  # fmt: skip
    table(("jobs at once", "decisions", "messages", "decisions/s", "by our CPU time", "our share"), rows)


_before = [0.0]


def _since(usage: resource.struct_rusage) -> float:
    """Return the CPU time of children that have ended since the call before, seconds."""
    before, _before[0] = _before[0], usage.ru_utime + usage.ru_stime
    return _before[0] - before


def _jobs(count: int, together: int) -> Workload:
    """Return jobs that come, and end, `together` at once; they end before the next ones come."""
    submit = np.repeat(np.arange(count // together) * 10.0, together)
    return Workload(
        "load", np.arange(count), submit, np.full(count, 5.0), np.full(count, 9.0), np.ones(count, np.int64)
    )


def _serve(endpoint: str) -> None:
    """Answer as the component: first come, first served, any free hosts."""
    socket = zmq.Context().socket(zmq.REP)
    socket.bind(endpoint)
    free, held, queue, ended = list[int](), dict[str, list[int]](), deque[tuple[str, int]](), False
    while not ended:
        message = json.loads(socket.recv())
        for event in message["events"]:
            kind, data = event["type"], event["data"]
            if kind == "JOB_SUBMITTED":
                queue.append((data["job_id"], data["job"]["res"]))
            elif kind == "JOB_COMPLETED":
                free += held.pop(data["job_id"])
            elif kind == "SIMULATION_BEGINS":
                free = list(range(data["nb_compute_resources"]))
            elif kind == "SIMULATION_ENDS":
                ended = True
        now, parts = message["now"], list[str]()
        while queue and queue[0][1] <= len(free):
            job, size = queue.popleft()
            held[job] = free[-size:]
            del free[-size:]
            hosts = " ".join(map(str, held[job]))
            parts.append(f'{{"timestamp":{now},"type":"EXECUTE_JOB","data":{{"job_id":"{job}","alloc":"{hosts}"}}}}')
        socket.send(f'{{"now":{now},"events":[{",".join(parts)}]}}'.encode())
