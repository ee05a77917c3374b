"""`pilotfish profile export`: the store's profiles as a file to import elsewhere, or all numbers for plotting.

Rule: a file is written whole or not at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...simulate.errors import ConfigError
from . import inputs

if TYPE_CHECKING:
    from ...profiles.store import ProfileStore

_ENDINGS = (".yaml", ".yml", ".json")


def export(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="FILE.yaml, .json or .csv; default: YAML on stdout.")
    ] = None,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Each number by itself, with what is known of it; so in any FILE.csv.")
    ] = False,
    store: inputs.Store = None,
) -> None:
    """Write the store's own profiles, to import or to plot.

    For plotting, each number has a row: of which profile and part it is, between what it is, its source, date and runs.

    \b
    Examples:
      pilotfish profile export profiles.yaml
      pilotfish profile export numbers.csv
      pilotfish profile export --numbers numbers.json
    """
    if file is not None and file.suffix not in (*_ENDINGS, ".csv"):
        raise inputs.bad("[FILE]", f"{file.name!r} has no known ending (allowed: {', '.join((*_ENDINGS, '.csv'))})")
    kind = ".yaml" if file is None else file.suffix
    if numbers and kind not in (".csv", ".json"):
        raise inputs.bad("--numbers", "they are written to FILE.csv or FILE.json")
    keep = inputs.Profiles(store).store
    text = _numbers(keep, kind) if numbers or kind == ".csv" else keep.export_text(as_json=kind == ".json")
    if file is None:
        print(text, end="")
        return
    from ...simulate.formats.writing import write_whole

    try:
        write_whole(file, text)
    except OSError as error:
        raise ConfigError(str(file), "", f"cannot be written: {error.strerror}") from None


def _numbers(keep: ProfileStore, kind: str) -> str:
    import json
    from dataclasses import asdict

    from ...profiles.numbers import numbers, to_csv

    rows = list(numbers(keep))
    if kind == ".csv":
        return to_csv(rows)
    document = {"schema": "pilotfish/numbers/v1", "numbers": [asdict(row) for row in rows]}
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
