"""Options of earlier versions: each is a usage error, in one sentence that names the new spelling."""

from __future__ import annotations

from collections.abc import Mapping

_BATSIM = "pilotfish batsim TRACE"
_SELECT = "--select {}=N; several are joined by commas"
#: Command -> option -> what takes its place.
MOVED: Mapping[str, Mapping[str, str]] = {
    "simulate": {
        "--daemon": "pilotfish replay TRACE --config FILE",
        "--edc": f"{_BATSIM} --endpoint ENDPOINT",
        "--edc-command": f"{_BATSIM} --command COMMAND",
        "--edc-timeout": f"{_BATSIM} --timeout SECONDS",
        "--edc-config": f"{_BATSIM} --set KEY=VALUE",
        "--edc-protocol": f"{_BATSIM} --protocol VERSION",
        "-w": "the argument TRACE, which may be repeated",
        "--workload": "the argument TRACE, which may be repeated",
        "--from": _SELECT.format("from"),
        "--until": _SELECT.format("until"),
        "--user": _SELECT.format("users"),
        "--min-size": _SELECT.format("min_size"),
        "--max-size": _SELECT.format("max_size"),
        "--load": _SELECT.format("load"),
        "--jobs-order": "--as-batsim, for the order of Batsim",
        "--origin": "--as-batsim, for second 0",
    }
}


def moved(command: str | None, option: str) -> str:
    """Return the sentence that names the new spelling of an option of a command; "" if it has not moved."""
    place = MOVED.get(command or "", {}).get(option)
    return f"it is now {place}" if place else ""
