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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..formats.hostlist import is_node_name, local_node_names
from ..simulate.errors import ConfigError, PilotfishError
from . import options
from .charts import picture_files
from .inputs import read_cluster
from .output.documents import print_json
from .streams import note, warn
from .usage_errors import bad

if TYPE_CHECKING:
    from ..profiles.calibration.calibration_records import KnownValue
    from ..profiles.calibration.node_switching import Switching
    from ..profiles.calibration.result import Calibration


def calibrate(
    context: typer.Context,
    other: Annotated[
        Path | None, typer.Argument(metavar="B", help="With --compare A: measure nothing, compare A with B.")
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="SECONDS", min=0.1, max=86400, help="Time limit of the measurement.")
    ] = 20.0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a cluster file (YAML) of this node.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="TYPE", help="Name of the node and its type.", show_default="the host's name"),
    ] = None,
    grid: Annotated[
        bool, typer.Option("--grid", help="Find the contention model that fits best; takes twice as long.")
    ] = False,
    picture: picture_files.PlotFile = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="DIR", help="Record it in this folder; report changes since the last record."),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option("--compare", metavar="A", help="Report differences from this cluster file or record."),
    ] = None,
    bound: Annotated[
        float,
        typer.Option(metavar="SHARE", min=0.001, max=10, help="Least change that is reported; 0.1 is 10 %."),
    ] = 0.1,
    as_json: options.Json = False,
    switching: Annotated[
        str | None, typer.Option(metavar="NODE", help="Switch another node OFF and on; time it, read its power.")
    ] = None,
    off_command: Annotated[str, typer.Option(metavar="CMD", help="Command that switches $PILOTFISH_NODE off.")] = "",
    on_command: Annotated[str, typer.Option(metavar="CMD", help="Command that switches it on.")] = "",
    up_command: Annotated[str, typer.Option(metavar="CMD", help="Command that exits with 0 when it is up.")] = "",
    down_command: Annotated[
        str,
        typer.Option(
            metavar="CMD", help="Command that exits with 0 when it is off.", show_default="when --up-command fails"
        ),
    ] = "",
    power_command: Annotated[str, typer.Option(metavar="CMD", help="Command that prints its power in watts.")] = "",
    repeat: options.Repeat = 1,
    switch_limit: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, max=86400, help="Time limit for the node to go off, or to come up."),
    ] = 900.0,
    settle: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, max=3600, help="Wait before its power is read, for as long again."),
    ] = 10.0,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm that the node may be switched off.")] = False,
) -> None:
    """Measure this node: memory bandwidth, cores, contention, power; write it as a node type.

    It loads every CPU that it may use: run it on an idle node, or in a job that has the node to itself.
    With --switching, measure how long another node takes to go off and come back, by commands of the site.

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
    given = {key for key in context.params if str(context.get_parameter_source(key)).endswith("COMMANDLINE")}
    if switching is not None:
        wanted = SwitchingRequest(switching, off_command, on_command, up_command, down_command, power_command,
                        repeat, switch_limit, settle)  # fmt: skip
        wanted.check(given, yes=yes)
        reference = None if compare is None else (str(compare), _known(compare, name))
        wanted.measure(out, picture, reference, bound, as_json)
        return
    _only_with_switching(given)
    if other is not None:
        for option, value in (("--out", out), ("--plot", picture), ("--record", record), ("--grid", grid or None)):
            if value is not None:
                raise bad(option, "not with two files to compare: nothing is measured")
        _compare(compare, other, name, bound, as_json)
        return
    chosen = _checked(name)
    if record is not None:
        _make(record)
    references = {} if compare is None else {str(compare): _known(compare, name)}
    from ..profiles.calibration.session import calibrate as measure

    try:
        found = measure(seconds, with_grid=grid, progress=note if sys.stderr.isatty() else lambda text: None)
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
            raise bad(f"--{name.replace('_', '-')}", "only with --switching NODE")


def _compare(before: Path | None, after: Path, name: str | None, bound: float, as_json: bool) -> None:
    """Report the differences between two files. Raises ConfigError, typer.BadParameter."""
    if before is None:
        raise bad("B", f"{after} needs a second file (allowed: --compare A B)")
    from ..profiles.calibration.calibration_records import changes

    changed = changes(_known(before, name), _known(after, name), bound)
    if as_json:
        print_json("calibration-changes", {"changes": [asdict(change) for change in changed]})
        return
    from .output.profiles import show_changes

    show_changes(changed, str(after), str(before), bound)


def _checked(name: str | None) -> str:
    chosen = name if name is not None else local_node_names(platform.node(), [()])[0]
    if not is_node_name(chosen):
        raise bad("--name", f"found {chosen[:100]!r} (allowed: letters, digits, '.', '_', '-')")
    return chosen


def _make(folder: Path) -> None:
    """Make a folder if it is missing. Raises ConfigError: it cannot be made or written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(str(folder), "", f"it cannot be made: {error.strerror}", "a folder") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(str(folder), "", "it cannot be written to", "a writable folder")


