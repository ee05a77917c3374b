"""What is no longer as it was, from one calibration to the next or against a cluster file.

Rule: a number has changed when it differs by more than a bound and by more than its own noise explains; one that was
not measured this time has not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ...simulate.platform import NodeType
from .figures import Constant, Figure, half_width
from .piecewise import NAMES
from .result import Calibration, node_type, penalty
from .switching import Switching


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one key of a node type.

    Args:
        value: None = nothing.
        margin: half of the 95 % interval, in the value's unit; 0 = not told.
    """

    value: float | str | None
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """A key of a node type whose value differs by more than the bound.

    Args:
        ratio: new / old; None = it was not known before, was next to 0, or is no number.
        noise: how far apart the two may be by chance, as a share of the old one; None = no ratio.
        sure: the difference is larger than that.
    """

    key: str
    old: float | str | None
    new: float | str | None
    ratio: float | None = None
    noise: float | None = None
    sure: bool = True


def changes(before: Mapping[str, Known], after: Mapping[str, Known], bound: float) -> tuple[Change, ...]:
    """Return what differs by more than `bound` (0.1 = a tenth, up or down), in the order of the keys.

    What `after` does not know has not changed; what `before` did not know has.
    """
    seen = []
    for key, now in after.items():
        was = before.get(key, Known(None))
        if now.value is None or was.value == now.value:
            continue
        if not isinstance(was.value, float) or not isinstance(now.value, float) or was.value == 0:
            seen.append(Change(key, was.value, now.value))
            continue
        ratio, noise = now.value / was.value, math.hypot(was.margin, now.margin) / abs(was.value)
        if not (math.isfinite(ratio) and math.isfinite(noise)):
            seen.append(Change(key, was.value, now.value))
        elif not 1 / (1 + bound) <= ratio <= 1 + bound:
            seen.append(Change(key, was.value, now.value, ratio, noise, abs(ratio - 1) > noise))
    return tuple(seen)


def given(kind: NodeType) -> dict[str, Known]:
    """Return what a node type says of the keys that a calibration finds out."""
    numbers: dict[str, float | str | None] = {
        "cores": float(kind.cores),
        "sockets": float(kind.sockets),
        "memory": kind.memory,
        "memory_bandwidth": kind.memory_bandwidth,
        "speed": kind.speed,
        "cpu_sharing": str(kind.cpu_sharing),
        "remote_access_penalty": kind.remote_access_penalty,
        "queueing": kind.queueing,
        "contention": str(kind.contention),
        "contending_threads": str(kind.contending_threads),
    }
    if kind.power is not None:
        for key in ("per_core", "per_socket"):
            numbers[f"power.{key}"] = getattr(kind.power, key)
        numbers["power.off"] = kind.power.off
        for key in ("switch_off", "switch_on"):
            way = getattr(kind.power, key)
            for part in ("watts", "seconds"):
                numbers[f"power.{key}.{part}"] = None if way is None else getattr(way, part)
    if kind.piecewise is not None:
        for key in NAMES:
            numbers[f"piecewise.{key}"] = getattr(kind.piecewise, key)
    return {key: Known(value) for key, value in numbers.items()}


def measured(found: Calibration, name: str) -> dict[str, Known]:
    """Return the same of a calibration, with how well each is known; what it has not measured is not in it."""
    known = given(node_type(found, name))
    if found.sharing is None:
        del known["cpu_sharing"]
    if found.remote is None:
        del known["remote_access_penalty"]
    if found.waiting is None or not found.waiting.trusted:
        del known["queueing"]
    if found.choice is None:
        del known["contention"], known["contending_threads"]
    for key, margin in _margins(found).items():
        if key in known:
            known[key] = Known(known[key].value, margin)
    return known


def switched(found: Switching) -> dict[str, Known]:
    """Return what switching a node off and on has shown, with how well each is known."""
    known = {"power.off": found.off}
    for key, way in (("switch_off", found.switch_off), ("switch_on", found.switch_on)):
        known |= {f"power.{key}.watts": way.watts, f"power.{key}.seconds": way.seconds}
    return {key: Known(value.value, _margin(value)) for key, value in known.items() if value is not None}


def _margins(found: Calibration) -> dict[str, float]:
    fit = found.bandwidth
    slack = _margin(fit.per_thread) / fit.per_thread.value  # of a plateau that was not reached no interval is known
    margins = {
        "memory_bandwidth": _margin(fit.most) if fit.saturated else slack * fit.most.value,
        "speed": _margin(found.speed),
    }
    if found.remote is not None:
        margins["remote_access_penalty"] = penalty(found.remote, found.unbound)[1] or 0.0
    if found.waiting is not None:
        margins["queueing"] = _margin(found.waiting.strength)
    if found.power is not None:
        margins["power.per_core"] = _margin(found.power.per_core)
        margins["power.per_socket"] = _margin(found.power.base) / found.sockets
    if found.piecewise is not None:
        margins |= {f"piecewise.{name}": _margin(constant) for name, constant in found.piecewise.intervals.items()}
    return margins


def _margin(known: Constant | Figure) -> float:
    return half_width(known) or 0.0
