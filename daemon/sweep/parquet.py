"""The rows of a sweep as Parquet, written by pyarrow, which is an extra.

Rule: pyarrow is imported here and nowhere else, and its absence is one clear sentence.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any

from ...simulate.batch.metrics import Summary
from ...simulate.errors import PilotfishError
from ...simulate.formats.writing import write_whole

#: Columns that are numbers, beside those of Summary; all others are text.
_NUMBERS = {"run": "int64", "seed": "int64", "load": "float64", "from": "float64", "until": "float64",
            "min_size": "int64", "max_size": "int64"}  # fmt: skip
_NUMBERS |= {each.name: "int64" if each.type == "int" else "float64" for each in fields(Summary)}


def demand_pyarrow() -> None:
    """Raise PilotfishError if pyarrow is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise PilotfishError("--parquet needs pyarrow: pip install 'pilotfish[parquet]', or do without: CSV is written")


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Write the rows, whole or not at all. Raises PilotfishError: pyarrow is not installed. OSError."""
    demand_pyarrow()
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([(name, getattr(pyarrow, _NUMBERS.get(name, "string"))()) for name in columns])
    texts = [{name: _plain(name, row[name]) for name in columns} for row in rows]
    made = BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(texts, schema), made)
    write_whole(path, made.getvalue())


def _plain(name: str, value: Any) -> Any:
    """A number where the column holds numbers, else text."""
    return value if value is None or name in _NUMBERS else str(value)
