"""Options of earlier versions: each is a usage error, in one sentence that names the new spelling."""

from __future__ import annotations

from collections.abc import Mapping

_BATSIM = "pilotfish batsim TRACE"
_TRACE = dict.fromkeys(("-w", "--workload"), "the argument TRACE")
_SELECT = "--select {}=N; several are joined by commas"
#: Last word of a command -> option -> what takes its place.
MOVED: Mapping[str, Mapping[str, str]] = {
    "simulate": {
        "--daemon": "pilotfish replay TRACE --config FILE",
        "--edc": f"{_BATSIM} --endpoint ENDPOINT",
        "--edc-command": f"{_BATSIM} --command COMMAND",
        "--edc-timeout": f"{_BATSIM} --timeout SECONDS",
        "--edc-config": f"{_BATSIM} --set KEY=VALUE",
        "--edc-protocol": f"{_BATSIM} --protocol VERSION",
        **_TRACE,
        "--from": _SELECT.format("from"),
        "--until": _SELECT.format("until"),
        "--user": _SELECT.format("users"),
        "--min-size": _SELECT.format("min_size"),
        "--max-size": _SELECT.format("max_size"),
        "--load": _SELECT.format("load"),
        "--jobs-order": "--as-batsim, for the order of Batsim",
        "--origin": "--as-batsim, for second 0",
    },
    "evaluate": _TRACE,
    "communication": _TRACE,
    "import": {"--from": "--source TOOL"},
}


def moved(command: str | None, option: str) -> str:
    """Return the sentence that names the new spelling of an option of a command; "" if it has not moved."""
    place = MOVED.get(command or "", {}).get(option)
    return f"it is now {place}" if place else ""
