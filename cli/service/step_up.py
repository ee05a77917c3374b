"""`pilotfish step-up`: let a service that has stepped back to shadow go live again."""

from __future__ import annotations

from typing import Annotated

from ...formats.text import clean
from .. import options
from ..options import option
from ..output.documents import print_json
from ..streams import show
from .daemon_client import ask_daemon


def step_up(
    why: Annotated[str, option("TEXT", "The reason, which is kept and shown.", default="none")] = "",
    as_json: options.Json = False,
    socket: options.Socket = None,
) -> None:
    """Let a service that has stepped back to shadow by itself go live again; only an administrator may.

    Its canary begins again: jobs submitted before are not compared any more. `pilotfish log` shows why it stepped back.

    \b
    Examples:
      pilotfish step-up --why "the policy is easy now"
    """
    reply = ask_daemon(socket, "step_up", why=why or None)
    if as_json:
        print_json("stepped up", {name: reply[name] for name in ("stepped_back", "why")})
        return
    show(f"it goes live again; it had stepped back: {clean(reply['why'])}")
