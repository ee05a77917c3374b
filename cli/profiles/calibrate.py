"""`pilotfish calibrate`: measure this node and write it as a node type; or switch another node off and on, and time it.

Rule: the command line is checked before anything is measured. Only the node named by --switching is switched, after
--yes; a signal ends the command only when the node is on again.
"""

from __future__ import annotations

import math
import os
import platform
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...formats.documents.atomic_write import write_whole
from ...formats.hostlist import is_node_name, local_node_names
from ...simulate.errors import ConfigError, PilotfishError, did_you_mean
from ...trust import make_folders
from .. import options
from ..charts import picture_files
from ..inputs import check_output, read_cluster
from ..options import argument, flag, option
from ..output.documents import print_json
from ..streams import note, warn
from ..usage_errors import bad, given_options, refuse

if TYPE_CHECKING:
    from ...profiles.calibration.calibration_records import KnownValue
    from ...profiles.calibration.node_switching import SwitchingCommands, SwitchTiming
    from ...profiles.calibration.result import Calibration

#: Options about a measurement on this node, and about another node.
_OF_THIS_NODE = ("other", "seconds", "grid", "record", "force")
_OF_SWITCHING = (
    "off_command", "on_command", "up_command", "down_command", "power_command", "repeat", "switch_limit", "settle",
    "yes",
)  # fmt: skip


