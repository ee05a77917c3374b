"""Models for tests: files of networks that score pairs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from pilotfish.formats.models.pair_model import PairModel
from pilotfish.simulate.learned.pair_heads import HEADS
from pilotfish.simulate.learned.pair_network import Layer, PairSight

#: Machine of four nodes: processors and speed of each.
PAIR_NODES = ((4, 1.0), (4, 2.0), (8, 1.0), (8, 2.0))
#: What a training saw of jobs, for a model with a net.
SEEN = {"limit": (1.0, 1e6), "size": (1.0, 8.0), "usual": (0.1, 0.4, 0.3, 0.99, 0.5, 0.5, 0.5)}


def random_layers(seed: int, widths: tuple[int, ...] = (7, 8, 5, 4, 1)) -> tuple[Layer, ...]:
    """Return the layers of a network with drawn weights."""
    draw = np.random.default_rng(seed).standard_normal
    return tuple(
        (tuple(map(tuple, draw((inputs, outputs)).tolist())), tuple(draw(outputs).tolist()))
        for inputs, outputs in pairwise(widths)
    )


def pair_model(seed: int = 0, layers: tuple[Layer, ...] | None = None, **changes: Any) -> PairModel:
    """Return a model; `changes`: of its fields."""
    trained = {"traces": [{"name": "t", "sha256": "0" * 64, "jobs": 100, "processors": 24}], "epochs": 1}
    fields: dict[str, Any] = {
        "layers": random_layers(seed) if layers is None else layers,
        "sight": PairSight("any", 128, 7_776_000.0, 43_200.0, True), "objective": "bsld", "nodes": PAIR_NODES,
        "trained": trained,
    }  # fmt: skip
    return PairModel(**(fields | changes))


def headed_model(head: str, seed: int = 0, **changes: Any) -> PairModel:
    """Return a model with a head, a key of HEADS; `changes`: of its fields."""
    job_layers = random_layers(seed + 1, (4, 6, 1)) if HEADS[head].jobs_first else ()
    return pair_model(seed, head=head, job_layers=job_layers, **changes)
