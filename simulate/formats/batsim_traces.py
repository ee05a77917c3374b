"""Usage traces of Batsim: a file that names a file for each rank, and in that a line for each stretch of computing.

Rule: a rank has a resource to itself, so that a line of F flops takes F / speed, whatever its usage: that only decides
how many cores of a host share the power. Source: Batsim's documentation, "Fractional computation trace replay".
"""

from __future__ import annotations

from pathlib import Path

from .reading import decode, read_bytes
from .units import bad, found

#: Most flops of a line.
MOST = 1e30
ALLOWED = f"a line RANK m_usage USAGE FLOPS, with a usage from 0 to 1 and at most {MOST:g} flops"


def rank_flops(path: Path) -> list[list[float]]:
    """Flops of each line of each rank. O(lines). Raises ConfigError."""
    return [[_flops(rank, line) for line in _lines(rank)] for rank in map(path.parent.joinpath, rank_names(path))]


def rank_names(path: Path) -> list[str]:
    """The file of each rank, as the trace names it. Raises ConfigError."""
    names = _lines(path)
    if not names:
        raise bad(f"{path} names no file", "a file for each rank, one a line")
    return names


def _lines(path: Path) -> list[str]:
    """Lines that are neither blank nor comments."""
    lines = map(str.strip, decode(read_bytes(path), str(path)).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _flops(path: Path, line: str) -> float:
    words = line.split()
    try:
        _, action, usage, flops = words
        share, amount = float(usage), float(flops)
    except ValueError:
        raise bad(f"{found(line)} in {path}", ALLOWED) from None
    if action != "m_usage" or not 0 <= share <= 1 or not 0 <= amount <= MOST:
        raise bad(f"{found(line)} in {path}", ALLOWED)
    return amount
