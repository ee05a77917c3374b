"""The command `pilotfish` as a user has it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

SCRIPT = Path(sys.executable).with_name("pilotfish")
COMMAND = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "pilotfish.daemon"]
CPUS = sorted(os.sched_getaffinity(0))
PATIENCE_S = 120.0
Found = TypeVar("Found")


def pilotfish(*argv: str | Path, **options: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; keyword arguments are added to its environment."""
    return subprocess.run(
        [*COMMAND, *map(str, argv)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=os.environ | options,
    )


def eventually(look: Callable[[], Found], what: str) -> Found:
    """Look until there is something, and return that."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.01)
    raise AssertionError(f"{what} did not come about within {PATIENCE_S:g} s")
