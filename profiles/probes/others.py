"""How much of some CPUs' time went to processes that are not ours, or was stolen by the host.

Rule: it is measured over a span: what the CPUs did (/proc/stat), less what this process and its jobs did.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from .steal import cpu_times


class Others:
    """What others took of `cpus`, from now on."""

    def __init__(self, cpus: Iterable[int]) -> None:
        self._cpus = frozenset(cpus)
        self._began, self._ours, self._all = time.monotonic(), time.process_time(), self._busy()

    def share(self, jobs_s: float) -> float:
        """Of these CPUs' time so far what others had, 0 to 1; 0 where it cannot be read.

        Args:
            jobs_s: CPU seconds of our jobs since then.
        """
        lasted = (time.monotonic() - self._began) * len(self._cpus)
        taken = self._busy() - self._all - jobs_s - (time.process_time() - self._ours)
        return min(1.0, max(0.0, taken / lasted)) if lasted > 0 else 0.0

    def _busy(self) -> float:
        """Seconds for which these CPUs were not idle."""
        times = (sum(pair) for cpu, pair in cpu_times().items() if cpu in self._cpus)
        return sum(times) / os.sysconf("SC_CLK_TCK")
