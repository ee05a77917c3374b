"""`pilotfish calibrate --switching`: a node is switched off and on, and timed.

Rule: nothing is switched but the node that was named, after --yes; a signal that ends us lets the node come back first.
"""

from __future__ import annotations

import math
import platform
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import inputs

if TYPE_CHECKING:
    from ...profiles.calibration.changes import Known
    from ...profiles.calibration.switching import Switching

#: Options of calibrate that say something of a measurement on this node.
_NOT_WITH = ("other", "seconds", "grid", "record")


@dataclass(frozen=True)
class Wanted:
    """What the command line says."""

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
        """Raises typer.BadParameter: an option is missing, too many, or makes no sense."""
        from ...simulate.formats.hostlist import is_node_name

        if not is_node_name(self.node):
            raise inputs.bad("--switching", f"found {self.node[:100]!r} (allowed: the name of a node)")
        if self.node.partition(".")[0] in {"localhost", platform.node().partition(".")[0]}:
            raise inputs.bad("--switching", f"{self.node} is this machine (allowed: another, run from here)")
        for option, command in (("off", self.off), ("on", self.on), ("up", self.up)):
            if not command.strip():
                raise inputs.bad(f"--{option}-command", "missing (allowed: a command, for --switching)")
        for option, value in (("--switch-limit", self.limit_s), ("--settle", self.settle_s)):
            if not math.isfinite(value):
                raise inputs.bad(option, f"{value:g} (allowed: a number)")
        for option in _NOT_WITH:
            if option in given:
                name = "B" if option == "other" else f"--{option}"
                raise inputs.bad(name, "it is about measuring on this node, not about --switching")
        if "picture" in given and not self.power.strip():
            raise inputs.bad("--plot", "there is nothing to draw without --power-command")
        if not yes:
            times = "once" if self.repeat == 1 else f"{self.repeat} times"
            raise inputs.bad("--yes", f"missing: {self.node} is going to be switched OFF and on, {times}")

    def measure(
        self, out: Path | None, picture: Path | None, reference: tuple[str, Mapping[str, Known]] | None, bound: float,
        as_json: bool,
    ) -> None:  # fmt: skip
        """Do it, and show what came of it. Raises SwitchingError."""
        from ...profiles.calibration.changes import changes, switched
        from ...profiles.calibration.shell import Shell
        from ...profiles.calibration.switching import Commands, Patience, measure

        commands = Commands(self.off, self.on, self.up, self.down.strip() or None, self.power.strip() or None)
        patience = Patience(self.limit_s, self.settle_s, max(0.05, min(1.0, self.settle_s / 10)))
        with ExitStack() as stack:
            for number in (signal.SIGTERM, signal.SIGHUP):
                stack.callback(signal.signal, number, signal.signal(number, signal.default_int_handler))
            found = measure(self.node, commands, Shell(self.node), patience, self.repeat, inputs.note)
        _write(found, out, picture)
        changed = None if reference is None else changes(reference[1], switched(found), bound)
        if as_json:
            import json

            told = {} if changed is None else {"changes": [asdict(change) for change in changed]}
            print(json.dumps({**found.to_dict(), **told}, indent=2, allow_nan=False))
            return
        from ..render.calibration import show_changes, show_switching

        show_switching(found)
        if changed is not None and reference is not None:
            show_changes(changed, "it", reference[0], bound)


def _write(found: Switching, out: Path | None, picture: Path | None) -> None:
    if out is not None:
        from ...profiles.calibration.file import power_text
        from ...simulate.formats.writing import write_whole

        write_whole(out, power_text(found))
        inputs.note(f"the power of its node type is in {out}")
    if picture is not None:
        from ..plot.calibration import draw_switching

        draw_switching(found, picture)
        inputs.note(f"the picture is in {picture}")
