"""Stored calibrations, one file each by node and time, and what changed between two of them.

Rule: a file is written whole and never changed. Only trusted files are read (see `trust`). Reading is bounded, and a
file that is not a record is one ConfigError. A value has changed if it differs by more than a bound; the change is sure
if it exceeds the noise of both. A value that was not measured this time has not changed.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...formats.cluster import dump_cluster, parse_cluster
from ...formats.documents.atomic_write import write_whole
from ...formats.documents.document_errors import found as shown_value
from ...formats.documents.files import check_schema, config_error, decode, parse_document, read_document
from ...formats.hostlist import is_node_name
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import NodeType
from ...trust import open_file, problem_of
from .fits import NAMES
from .node_switching import SwitchingResult
from .result import Calibration, cluster, node_type, penalty
from .statistics import Constant, MeasuredNumber, half_width

if TYPE_CHECKING:
    from pydantic import TypeAdapter
SCHEMA = "pilotfish/calibration/v1"
#: Keys of a node type that a calibration measures.
_KEYS = (
    "cores", "sockets", "memory", "memory_bandwidth", "loop_speed", "cpu_sharing", "remote_access_penalty", "queueing",
    "contention", "contending_threads", "power.per_core", "power.per_socket", "power.off",
    *(f"power.{way}.{part}" for way in ("switch_off", "switch_on") for part in ("watts", "seconds")),
    *(f"piecewise.{name}" for name in NAMES),
)  # fmt: skip
#: Bounds of a record's bytes (a large node's has some ten thousand) and of the files in a folder.
LARGEST, MOST_FILES = 4 * 2**20, 1_000_000
#: Invalid files of a node after which the search for a record ends.
_PATIENCE = 8
_NAME = re.compile(r"(?P<node>[^@/]+)@\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}Z\.json")


@dataclass(frozen=True, slots=True)
class KnownValue:
    """The value of a key of a node type, None = unknown; margin: half of the 95 % interval, 0 = not given."""

    value: float | str | None
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """A key of a node type whose value differs by more than the bound.

    Args:
        ratio: new / old; None = the old one was unknown or 0, or they are not numbers.
        noise: how far apart the two may be by chance, relative to the old one; None = no ratio.
        sure: the difference is larger than that.
    """

    key: str
    old: float | str | None
    new: float | str | None
    ratio: float | None = None
    noise: float | None = None
    sure: bool = True


def changes(before: Mapping[str, KnownValue], after: Mapping[str, KnownValue], bound: float) -> tuple[Change, ...]:
    """Return the changes by more than `bound` (0.1 = a tenth, up or down), in the order of the keys.

    Args:
        before: key -> value; unknown values have changed.
        after: key -> value; unknown values have not changed.
        bound: relative, >= 0.
    """
    differences = []
    for key, now in after.items():
        was = before.get(key, KnownValue(None))
        if now.value is None or was.value == now.value:
            continue
        ratio = noise = math.nan
        if isinstance(was.value, float) and isinstance(now.value, float) and was.value:
            ratio, noise = now.value / was.value, math.hypot(was.margin, now.margin) / abs(was.value)
        if not (math.isfinite(ratio) and math.isfinite(noise)):
            differences.append(Change(key, was.value, now.value))
        elif not 1 / (1 + bound) <= ratio <= 1 + bound:
            differences.append(Change(key, was.value, now.value, ratio, noise, abs(ratio - 1) > noise))
    return tuple(differences)


def type_values(kind: NodeType) -> dict[str, KnownValue]:
    """Return a node type's values of the keys that a calibration measures."""
    return {key: KnownValue(_value(kind, key)) for key in _KEYS}


def _value(kind: NodeType, key: str) -> float | str | None:
    value: Any = kind
    for name in key.split("."):
        value = getattr(value, name, None)
    return str(value) if isinstance(value, str) else None if value is None else float(value)


def calibrated_values(found: Calibration, name: str) -> dict[str, KnownValue]:
    """Return a calibration's values with their margins, without keys that it has not measured."""
    unknown = {
        "cpu_sharing": found.sharing is None,
        "remote_access_penalty": found.remote is None,
        "queueing": found.waiting is None or not found.waiting.trusted,
        "contention": found.choice is None,
        "contending_threads": found.choice is None,
    }
    margins = _margins(found)
    values = type_values(node_type(found, name))
    return {k: KnownValue(v.value, margins.get(k, 0.0)) for k, v in values.items() if not unknown.get(k)}


def switching_values(found: SwitchingResult) -> dict[str, KnownValue]:
    """Return the values with margins that switching a node has shown."""
    values = {"power.off": found.off}
    for key, way in (("switch_off", found.switch_off), ("switch_on", found.switch_on)):
        values |= {f"power.{key}.watts": way.watts, f"power.{key}.seconds": way.seconds}
    return {key: KnownValue(value.value, _margin(value)) for key, value in values.items() if value is not None}


