"""Speed of queue policies written in Python, compared with compiled ones and with plain Python without an interface.

Rule: the workloads are those of `trace_replay`; the time is that of the whole replay including the policy, the least of
several runs. Calls that `only_starts` leaves out count. The plain baseline is EASY with counted resources;
schedules are compared to the last bit.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from pilotfish.benchmarks.show import heading, number, table
from pilotfish.benchmarks.trace_replay import loads, plain
from pilotfish.simulate.queue_policies.policy_specs import Easy, Strict
from pilotfish.simulate.replay.replay import replay
from pilotfish.tests.support import python_policies


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the table."""
    heading("Queue policies in Python; calls/s of whole replays")
    rows = []
    for jobs, machine in loads(traces):
        for policy_class, compiled in (
            (python_policies.Strict, Strict()),
            (python_policies.FromScratch, Easy()),
            (python_policies.Easy, Easy()),
        ):
            runs = [replay(jobs, machine, policy_class(), clock=time.perf_counter) for _ in range(2 if quick else 5)]
            best = min(run.simulation_time for run in runs)
            reference = replay(jobs, machine, compiled, clock=time.perf_counter)
            same = all(
                getattr(runs[0], name).tobytes() == getattr(reference, name).tobytes()
                for name in ("start_time", "finish_time", "pieces", "piece0")
            )
            calls = runs[0].instants
            row = [
                f"{jobs.name}, {policy_class.__name__}",
                f"{calls:,}",
                number(len(jobs) / best),
                number(calls / best),
            ]
            row += [number(calls / reference.simulation_time), "yes" if same else "NO"]
            if policy_class is python_policies.FromScratch:
                start, spent = plain(jobs, machine)
                agrees = np.array_equal(start, reference.start_time, equal_nan=True)
                row += [number(calls / spent), "yes" if agrees else "NO"]
            rows.append([*row, *["-"] * (8 - len(row))])
    table(("trace and policy", "calls", "jobs/s", "calls/s", "compiled", "same", "plain Python", "same"), rows)
