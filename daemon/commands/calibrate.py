"""`pilotfish calibrate`: what this node can do, measured, as a node type for a cluster file.

Rule: all that can be wrong with the command line is found before anything is measured.
"""

from __future__ import annotations

import math
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...simulate.errors import ConfigError, PilotfishError
from . import inputs

if TYPE_CHECKING:
    from ...profiles.calibration.result import Calibration, Change
    from ...simulate.platform import NodeType

_PICTURES = (".svg", ".png")


def calibrate(
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="N", min=0.1, max=86400, help="Time that measuring may take.")
    ] = 20.0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a cluster file (YAML) of this node.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Name of the node type (default: the host's name).")
    ] = None,
    grid: Annotated[
        bool, typer.Option("--grid", help="Fit the piecewise-linear model as well; takes twice as long.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw data and fits: FILE.svg or .png.")
    ] = None,
    compare: Annotated[
        Path | None, typer.Option("--compare", metavar="CLUSTER", help="Report what is not as this file says.")
    ] = None,
    bound: Annotated[
        float, typer.Option(metavar="SHARE", min=0.001, max=10, help="What --compare reports: 0.1 = over 10 %.")
    ] = 0.1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")] = False,
) -> None:
    """Measure this node: memory bandwidth, cores, how jobs share them, power; write it as a node type.

    It loads every CPU that it may use: run it on an idle node, or in a job that has the node to itself.

    \b
    Examples:
      pilotfish calibrate
      pilotfish calibrate --seconds 60 --out node.yaml --plot node.svg
      pilotfish calibrate --compare cluster.yaml --name xeon56
    """
    chosen = _checked(name)
    _check(seconds, out, picture, bound)
    old = None if compare is None else _known(compare, name)
    from ...profiles.calibration.measure import calibrate as measure

    try:
        found = measure(seconds, with_grid=grid, tell=inputs.note if sys.stderr.isatty() else lambda text: None)
    except MemoryError:
        raise PilotfishError("there is not enough free memory for the arrays") from None
    _write(found, chosen, out, picture)
    if old is None:
        _show(found, chosen, None, "", bound, as_json)
    else:
        from ...profiles.calibration.result import changes

        _show(found, chosen, changes(old, found, bound), str(compare), bound, as_json)


def _checked(name: str | None) -> str:
    from ...simulate.formats.shape import name as convert

    try:
        return str(convert(name if name is not None else platform.node() or "node"))
    except ConfigError as error:
        raise inputs.bad_value("--name", error) from None


def _check(seconds: float, out: Path | None, picture: Path | None, bound: float) -> None:
    for option, value in (("--seconds", seconds), ("--bound", bound)):
        if not math.isfinite(value):
            raise inputs.bad(option, f"{value:g} (allowed: a number)")
    if out is not None and out.suffix not in (".yaml", ".yml"):
        raise inputs.bad("--out", f"{out.name!r} has no known ending (allowed: .yaml, .yml)")
    if picture is not None and picture.suffix.lower() not in _PICTURES:
        raise inputs.bad("--plot", f"{picture.name!r} has no known ending (allowed: {', '.join(_PICTURES)})")
    for path in filter(None, (out, picture)):
        if not path.parent.is_dir():
            raise ConfigError(str(path), "", "cannot be written: there is no such folder")
    if picture is not None:
        from ..render.extras import demand

        demand("matplotlib", f"a {picture.suffix.lower()}")


def _known(path: Path, name: str | None) -> NodeType:
    """The node type of a cluster file that is to be compared with. Raises ConfigError."""
    from ...simulate.formats.shape import nearest

    types = {kind.name: kind for kind in inputs.read_cluster(path).types}
    if name is None and len(types) == 1:
        return next(iter(types.values()))
    wanted = platform.node() if name is None else name
    if wanted not in types:
        hint = nearest(wanted, types) if name else "; --name says which"
        raise ConfigError(str(path), "node_types", f"none is named {wanted!r}{hint}", ", ".join(types))
    return types[wanted]


def _write(found: Calibration, name: str, out: Path | None, picture: Path | None) -> None:
    if out is not None:
        from ...profiles.calibration.file import cluster_text
        from ...simulate.formats.writing import write_whole

        write_whole(out, cluster_text(found, name))
        inputs.note(f"the node type is in {out}")
    if picture is not None:
        from ..plot.calibration import draw

        draw(found, picture)
        inputs.note(f"the picture is in {picture}")


def _show(
    found: Calibration, name: str, changed: tuple[Change, ...] | None, old: str, bound: float, as_json: bool
) -> None:
    if as_json:
        print(_json(found, name, changed))
        return
    from ..render.calibration import show, show_changes

    show(found)
    if changed is not None:
        show_changes(changed, old, bound)


def _json(found: Calibration, name: str, changed: tuple[Change, ...] | None) -> str:
    import json
    from dataclasses import asdict

    from ...profiles.calibration.result import cluster
    from ...simulate.formats.cluster import dump_cluster

    types = dump_cluster(cluster(found, name))["node_types"]
    document = {"schema": "pilotfish/calibration/v1", **found.to_dict(), "node_types": types}
    if changed is not None:
        document["changes"] = [asdict(change) for change in changed]
    return json.dumps(document, indent=2, allow_nan=False)
