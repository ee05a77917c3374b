"""Models for tests: files of learned orders with chosen weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pilotfish.formats.model_file import write_model
from pilotfish.formats.models.order_model import Baseline, OrderModel
from pilotfish.formats.models.verdicts import IN_TRAINING, LEAST_COPIES
from pilotfish.simulate.queue_policies.learned_order import FEATURES

#: A verdict that proves a model.
BEATS: dict[str, Any] = {
    "trace": "another", "rival": "easy:order=sjf", "number": "bsld", "chosen": IN_TRAINING, "beats": True,
    "ratio": 0.8, "low": 0.7, "high": 0.9, "copies": LEAST_COPIES, "sha256": "1" * 64, "part": "all",
}  # fmt: skip


def weights_of(**by_place: float) -> tuple[float, ...]:
    """Return weights that are 0 but for those given, such as `f0=1.0`."""
    return tuple(by_place.get(f"f{place}", 0.0) for place in range(len(FEATURES)))


#: Shortest limit first; the longest and largest first, which is about the worst that an order can do.
SJF, LIAR = weights_of(f0=1.0), weights_of(f0=-5.0, f1=-1.0)


def model_of(
    weights: tuple[float, ...], *, processors: int = 16, max_wait: float = 1e7, baseline: str = "easy:order=sjf",
    limits: tuple[float, float] = (1.0, 1e6), evaluated: tuple[dict[str, Any], ...] = (),
) -> OrderModel:  # fmt: skip
    """Return a model that was trained on jobs of any size, with limits in a range, seconds."""
    trained = {"traces": [{"name": "t", "sha256": "0" * 64, "jobs": 100, "processors": processors}], "part": "all"}
    quantiles = {"limit": limits, "share": (1e-6, 1.0), "wait": (0.0, 1e6)}
    return OrderModel(
        weights, max_wait, "bsld", (processors,), trained, quantiles, evaluated, baseline=Baseline(baseline)
    )


def model_file(folder: Path, weights: tuple[float, ...], name: str = "m", **more: Any) -> Path:
    """Write the file of a model; see `model_of`."""
    path = folder / f"{name}.pfmodel.json"
    write_model(path, model_of(weights, **more))
    path.chmod(0o600)
    return path
