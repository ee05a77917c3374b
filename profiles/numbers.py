"""All numbers of the store, one row each, for plotting.

Rule: every number has its source, date, runs and confidence; an unknown value has no row. A range is that of the runs
that a profile rests on, or the known interval; without either it is empty and says so.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import NamedTuple

from ..simulate.model.job import Profile
from .estimate import usable
from .interference.scores import Scores
from .measurement import Measurement
from .store import ProfileStore

_INTERVAL, _RANGE, _ROUNDS, _UNKNOWN = "interval", "range of the runs", "range of the rounds", "unknown"


@dataclass(frozen=True, slots=True)
class Number:
    """One number.

    Args:
        profile: its name; part: profile, group N, group N phase M, run N, or score at a pressure.
        quantity, value, unit: the number.
        low, high: its bounds; None = unknown.
        confidence: the kind of these bounds.
        source: measured, given, predicted, relative score, or what counted it; date: ISO 8601; runs: number of runs.
        node_type, cpu_model: on which it was measured, if known.
        note: further remarks about the profile.
    """

    profile: str
    part: str
    quantity: str
    value: float
    unit: str
    low: float | None
    high: float | None
    confidence: str
    source: str
    date: str
    runs: int
    node_type: str
    cpu_model: str
    note: str


def numbers(store: ProfileStore) -> Iterator[Number]:
    """Yield all numbers of the store's own profiles, of their runs, and of scores."""
    for name in store.own_names():
        profile = store.get(name)
        if profile is not None:
            runs = store.history(name)
            yield from _profile_rows(profile, usable(runs))
            for i, run in enumerate(runs, 1):
                yield from _run_rows(name, i, run)
    for scores in store.scores():
        yield from _score_rows(scores)


def to_csv(rows: Sequence[Number]) -> str:
    """Return the rows as CSV with a header; unknown values are empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Number)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def _profile_rows(profile: Profile, used: Sequence[Measurement]) -> Iterator[Number]:
    about, counted = profile.provenance, used[-1].sources if used else {}
    for fact in _facts(profile, used):
        if fact.value is not None:
            low, high, confidence = _bounds(fact)
            yield Number(
                profile.name, fact.part, fact.quantity, fact.value, fact.unit, low, high, confidence,
                counted.get(fact.quantity, about.source), about.date or "", about.runs, profile.measured_on or "",
                about.node_type or "", about.note,
            )  # fmt: skip


class _Fact(NamedTuple):
    """A number of a profile, with the runs' values of it or the factors that bound it."""

    part: str
    quantity: str
    value: float | None
    unit: str
    seen: Sequence[float | None] = ()
    within: tuple[float, float] | None = None


def _facts(profile: Profile, used: Sequence[Measurement]) -> Iterator[_Fact]:
    part = "profile"
    yield _Fact(part, "isolated_time", profile.isolated_time, "s", [run.isolated_s for run in used])
    yield _Fact(part, "memory", profile.memory or None, "bytes", [run.memory_bytes for run in used])
    yield _Fact(part, "io", profile.io_bytes, "bytes", [run.io_bytes for run in used])
    yield _Fact(part, "instructions", profile.instructions, "1", [run.instructions for run in used])
    yield _Fact(part, "ipc", profile.ipc, "1", [run.ipc for run in used])
    yield _Fact(part, "power_watts", profile.power_watts, "W", [run.power_watts for run in used])
    rates = [run.bandwidth for run in used]
    for i, group in enumerate(profile.groups):
        part = f"group {i + 1}"
        shares = [run.groups[i].mean_utilisation for run in used if i < len(run.groups)]
        yield _Fact(part, "threads", group.count, "1")
        yield _Fact(part, "service_demand", group.demand, "s", within=profile.provenance.interval)
        yield _Fact(part, "utilisation", group.mean_utilisation, "1", shares)
        yield _Fact(part, "utilisation_std", group.utilisation_std or None, "1")
        yield _Fact(part, "bandwidth", group.mean_bandwidth or None, "bytes/s", rates)
        for j, phase in enumerate(group.phases, 1):
            yield _Fact(f"{part} phase {j}", "share", phase.share, "1")
            yield _Fact(f"{part} phase {j}", "utilisation", phase.utilisation, "1")
            yield _Fact(f"{part} phase {j}", "bandwidth", phase.bandwidth or None, "bytes/s")


def _bounds(fact: _Fact) -> tuple[float | None, float | None, str]:
    if fact.value is not None and fact.within is not None:
        return fact.value * fact.within[0], fact.value * fact.within[1], _INTERVAL
    known = [one for one in fact.seen if one is not None]
    return (min(known), max(known), _RANGE) if len(known) > 1 else (None, None, _UNKNOWN)


def _run_rows(name: str, number: int, run: Measurement) -> Iterator[Number]:
    values = {
        "wall_time": (run.wall_s, "s"), "isolated_time": (run.isolated_s, "s"), "cpu_time": (run.cpu_s, "s"),
        "waiting": (run.waiting, "1"), "company": (run.company, "1"), "memory": (run.memory_bytes, "bytes"),
        "io": (run.io_bytes, "bytes"), "bandwidth": (run.bandwidth, "bytes/s"),
        "instructions": (run.instructions, "1"), "ipc": (run.ipc, "1"), "power_watts": (run.power_watts, "W"),
    }  # fmt: skip
    note = f"exit code {run.exit_code}" if run.exit_code else f"aged {run.aged}" if run.aged else ""
    for quantity, (value, unit) in values.items():
        if value is not None:
            yield Number(
                name, f"run {number}", quantity, value, unit, None, None, _UNKNOWN,
                run.sources.get(quantity, run.method), run.date, 1, run.node_type or "", run.cpu_model, note,
            )  # fmt: skip


def _score_rows(scores: Scores) -> Iterator[Number]:
    def row(part: str, quantity: str, value: float, low: float | None = None, high: float | None = None) -> Number:
        confidence = _UNKNOWN if low is None else _ROUNDS
        return Number(
            scores.name, part, quantity, value, "1", low, high, confidence, "relative score", scores.date,
            scores.rounds, scores.node_type or "", scores.cpu_model, "against a streamer of memory on this machine",
        )  # fmt: skip

    for level in scores.levels:
        part = f"score at {level.pressure:g}"
        yield row(part, "sensitivity", level.factor, level.least, level.most)
        yield row(part, "streamer_slowed", level.slowed)
    if scores.pressure is not None:
        yield row("score", "pressure", scores.pressure)
