"""Check that systemd runs the reaper, with the daemon's configuration and as its account.

Rule: it only asks systemd. Without a reaper, if a node and the daemon both fail, a job that is pinned to the node waits
for it. With `mode: shadow`, the reaper only clears pins that a live daemon has left. It knows nothing of the
daemon's `--dry-run`.
Source: systemctl(1), show; systemd.service(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ...base import AdapterError
from ...findings import NOTE, OK, WARNING, Finding, ServiceState
from ..transport.runner import Runner

TIMER, UNIT = "pilotfish-reap.timer", "pilotfish-reap.service"
ENABLE = f"systemctl enable --now {TIMER}"
_CONFIG = re.compile(r"\s--config[ =](\S+)")


def units(run: Runner) -> dict[str, dict[str, str]] | None:
    """Return the properties of the timer and of its service, by the name of the unit; None: no systemd runs here."""
    properties = "--property=Id,LoadState,ActiveState,User,ExecStart"
    try:
        output = run(["systemctl", "show", properties, TIMER, UNIT])
    except AdapterError:
        return None
    blocks = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in output.split("\n\n")]
    return {block["Id"]: block for block in blocks if "Id" in block}


def findings(run: Runner, service: ServiceState) -> Iterator[Finding]:
    """Yield nothing if no configuration is examined.

    Args:
        run: Runs a command and returns what it printed.
        service: State of the daemon.
    """
    if service.config is None:
        return
    unit_properties, reap = units(run), f"pilotfish reap --config {service.config}"
    if unit_properties is None:
        message = "systemd does not run here: whether the reaper runs is unknown; it must run every half a minute"
        yield Finding(NOTE, "reaper", message, (reap,))
    elif unit_properties.get(TIMER, {}).get("ActiveState") == "active":
        yield from _active(unit_properties.get(UNIT, {}), service)
    elif service.shadow:
        yield Finding(OK, "reaper", "its timer does not run, and shadow pins no job; start it before you go live")
    else:
        message = "its timer does not run: if the daemon fails, a job that is pinned to a node that fails waits for it"
        yield Finding(WARNING, "reaper", message, (ENABLE,))


def _active(unit: dict[str, str], service: ServiceState) -> Iterator[Finding]:
    read = _CONFIG.search(unit.get("ExecStart", ""))
    wrong = False
    if read is None or Path(read[1]).resolve() != Path(str(service.config)).resolve():
        wrong, message = True, f"it reads {read[1] if read else 'the default configuration'}, not {service.config}"
        yield Finding(WARNING, "reaper", message, (f"systemctl edit {UNIT}   # ExecStart=",))
    if service.account and (unit.get("User") or "root") != service.account:
        wrong, message = True, f"it runs as {unit.get('User') or 'root'}, and the state belongs to {service.account}"
        yield Finding(WARNING, "reaper", message, (f"systemctl edit {UNIT}   # User={service.account}",))
    if service.mode == "dry-run" and not service.shadow:
        wrong, message = True, "the daemon was started with --dry-run, which the reaper does not know: it changes jobs"
        yield Finding(WARNING, "reaper", message, (f"mode: shadow   # in {service.config}",))
    if not wrong:
        yield Finding(OK, "reaper", "its timer runs: it clears pins whose jobs have not started")