def calibrate(
    context: typer.Context,
    other: Annotated[Path | None, argument("B", "With --compare A: measure nothing, compare A with B.")] = None,
    seconds: Annotated[float, option("SECONDS", "Time limit of the measurement.", min=0.1, max=86400)] = 20.0,
    out: Annotated[Path | None, option("FILE", "Write a cluster file (YAML) of this node.", "--out", "-o")] = None,
    name: Annotated[str | None, option("TYPE", "Name of the node and its type.", default="the host's name")] = None,
    grid: Annotated[bool, flag("--grid", "Find the contention model that fits best; takes twice as long.")] = False,
    picture: picture_files.PlotFile = None,
    record: Annotated[
        Path | None, option("DIR", "Store a record in this folder; report changes since the last.")
    ] = None,
    compare: Annotated[Path | None, option("A", "Report differences from this cluster file or record.")] = None,
    bound: Annotated[float, option("SHARE", "Least change that is reported; 0.1 is 10 %.", min=0.001, max=10)] = 0.1,
    as_json: options.Json = False,
    switching: Annotated[
        str | None, option("NODE", "Switch this other node OFF and on; time it, read its power.")
    ] = None,
    off_command: Annotated[str, option("CMD", "Command that switches $PILOTFISH_NODE off.")] = "",
    on_command: Annotated[str, option("CMD", "Command that switches it on.")] = "",
    up_command: Annotated[str, option("CMD", "Command that exits with 0 when it is up.")] = "",
    down_command: Annotated[
        str, option("CMD", "Command that exits with 0 when it is off.", default="when --up-command fails")
    ] = "",
    power_command: Annotated[str, option("CMD", "Command that prints its power in watts.")] = "",
    repeat: options.Repeat = 1,
    switch_limit: Annotated[
        float, option("SECONDS", "Time limit for the node to go off, or to come up.", min=0.1, max=86400)
    ] = 900.0,
    settle: Annotated[
        float, option("SECONDS", "Wait this long, then read its power for as long.", min=0.1, max=3600)
    ] = 10.0,
    yes: Annotated[bool, flag("--yes", "Confirm that the node may be switched off.")] = False,
    force: Annotated[bool, flag("--force", "Write the files even if the node was not idle.")] = False,
) -> None:
    """Measure this node: memory bandwidth, cores, contention, power; write it as a node type.

    It loads every CPU that it may use: run it on an idle node, or in a job that has the node to itself. If other
    processes used its cores, the results are printed, but no file is written, and the exit code is 1. With --switching,
    measure how long another node takes to go off and come back, with commands of the site.

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
    numbers = {"--seconds": seconds, "--bound": bound, "--switch-limit": switch_limit, "--settle": settle}
    for option_name, value in numbers.items():
        if not math.isfinite(value):
            raise bad(option_name, f"{value:g} (allowed: a number)")
    if out is not None:
        check_output(out, (".yaml", ".yml"))
    picture_files.check(picture)
    option_names = given_options(context)
    if switching is not None:
        from ...profiles.calibration.node_switching import SwitchingCommands, SwitchTiming

        down, power = down_command.strip() or None, power_command.strip() or None
        commands = SwitchingCommands(off_command, on_command, up_command, down, power)
        _check_switching(switching, commands, option_names)
        if not yes:
            times = "once" if repeat == 1 else f"{repeat} times"
            raise bad("--yes", f"missing: {switching} would be switched OFF and on, {times}")
        references = {} if compare is None else {str(compare): _known_values(compare, name)}
        timing = SwitchTiming(switch_limit, settle, max(0.05, min(1.0, settle / 10)))
        _switch(switching, commands, timing, repeat, out, picture, references, bound, as_json)
        return
    refuse(_OF_SWITCHING, option_names, "only with --switching NODE")
    if other is not None:
        refuse(("out", "picture", "record", "grid"), option_names, "not with two files to compare: nothing is measured")
        _compare(compare, other, name, bound, as_json)
        return
    node_name = local_node_names(platform.node(), [()])[0] if name is None else name
    if not is_node_name(node_name):
        raise bad("--name", f"found {node_name[:100]!r} (allowed: letters, digits, '.', '_', '-')")
    if record is not None:
        _make(record)
    references = {} if compare is None else {str(compare): _known_values(compare, name)}
    _measure(node_name, seconds, grid, out, picture, record, references, bound, as_json, force)


def _compare(before: Path | None, after: Path, name: str | None, bound: float, as_json: bool) -> None:
    """Report the differences between two files. Raises ConfigError, typer.BadParameter."""
    if before is None:
        raise bad("B", f"{after} needs a second file (allowed: --compare A B)")
    from ...profiles.calibration.calibration_records import changes

    changed = changes(_known_values(before, name), _known_values(after, name), bound)
    if as_json:
        print_json("calibration-changes", {"changes": [asdict(change) for change in changed]})
        return
    from ..output.profiles import show_changes

    show_changes(changed, str(after), str(before), bound)


def _make(folder: Path) -> None:
    """Make a folder if it is missing. Raises ConfigError: it cannot be made or written to."""
    try:
        make_folders(folder)
    except OSError as error:
        raise ConfigError(str(folder), "", f"it cannot be made: {error.strerror}", "a folder") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(str(folder), "", "it cannot be written to", "a writable folder")


def _known_values(path: Path, name: str | None) -> dict[str, KnownValue]:
    """Return the numbers of a node in a record or a cluster file. Raises ConfigError."""
    from ...profiles.calibration.calibration_records import calibrated_values, read_if_record, type_values

    if (record := read_if_record(path)) is not None:
        return calibrated_values(record.found, record.name)
    types = {kind.name: kind for kind in read_cluster(path).types}
    if name is None and len(types) == 1:
        return type_values(next(iter(types.values())))
    type_name = platform.node() if name is None else name
    if type_name not in types:
        hint = did_you_mean(type_name, types) if name else "; --name selects one"
        raise ConfigError(str(path), "node_types", f"none is named {type_name!r}{hint}", ", ".join(types))
    return type_values(types[type_name])


def _recorded(folder: Path, measured: Calibration, name: str) -> dict[str, dict[str, KnownValue]]:
    """Record a calibration; return the numbers of the last record of the same node."""
    from ...profiles.calibration.calibration_records import calibrated_values, newest, record_files, save_record

    last = newest(record_files(folder).get(name, []), 1, lambda error: warn(f"not a calibration: {error}"))
    note(f"recorded in {save_record(folder, measured, name)}")
    if not last:
        note(f"it is the first record of {name} there")
    return {f"the calibration of {record.found.date}": calibrated_values(record.found, record.name) for record in last}


def _measure(
    name: str, seconds: float, grid: bool, out: Path | None, picture: Path | None, record: Path | None,
    references: dict[str, dict[str, KnownValue]], bound: float, as_json: bool, force: bool,
) -> None:  # fmt: skip
    """Measure this node, write and print the result, and report its differences from the references.

    Raises PilotfishError: the node was not idle, so that no file was written.
    """
    from ...profiles.calibration.calibration_records import calibrated_values, changes, to_document
    from ...profiles.calibration.report import cluster_text
    from ...profiles.calibration.session import calibrate
    from ..output.profiles import show_calibration, show_changes

    try:
        measured = calibrate(seconds, with_grid=grid, progress=note if sys.stderr.isatty() else lambda text: None)
    except MemoryError:
        raise PilotfishError("there is not enough free memory for the arrays") from None
    unwritten = [file for file in (out, picture, record) if file is not None and not (measured.idle or force)]
    if unwritten:
        out = picture = record = None
    if out is not None:
        write_whole(out, cluster_text(measured, name))
        note(f"the node type is in {out}")
    if picture is not None:
        from ..charts.calibration_figure import calibration

        picture_files.save(calibration(measured), picture)
    if record is not None:
        references |= _recorded(record, measured, name)
    now = calibrated_values(measured, name)
    changed = {source: changes(values, now, bound) for source, values in references.items()}
    if as_json:
        data = to_document(measured, name)
        if changed:
            data["changes"] = [
                {"since": key, **asdict(change)} for key, differences in changed.items() for change in differences
            ]
        print_json("calibration", data)
    else:
        show_calibration(measured)
        for source, differences in changed.items():
            show_changes(differences, "it", source, bound)
    if unwritten:
        raise PilotfishError(f"the node was not idle: {', '.join(map(str, unwritten))} not written (--force writes)")


def _check_switching(node: str, commands: SwitchingCommands, option_names: set[str]) -> None:
    """Check the options of switching. Raises typer.BadParameter."""
    if not is_node_name(node):
        raise bad("--switching", f"found {node[:100]!r} (allowed: the name of a node)")
    if node.partition(".")[0] in {"localhost", platform.node().partition(".")[0]}:
        raise bad("--switching", f"{node} is this machine (allowed: another, run from here)")
    for key in ("off", "on", "up"):
        if not getattr(commands, key).strip():
            raise bad(f"--{key}-command", "missing (allowed: a command, for --switching)")
    refuse(_OF_THIS_NODE, option_names, "not with --switching: it is about a measurement on this node")
    if "picture" in option_names and commands.power is None:
        raise bad("--plot", "there is nothing to draw without --power-command")


def _switch(
    node: str, commands: SwitchingCommands, timing: SwitchTiming, repeat: int, out: Path | None, picture: Path | None,
    references: Mapping[str, Mapping[str, KnownValue]], bound: float, as_json: bool,
) -> None:  # fmt: skip
    """Switch and measure a node, and write and print the result. Raises SwitchingError."""
    from ...profiles.calibration.calibration_records import changes, switching_values
    from ...profiles.calibration.node_switching import Shell, measure
    from ...profiles.calibration.report import power_text
    from ..output.profiles import show_changes, show_switching

    with ExitStack() as stack:
        for number in (signal.SIGTERM, signal.SIGHUP):
            stack.callback(signal.signal, number, signal.signal(number, signal.default_int_handler))
        measured = measure(node, commands, Shell(node), timing, repeat, note)
    if out is not None:
        write_whole(out, power_text(measured))
        note(f"the power of its node type is in {out}")
    if picture is not None:
        from ..charts.calibration_figure import switching

        picture_files.save(switching(measured), picture)
    now = switching_values(measured)
    changed = {source: changes(values, now, bound) for source, values in references.items()}
    if as_json:
        more = (
            {"changes": [asdict(change) for differences in changed.values() for change in differences]}
            if changed
            else {}
        )
        print_json("switching", {**measured.to_dict(), **more})
        return
    show_switching(measured)
    for source, differences in changed.items():
        show_changes(differences, "it", source, bound)