def _check(seconds: float, out: Path | None, picture: Path | None, bound: float) -> None:
    for option, value in (("--seconds", seconds), ("--bound", bound)):
        if not math.isfinite(value):
            raise bad(option, f"{value:g} (allowed: a number)")
    if out is not None and out.suffix not in (".yaml", ".yml"):
        raise bad("--out", f"{out.name!r} has no known ending (allowed: .yaml, .yml)")
    if out is not None and not out.parent.is_dir():
        raise ConfigError(str(out), "", "cannot be written: there is no such folder")
    picture_files.check(picture)


def _known(path: Path, name: str | None) -> dict[str, KnownValue]:
    """Return the numbers of a node in a record or a cluster file. Raises ConfigError."""
    from ..formats.document_errors import nearest
    from ..profiles.calibration.calibration_records import calibrated_values, read_if_record, type_values

    if (record := read_if_record(path)) is not None:
        return calibrated_values(record.found, record.name)
    types = {kind.name: kind for kind in read_cluster(path).types}
    if name is None and len(types) == 1:
        return type_values(next(iter(types.values())))
    wanted = platform.node() if name is None else name
    if wanted not in types:
        hint = nearest(wanted, types) if name else "; --name selects one"
        raise ConfigError(str(path), "node_types", f"none is named {wanted!r}{hint}", ", ".join(types))
    return type_values(types[wanted])


def _recorded(folder: Path, found: Calibration, name: str) -> dict[str, dict[str, KnownValue]]:
    """Record a calibration; return the numbers of the last record of the same node."""
    from ..profiles.calibration.calibration_records import calibrated_values, newest, record_files, save_record

    last = newest(record_files(folder).get(name, []), 1, lambda error: warn(f"not a calibration: {error}"))
    note(f"recorded in {save_record(folder, found, name)}")
    if not last:
        note(f"it is the first record of {name} there")
    return {f"the calibration of {record.found.date}": calibrated_values(record.found, record.name) for record in last}


def _write(found: Calibration, name: str, out: Path | None, picture: Path | None) -> None:
    if out is not None:
        from ..formats.atomic_write import write_whole
        from ..profiles.calibration.report import cluster_text

        write_whole(out, cluster_text(found, name))
        note(f"the node type is in {out}")
    if picture is not None:
        from .charts.calibration_figure import calibration

        picture_files.save(calibration(found), picture)
        note(f"the picture is in {picture}")


def _show(
    found: Calibration, name: str, references: Mapping[str, Mapping[str, KnownValue]], bound: float, as_json: bool
) -> None:
    from ..profiles.calibration.calibration_records import calibrated_values, changes, to_document

    now = calibrated_values(found, name)
    changed = {source: changes(known, now, bound) for source, known in references.items()}
    if as_json:
        data = to_document(found, name)
        if changed:
            data["changes"] = [{"since": key, **asdict(change)} for key, each in changed.items() for change in each]
        print_json("calibration", data)
        return
    from .output.profiles import show_calibration, show_changes

    show_calibration(found)
    for source, each in changed.items():
        show_changes(each, "it", source, bound)


