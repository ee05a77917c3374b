"""All numbers of the store, one row each, for plotting.

Rule: every number has its source, date, runs and confidence; an unknown value has no row. A range is that of the runs
that a profile rests on, or the known interval; without either it is empty and says so.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields

from ..simulate.model.job import Profile
from .estimate import usable
from .interference.scores import Scores
from .measurement import Measurement
from .store import ProfileStore

_INTERVAL, _RANGE, _ROUNDS, _UNKNOWN = "interval", "range of the runs", "range of the rounds", "unknown"

#: Quantities of a run, and their units.
_UNITS = {
    "wall_time": "s", "isolated_time": "s", "cpu_time": "s", "waiting": "1", "company": "1", "memory": "bytes",
    "io": "bytes", "bandwidth": "bytes/s", "instructions": "1", "ipc": "1", "power_watts": "W",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Number:
    """One number.

    Args:
        part: profile, group N, group N phase M, run N, or score at a pressure.
        low, high: its bounds, None = unknown; confidence: the kind of these bounds.
        source: measured, given, predicted, relative score, or what counted it; date: ISO 8601.
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
        if (profile := store.get(name)) is not None:
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

    def row(
        part: str, quantity: str, value: float | None, *, unit: str = "", seen: Iterable[float | None] = (),
        within: tuple[float, float] | None = None,
    ) -> Iterator[Number]:  # fmt: skip
        if value is None:
            return
        low, high, confidence = None, None, _UNKNOWN
        values = [one for one in seen if one is not None]
        if within is not None:
            low, high, confidence = value * within[0], value * within[1], _INTERVAL
        elif len(values) > 1:
            low, high, confidence = min(values), max(values), _RANGE
        yield Number(
            profile.name, part, quantity, value, unit or _UNITS[quantity], low, high, confidence,
            counted.get(quantity, about.source), about.date or "", about.runs, profile.measured_on or "",
            about.node_type or "", about.note,
        )  # fmt: skip

    quantities = {
        "isolated_time": profile.isolated_time, "memory": profile.memory or None, "io": profile.io_bytes,
        "instructions": profile.instructions, "ipc": profile.ipc, "power_watts": profile.power_watts,
    }  # fmt: skip
    for quantity, value in quantities.items():
        yield from row("profile", quantity, value, seen=[_of_run(run)[quantity] for run in used])
    for i, group in enumerate(profile.groups):
        part = f"group {i + 1}"
        shares = [run.groups[i].mean_utilisation for run in used if i < len(run.groups)]
        yield from row(part, "threads", group.count, unit="1")
        yield from row(part, "service_demand", group.demand, unit="s", within=about.interval)
        yield from row(part, "utilisation", group.mean_utilisation, unit="1", seen=shares)
        yield from row(part, "utilisation_std", group.utilisation_std or None, unit="1")
        yield from row(part, "bandwidth", group.mean_bandwidth or None, seen=[run.bandwidth for run in used])
        for j, phase in enumerate(group.phases, 1):
            yield from row(f"{part} phase {j}", "share", phase.share, unit="1")
            yield from row(f"{part} phase {j}", "utilisation", phase.utilisation, unit="1")
            yield from row(f"{part} phase {j}", "bandwidth", phase.bandwidth or None)


def _of_run(run: Measurement) -> dict[str, float | None]:
    """Return quantity -> value, in the order of _UNITS."""
    return dict(zip(_UNITS, (
        run.wall_s, run.isolated_s, run.cpu_s, run.waiting, run.company, run.memory_bytes, run.io_bytes,
        run.bandwidth, run.instructions, run.ipc, run.power_watts,
    ), strict=True))  # fmt: skip


def _run_rows(name: str, number: int, run: Measurement) -> Iterator[Number]:
    note = f"exit code {run.exit_code}" if run.exit_code else f"aged {run.aged}" if run.aged else ""
    for quantity, value in _of_run(run).items():
        if value is not None:
            yield Number(
                name, f"run {number}", quantity, value, _UNITS[quantity], None, None, _UNKNOWN,
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
