"""The product's own engine as the calibrated machine: it knows the truth, and its results get noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pilotfish.profiles.calibration.fits import Mix
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.planning.simulation import Simulation

_LONG = 1e6


def speeds(kind: NodeType, jobs: Sequence[tuple[float, float]]) -> list[float]:
    """How fast jobs of one thread go together on a node, (utilisation, bytes/s) each: isolated time / time."""
    flow = tuple(
        Job(f"j{i}", Profile((ThreadGroup(1, _LONG * u, u, bandwidth=rate),))) for i, (u, rate) in enumerate(jobs)
    )
    machine = Simulation(Workflow("w", flow), Cluster("lab", (Node("n0", kind),), float("inf")))
    for job in flow:
        machine.start(job.id, ["n0"])
    machine.advance(_LONG / 100)
    return [100 * machine.progress(job.id) for job in flow]


def measured_mixes(kind: NodeType, noise: float, seed: int, rates: Sequence[float], runs: int = 3) -> list[Mix]:
    """Return the mixes that `calibrate --grid` would measure on it.

    A task of each rate (MB/s) next to one to three others of another rate, all cores busy, and twice as many tasks as
    cores.
    """
    rng, found = np.random.default_rng(seed), []
    company = [[rate, *[beside] * others] for others in (1, 2, 3) for rate in rates for beside in rates[::3]]
    crowds = [[rates[-1], low] * (kind.cores // 2) for low in rates] + [[rates[-1]] * (2 * kind.cores)]
    for tasks in [*company, *crowds]:
        true = np.array(speeds(kind, [(1.0, rate * 1e6) for rate in tasks]))
        seen = true / rng.normal(1.0, noise, (runs, len(tasks))).mean(axis=0)
        found.append(Mix(kind.cores, tuple(tasks), tuple(seen.tolist())))
    return found