def _margins(calibration: Calibration) -> dict[str, float]:
    fit = calibration.bandwidth
    slack = _margin(fit.per_thread) / fit.per_thread.value  # an unreached plateau has no interval
    margins = {
        "memory_bandwidth": _margin(fit.most) if fit.saturated else slack * fit.most.value,
        "loop_speed": _margin(calibration.speed),
    }
    if calibration.remote is not None:
        margins["remote_access_penalty"] = penalty(calibration.remote, calibration.unbound)[1] or 0.0
    if calibration.waiting is not None:
        margins["queueing"] = _margin(calibration.waiting.strength)
    if calibration.power is not None:
        margins["power.per_core"] = _margin(calibration.power.per_core)
        margins["power.per_socket"] = _margin(calibration.power.base) / calibration.sockets
    if calibration.piecewise is not None:
        margins |= {
            f"piecewise.{name}": _margin(constant) for name, constant in calibration.piecewise.intervals.items()
        }
    return margins


def _margin(quantity: Constant | MeasuredNumber) -> float:
    return half_width(quantity) or 0.0


@dataclass(frozen=True, slots=True)
class CalibrationRecord:
    """A calibration with the name of its node and node type."""

    name: str
    found: Calibration

    @property
    def time(self) -> float:
        """Time of the measurement, seconds since the epoch."""
        date = datetime.fromisoformat(self.found.date)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


Read = Callable[[Path], CalibrationRecord]


def to_document(found: Calibration, name: str) -> dict[str, Any]:
    """Return a calibration as plain values for JSON, as `record` reads them."""
    types = dump_cluster(cluster(found, name))["node_types"]
    return {"schema": SCHEMA, "name": name, **asdict(found), "node_types": types}


def save_record(folder: Path, found: Calibration, name: str) -> Path:
    """Write a calibration as a new file into a folder and return the file. Raises OSError."""
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
    text = json.dumps(to_document(found, name), indent=1, allow_nan=False)
    return write_whole(folder / f"{name}@{moment}.json", text + "\n")


def record_files(folder: Path) -> dict[str, list[Path]]:
    """Return the files named like records, by node, newest first. Raises OSError, ConfigError."""
    by_node: dict[str, list[Path]] = {}
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number >= MOST_FILES:
                raise ConfigError(str(folder), "", "too many files", f"at most {MOST_FILES:,}")
            if match := _NAME.fullmatch(entry.name):
                by_node.setdefault(match["node"], []).append(Path(entry.path))
    return {node: sorted(paths, reverse=True) for node, paths in sorted(by_node.items())}


def read_record(path: Path) -> CalibrationRecord:
    """Return the record in a file; reads at most LARGEST bytes. Raises ConfigError."""
    return record(parse_document(decode(_bytes(path), str(path)), str(path)), str(path))


def newest(
    paths: Iterable[Path], most: int, refused: Callable[[ConfigError], None], read: Read = read_record
) -> list[CalibrationRecord]:
    """Return the first `most` records of some files; those of a node that was not idle are left out.

    Args:
        paths: newest first.
        most: number of records.
        refused: called with the error of each file that is not a record.
        read: reads a file.
    """
    records, bad = list[CalibrationRecord](), 0
    for path in paths:
        if len(records) == most or bad == _PATIENCE:
            break
        try:
            one = read(path)
            if one.found.idle:
                records.append(one)
            else:
                bad += 1
        except ConfigError as error:
            bad += 1
            refused(error)
    return records


def read_if_record(path: Path) -> CalibrationRecord | None:
    """Return the record in a file, None if it is another document, such as a cluster file. Raises ConfigError."""
    data = read_document(path)
    return record(data, str(path)) if data.get("schema") == SCHEMA else None


def record(data: dict[str, Any], source: str) -> CalibrationRecord:
    """Return the record in a mapping. Raises ConfigError for a missing key or an invalid value."""
    from pydantic import ValidationError

    data = check_schema(data, "calibration", source)
    name = data.get("name")
    if not isinstance(name, str) or not is_node_name(name):
        raise ConfigError(source, "name", shown_value(name) if "name" in data else "missing", "the name of a node")
    try:
        calibration = _adapter().validate_python(data)
    except ValidationError as error:
        raise config_error(error, source, Calibration) from None  # type: ignore[arg-type]
    result = CalibrationRecord(name, calibration)
    try:
        if not (calibration.bandwidth.per_thread.value > 0 and result.time > 0):
            raise ValueError
        calibrated_values(calibration, name)
        dumped = dump_cluster(cluster(calibration, name))
    except (ValueError, ArithmeticError):
        raise ConfigError(source, "", "invalid numbers or date", "a record that calibrate wrote") from None
    parse_cluster(dumped, source)
    return result


@cache
def _adapter() -> TypeAdapter[Calibration]:
    from pydantic import TypeAdapter

    return TypeAdapter(Calibration)


def _bytes(path: Path) -> bytes:
    """Return the content of a trusted file; a folder of records may be one that others can write to."""
    try:
        with os.fdopen(open_file(path), "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ConfigError(str(path), "", f"cannot be read: {problem_of(error, path)}") from None
    if len(data) > LARGEST:
        raise ConfigError(str(path), "", "too large", f"at most {LARGEST // 2**20} MiB")
    return data
