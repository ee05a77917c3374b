"""Packages that only some pictures need: whether they are there, and how to get them.

Rule: looked at before anything is read or simulated, so that nobody waits for a picture that cannot be drawn.
"""

from __future__ import annotations

import importlib.util

from ...simulate.errors import PilotfishError


def demand(package: str, what: str, instead: str = "") -> None:
    """Raise PilotfishError, which says how to install it, if a package is not there.

    Args:
        what: it is needed for, such as "a .png".
        instead: what can be had without it, if anything.
    """
    if importlib.util.find_spec(package) is None:
        raise PilotfishError(f"{what} needs {package}: pip install 'pilotfish[plot]'{instead}")
