"""`pilotfish pause` and `pilotfish resume`: the brake of a running service, for administrators."""

from __future__ import annotations

from typing import Annotated, Any

from .. import options
from ..length_option import length_option, length_s
from ..options import flag, option
from ..output.documents import print_json
from ..output.service_state import pause_line
from ..streams import show, warn
from .daemon_client import ask_daemon

Partition = Annotated[
    str | None, option("NAME", "Only jobs of this partition of Slurm or queue of OAR.", default="all jobs")
]


def pause(
    partition: Partition = None,
    length: Annotated[str | None, length_option("until `pilotfish resume`")] = None,
    why: Annotated[str, option("TEXT", "The reason, which is kept and shown.", default="none")] = "",
    keep_held: Annotated[
        bool, flag("--keep-held", "Leave held jobs held until their deadlines; by default they are given back at once.")
    ] = False,
    as_json: options.Json = False,
    socket: options.Socket = None,
) -> None:
    """Let the service start nothing from now on; only an administrator may.

    Jobs that it holds are given back to the resource manager at once. Running jobs go on. The service still watches,
    learns and answers. A pause survives a restart.

    \b
    Examples:
      pilotfish pause --why "maintenance of the switches"
      pilotfish pause --partition gpu --for 2h
    """
    for_s, held = length_s(length), "keep" if keep_held else "release"
    reply = ask_daemon(socket, "pause", partition=partition, for_s=for_s, why=why or None, held=held)
    if as_json:
        print_json("paused", {name: reply[name] for name in ("pause", "held", "warning")})
        return
    show(pause_line(reply["pause"], reply["time"]))
    if reply["held"]:
        then = "held until their deadlines" if keep_held else "given back now"
        show(f"jobs that it held: {reply['held']}, {then}")
    _warn(reply)


def resume(partition: Partition = None, as_json: options.Json = False, socket: options.Socket = None) -> None:
    """End the pause of a partition, or every pause; only an administrator may.

    Jobs that were given back during the pause stay with the resource manager.

    \b
    Examples:
      pilotfish resume
      pilotfish resume --partition gpu
    """
    reply = ask_daemon(socket, "resume", partition=partition)
    if as_json:
        print_json("resumed", {name: reply[name] for name in ("ended", "warning")})
        return
    show("resumed: " + (", ".join(one["partition"] or "all jobs" for one in reply["ended"]) or "nothing was paused"))
    _warn(reply)


def _warn(reply: dict[str, Any]) -> None:
    if reply["warning"]:
        warn(reply["warning"])
