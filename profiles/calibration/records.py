"""Calibrations that are kept: one file each in a folder, by node and moment.

Rule: a file is written whole and never changed; whatever else lies in the folder, reading is bounded and a file that is
no record is one ConfigError.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...simulate.errors import ConfigError
from ...simulate.formats.cluster import dump_cluster, parse_cluster
from ...simulate.formats.hostlist import is_node_name
from ...simulate.formats.reading import check_schema, config_error, decode, parse_document, read_document
from ...simulate.formats.units import found as shown_value
from ...simulate.formats.writing import write_whole
from .changes import measured
from .result import Calibration, cluster

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA = "pilotfish/calibration/v1"
#: A record of a large node has some ten thousand bytes.
LARGEST, MOST_FILES = 4 * 2**20, 1_000_000
#: Files of a node that may be no records before the search for one is given up.
_PATIENCE = 8
_NAME = re.compile(r"(?P<node>[^@/]+)@\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}Z\.json")


@dataclass(frozen=True, slots=True)
class Record:
    """A calibration with the name under which it is kept: that of the node, and of its type."""

    name: str
    found: Calibration

    @property
    def time(self) -> float:
        """When it was measured, seconds since the epoch."""
        date = datetime.fromisoformat(self.found.date)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


Read = Callable[[Path], Record]


def document(found: Calibration, name: str) -> dict[str, Any]:
    """Return a calibration as plain values for JSON; `read` takes them back."""
    types = dump_cluster(cluster(found, name))["node_types"]
    return {"schema": SCHEMA, "name": name, **found.to_dict(), "node_types": types}


def keep(folder: Path, found: Calibration, name: str) -> Path:
    """Write a calibration into a folder, beside those that are there; returns the file. Raises OSError."""
    import json

    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
    text = json.dumps(document(found, name), indent=1, allow_nan=False)
    return write_whole(folder / f"{name}@{moment}.json", text + "\n")


def history(folder: Path) -> dict[str, list[Path]]:
    """Return the files that are named like records, by node, the newest first. Raises OSError, ConfigError."""
    by_node: dict[str, list[Path]] = {}
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number >= MOST_FILES:
                raise ConfigError(str(folder), "", "too many files", f"at most {MOST_FILES:,}")
            if match := _NAME.fullmatch(entry.name):
                by_node.setdefault(match["node"], []).append(Path(entry.path))
    return {node: sorted(paths, reverse=True) for node, paths in sorted(by_node.items())}


def read_record(path: Path) -> Record:
    """Return the record in a file, of which no more than LARGEST bytes are read. Raises ConfigError."""
    return record(parse_document(decode(_bytes(path), str(path)), str(path)), str(path))


def newest(
    paths: Iterable[Path], most: int, refused: Callable[[ConfigError], None], read: Read = read_record
) -> list[Record]:
    """Return the first `most` records of some files, the newest first.

    Args:
        refused: called with what is wrong with a file that is no record.
    """
    found, bad = list[Record](), 0
    for path in paths:
        if len(found) == most or bad == _PATIENCE:
            break
        try:
            found.append(read(path))
        except ConfigError as error:
            bad += 1
            refused(error)
    return found


def read_known(path: Path) -> Record | None:
    """Return the record in a file that may be a cluster file as well; None = it is not a record. Raises ConfigError."""
    data = read_document(path)
    return record(data, str(path)) if data.get("schema") == SCHEMA else None


def record(data: dict[str, Any], source: str) -> Record:
    """Return the record that a mapping holds. Raises ConfigError: a key is missing, or makes no sense."""
    from pydantic import ValidationError

    data = check_schema(data, "calibration", source)
    name = data.get("name")
    if not isinstance(name, str) or not is_node_name(name):
        raise ConfigError(source, "name", shown_value(name) if "name" in data else "missing", "the name of a node")
    try:
        found = _adapter().validate_python(data)
    except ValidationError as error:
        raise config_error(error, source, Calibration) from None  # type: ignore[arg-type]
    result = Record(name, found)
    try:
        if not (found.bandwidth.per_thread.value > 0 and result.time > 0):
            raise ValueError
        measured(found, name)
        dumped = dump_cluster(cluster(found, name))
    except (ValueError, ArithmeticError):
        raise ConfigError(source, "", "its numbers or its date make no sense", "what calibrate wrote") from None
    parse_cluster(dumped, source)
    return result


@cache
def _adapter() -> TypeAdapter[Calibration]:
    from pydantic import TypeAdapter

    return TypeAdapter(Calibration)


def _bytes(path: Path) -> bytes:
    """Of a regular file and no other: a pipe would keep us waiting."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfigError(str(path), "", "not a regular file")
            data = b""
            while len(data) <= LARGEST and (piece := os.read(descriptor, LARGEST + 1)):
                data += piece
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ConfigError(str(path), "", f"cannot be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise ConfigError(str(path), "", "too large", f"at most {LARGEST // 2**20} MiB")
    return data
