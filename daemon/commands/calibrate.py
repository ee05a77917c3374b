"""`pilotfish calibrate`: what this node can do, measured, as a node type for a cluster file; and what changed since.

Rule: all that can be wrong with the command line is found before anything is measured.
"""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...simulate.errors import ConfigError, PilotfishError
from . import inputs

if TYPE_CHECKING:
    from ...profiles.calibration.changes import Change, Known
    from ...profiles.calibration.result import Calibration

_PICTURES = (".svg", ".png")


def calibrate(
    context: typer.Context,
    other: Annotated[
        Path | None, typer.Argument(metavar="B", help="With --compare A: measure nothing, compare A with B.")
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="N", min=0.1, max=86400, help="Time that measuring may take.")
    ] = 20.0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a cluster file (YAML) of this node.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Name of the node and its type (default: the host's name).")
    ] = None,
    grid: Annotated[
        bool, typer.Option("--grid", help="Find the contention model that fits best; takes twice as long.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw data and fits: FILE.svg or .png.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FOLDER", help="Keep it there; report what changed since the last one."),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option("--compare", metavar="A", help="Report what is not as this cluster file or record says."),
    ] = None,
    bound: Annotated[
        float, typer.Option(metavar="SHARE", min=0.001, max=10, help="What is reported: 0.1 = changed by over 10 %.")
    ] = 0.1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")] = False,
    switching: Annotated[
        str | None, typer.Option(metavar="NODE", help="Switch another node OFF and on; time it, read its power.")
    ] = None,
    off_command: Annotated[str, typer.Option(metavar="CMD", help="Begins to switch $PILOTFISH_NODE off.")] = "",
    on_command: Annotated[str, typer.Option(metavar="CMD", help="Begins to switch it on.")] = "",
    up_command: Annotated[str, typer.Option(metavar="CMD", help="Exits with 0 when it is up.")] = "",
    down_command: Annotated[
        str, typer.Option(metavar="CMD", help="Exits with 0 when it is off (default: when it is not up).")
    ] = "",
    power_command: Annotated[str, typer.Option(metavar="CMD", help="Prints the watts that it draws.")] = "",
    repeat: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="How often it is switched.")] = 1,
    switch_limit: Annotated[
        float, typer.Option(metavar="S", min=0.1, max=86400, help="Wait no longer than this for it to go or come.")
    ] = 900.0,
    settle: Annotated[
        float, typer.Option(metavar="S", min=0.1, max=3600, help="Let it settle; then read its power for as long.")
    ] = 10.0,
    yes: Annotated[bool, typer.Option("--yes", help="Yes, switch it off.")] = False,
) -> None:
    """Measure this node: memory bandwidth, cores, how jobs share them, power; write it as a node type.

    It loads every CPU that it may use: run it on an idle node, or in a job that has the node to itself.
    With --switching it measures how long another node takes to go off and come back, by commands of the site.

    \b
    Examples:
      pilotfish calibrate
      pilotfish calibrate --seconds 60 --out node.yaml --plot node.svg
      pilotfish calibrate --record /shared/calibrations
      pilotfish calibrate --compare cluster.yaml --name xeon56
      pilotfish calibrate --compare monday.json friday.json
      pilotfish calibrate --switching n1 --yes --power-command ./watts
        --off-command 'ssh $PILOTFISH_NODE poweroff'
        --on-command 'ipmitool -H $PILOTFISH_NODE-bmc chassis power on'
        --up-command 'ping -c1 -W1 $PILOTFISH_NODE'
    """
    _check(seconds, out, picture, bound)
    given = {name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")}
    if switching is not None:
        from .switching import Wanted

        wanted = Wanted(switching, off_command, on_command, up_command, down_command, power_command,
                        repeat, switch_limit, settle)  # fmt: skip
        wanted.check(given, yes=yes)
        reference = None if compare is None else (str(compare), _known(compare, name))
        wanted.measure(out, picture, reference, bound, as_json)
        return
    _only_with_switching(given)
    if other is not None:
        for option, value in (("--out", out), ("--plot", picture), ("--record", record), ("--grid", grid or None)):
            if value is not None:
                raise inputs.bad(option, "nothing is measured where two files are compared")
        _compare(compare, other, name, bound, as_json)
        return
    chosen = _checked(name)
    if record is not None:
        _make(record)
    references = {} if compare is None else {str(compare): _known(compare, name)}
    from ...profiles.calibration.measure import calibrate as measure

    try:
        found = measure(seconds, with_grid=grid, tell=inputs.note if sys.stderr.isatty() else lambda text: None)
    except MemoryError:
        raise PilotfishError("there is not enough free memory for the arrays") from None
    _write(found, chosen, out, picture)
    if record is not None:
        references |= _recorded(record, found, chosen)
    _show(found, chosen, references, bound, as_json)


def _only_with_switching(given: set[str]) -> None:
    for name in ("off_command", "on_command", "up_command", "down_command", "power_command", "repeat", "switch_limit",
                 "settle", "yes"):  # fmt: skip
        if name in given:
            raise inputs.bad(f"--{name.replace('_', '-')}", "nothing is switched without --switching NODE")


def _compare(before: Path | None, after: Path, name: str | None, bound: float, as_json: bool) -> None:
    """Report what is not in one file as it is in another."""
    if before is None:
        raise inputs.bad("B", f"{after} is compared with what? (allowed: --compare A B)")
    from ...profiles.calibration.changes import changes

    changed = changes(_known(before, name), _known(after, name), bound)
    if as_json:
        import json
        from dataclasses import asdict

        print(json.dumps({"changes": [asdict(change) for change in changed]}, indent=2, allow_nan=False))
        return
    from ..render.calibration import show_changes

    show_changes(changed, str(after), str(before), bound)


def _checked(name: str | None) -> str:
    from ...simulate.formats.hostlist import is_node_name

    chosen = name if name is not None else platform.node() or "node"
    if not is_node_name(chosen):
        raise inputs.bad("--name", f"found {chosen[:100]!r} (allowed: letters, digits, '.', '_', '-')")
    return chosen


def _make(folder: Path) -> None:
    """Make a folder where there is none. Raises ConfigError: nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(str(folder), "", f"it cannot be made: {error.strerror}", "a folder") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(str(folder), "", "it cannot be written to", "a folder of this user's")


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


def _known(path: Path, name: str | None) -> dict[str, Known]:
    """What a recorded calibration, or a node type of a cluster file, says of a node. Raises ConfigError."""
    from ...profiles.calibration.changes import given, measured
    from ...profiles.calibration.records import read_known
    from ...simulate.formats.shape import nearest

    if (record := read_known(path)) is not None:
        return measured(record.found, record.name)
    types = {kind.name: kind for kind in inputs.read_cluster(path).types}
    if name is None and len(types) == 1:
        return given(next(iter(types.values())))
    wanted = platform.node() if name is None else name
    if wanted not in types:
        hint = nearest(wanted, types) if name else "; --name says which"
        raise ConfigError(str(path), "node_types", f"none is named {wanted!r}{hint}", ", ".join(types))
    return given(types[wanted])


def _recorded(folder: Path, found: Calibration, name: str) -> dict[str, dict[str, Known]]:
    """Keep a calibration in a folder; return what the last one there of the same node says, by its file."""
    from ...profiles.calibration.changes import measured
    from ...profiles.calibration.records import history, keep, newest

    last = newest(history(folder).get(name, []), 1, lambda error: inputs.warn(f"no calibration: {error}"))
    inputs.note(f"recorded in {keep(folder, found, name)}")
    if not last:
        inputs.note(f"it is the first of {name} there")
    return {f"the calibration of {record.found.date}": measured(record.found, record.name) for record in last}


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
    found: Calibration, name: str, references: Mapping[str, Mapping[str, Known]], bound: float, as_json: bool
) -> None:
    from ...profiles.calibration.changes import changes, measured

    now = measured(found, name)
    changed = {source: changes(known, now, bound) for source, known in references.items()}
    if as_json:
        print(_json(found, name, changed))
        return
    from ..render.calibration import show, show_changes

    show(found)
    for source, each in changed.items():
        show_changes(each, "it", source, bound)


def _json(found: Calibration, name: str, changed: Mapping[str, tuple[Change, ...]]) -> str:
    import json
    from dataclasses import asdict

    from ...profiles.calibration.records import document

    data = document(found, name)
    if changed:
        data["changes"] = [{"since": source, **asdict(change)} for source, each in changed.items() for change in each]
    return json.dumps(data, indent=2, allow_nan=False)
