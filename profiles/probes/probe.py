"""The interface of all probes, and readers of small files under /proc and /sys.

Rule: a probe only reads. `available` says before the start why it cannot run. Once started it never raises for a
process that has ended; a value that it could not read is None. File probes take the directory that holds /proc and
/sys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from .process_tree import ProcessTree, read_proc

ROOT = Path("/")


class Probe(ABC):
    """A source of readings about a process tree."""

    _tree: ProcessTree

    @abstractmethod
    def available(self) -> str | None:
        """Return the reason why this machine cannot be read this way, or None if it can."""

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin to observe a process tree.

        Args:
            tree: the job's processes.
            now: seconds since the job began.
        """
        self._tree = tree

    def sample(self, now: float, *, last: bool = False) -> None:  # noqa: B027 (default: read at the end only)
        """Take one reading, if the source must be read before the end.

        Args:
            now: seconds since the job began.
            last: the root has ended and is kept as a zombie, so its counters are final.
        """

    @abstractmethod
    def stop(self) -> Any:
        """Return the readings from `start` to the last `sample`."""


def read_text(path: str | Path) -> str | None:
    """Read a small file of /proc or /sys as stripped text; None if it cannot be read."""
    content = read_proc(path, 1 << 16)
    return None if content is None else content.decode(errors="replace").strip()


def read_number(path: str | Path) -> float | None:
    """Read a file that holds one integer; None if it cannot be read or holds something else."""
    try:
        return float(int(read_text(path) or ""))
    except ValueError:
        return None


def stat_fields(pid: int, root: Path = ROOT) -> list[str]:
    """Return the fields of /proc/PID/stat after the command name (state first, proc(5)); [] if the process is gone."""
    return (read_text(root / f"proc/{pid}/stat") or "").rpartition(")")[2].split()