#: Options about a measurement on this node.
_NOT_WITH = ("other", "seconds", "grid", "record")


@dataclass(frozen=True)
class SwitchingRequest:
    """A measurement of switching, as the command line requests it.

    Args:
        node: its name.
        off, on, up, down, power: commands of the site.
        repeat: times that it is switched.
        limit_s: seconds to wait for each change.
        settle_s: seconds before the power is read.
    """

    node: str
    off: str
    on: str
    up: str
    down: str
    power: str
    repeat: int
    limit_s: float
    settle_s: float

    def check(self, given: set[str], *, yes: bool) -> None:
        """Check the options. Raises typer.BadParameter."""
        if not is_node_name(self.node):
            raise bad("--switching", f"found {self.node[:100]!r} (allowed: the name of a node)")
        if self.node.partition(".")[0] in {"localhost", platform.node().partition(".")[0]}:
            raise bad("--switching", f"{self.node} is this machine (allowed: another, run from here)")
        for option, command in (("off", self.off), ("on", self.on), ("up", self.up)):
            if not command.strip():
                raise bad(f"--{option}-command", "missing (allowed: a command, for --switching)")
        for option, value in (("--switch-limit", self.limit_s), ("--settle", self.settle_s)):
            if not math.isfinite(value):
                raise bad(option, f"{value:g} (allowed: a number)")
        for option in _NOT_WITH:
            if option in given:
                name = "B" if option == "other" else f"--{option}"
                raise bad(name, "not with --switching: it is about a measurement on this node")
        if "picture" in given and not self.power.strip():
            raise bad("--plot", "there is nothing to draw without --power-command")
        if not yes:
            times = "once" if self.repeat == 1 else f"{self.repeat} times"
            raise bad("--yes", f"missing: {self.node} would be switched OFF and on, {times}")

    def measure(
        self,
        out: Path | None,
        picture: Path | None,
        reference: tuple[str, Mapping[str, KnownValue]] | None,
        bound: float,
        as_json: bool,
    ) -> None:  # fmt: skip
        """Switch and measure the node, and print the result. Raises SwitchingError."""
        from ..profiles.calibration.calibration_records import changes, switching_values
        from ..profiles.calibration.node_switching import Commands, Shell, SwitchTiming, measure

        commands = Commands(self.off, self.on, self.up, self.down.strip() or None, self.power.strip() or None)
        patience = SwitchTiming(self.limit_s, self.settle_s, max(0.05, min(1.0, self.settle_s / 10)))
        with ExitStack() as stack:
            for number in (signal.SIGTERM, signal.SIGHUP):
                stack.callback(signal.signal, number, signal.signal(number, signal.default_int_handler))
            found = measure(self.node, commands, Shell(self.node), patience, self.repeat, note)
        _write_switching(found, out, picture)
        changed = None if reference is None else changes(reference[1], switching_values(found), bound)
        if as_json:
            more = {} if changed is None else {"changes": [asdict(change) for change in changed]}
            print_json("switching", {**found.to_dict(), **more})
            return
        from .output.profiles import show_changes, show_switching

        show_switching(found)
        if changed is not None and reference is not None:
            show_changes(changed, "it", reference[0], bound)


def _write_switching(found: Switching, out: Path | None, picture: Path | None) -> None:
    if out is not None:
        from ..formats.atomic_write import write_whole
        from ..profiles.calibration.report import power_text

        write_whole(out, power_text(found))
        note(f"the power of its node type is in {out}")
    if picture is not None:
        from .charts.calibration_figure import switching

        picture_files.save(switching(found), picture)
        note(f"the picture is in {picture}")
