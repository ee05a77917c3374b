"""Redraw a view again and again, until Ctrl-C.

Rule: the first request must be answered; while a later one is not, the last view stays, and a line says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console

from ...simulate.errors import PilotfishError
from ..streams import show as show_line


def redraw(
    ask: Callable[[], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
    every_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Draw in place on a terminal, one after another elsewhere; Ctrl-C ends it.

    Args:
        ask: returns what is shown.
        show: prints it.
        every_s: seconds between two drawings.
        sleep: waits so many seconds.

    Raises:
        PilotfishError: the first question was not answered.
    """
    reply, problem = ask(), ""
    try:
        while True:
            Console().clear()  # on a terminal only
            show_line(f"{time.strftime('%H:%M:%S')}, every {every_s:g} s; Ctrl-C ends")
            show(reply)
            if problem:
                show_line(f"as it was before: {problem}")
            sleep(every_s)
            try:
                reply, problem = ask(), ""
            except PilotfishError as error:
                problem = str(error)
    except KeyboardInterrupt:
        return
