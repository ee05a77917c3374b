"""One allowance for all who sample jobs on this node, kept in a file that they share.

Rule: a look that took c seconds of CPU costs c / SHARE seconds of rest, whoever looks next; of rest that nobody used
CREDIT_S are kept, so that jobs which take a moment are seen, too. Each pays for its next look before that, so that
nobody waits for anybody, and gives back what it did not use. Without the file, or while somebody else has it locked,
each keeps its own rest. Standard library only: the keeper uses it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from .processes import boot_id

#: Of one core, for all jobs of a node; the rest of a node's 0.5 % is for counters beside jobs.
SHARE = 0.003
#: What a first look is taken to cost, CPU seconds.
FIRST_COST_S = 0.0005
#: Seconds of rest that are kept, worth CREDIT_S * SHARE seconds of looks at once.
CREDIT_S = 10.0
#: What killed keepers paid for and did not use is forgotten after so many seconds.
LONGEST_S = 60.0


class Pace:
    """One keeper's part in the allowance.

    Args:
        path: of the shared file; made where there is none.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._paid_s, self._spent_s = 0.0, time.process_time()

    def begin(self) -> float:
        """Pay for the first look; return when it may be taken, monotonic seconds."""
        self._spent_s = time.process_time()
        return self._pay(FIRST_COST_S)

    def next(self) -> float:
        """Put what this process did use since the last time in the place of what was paid for, and pay as much again;
        return when the next look may be taken."""
        spent_s = time.process_time()
        cost_s, self._spent_s = spent_s - self._spent_s, spent_s
        return self._pay(cost_s - self._paid_s + cost_s, cost_s)

    def end(self) -> None:
        """Give back what was paid for a look that will not be taken."""
        if self._paid_s:
            self._pay(-self._paid_s, 0.0)

    def _pay(self, cost_s: float, paid_s: float | None = None) -> float:
        self._paid_s = cost_s if paid_s is None else paid_s
        now = time.monotonic()
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return now + max(0.0, cost_s) / SHARE
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            due = paid_from(os.pread(fd, 200, 0), cost_s, now)
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{boot_id()} {due}\n".encode(), 0)
        except OSError:
            due = now + max(0.0, cost_s) / SHARE
        finally:
            os.close(fd)
        return max(now, due)


def paid_from(content: bytes, cost_s: float, now: float) -> float:
    """Return from when on the next look is paid for; where that is past, the rest since then is still to be used.

    Args:
        content: of the file, boot and that time as it was before; of another boot, or unreadable, it means nothing.
        cost_s: CPU seconds to pay for; < 0 to give back.
        now: monotonic seconds.
    """
    before = now - CREDIT_S
    words = content.decode(errors="replace").split()
    if len(words) == 2 and words[0] == boot_id():
        with contextlib.suppress(ValueError):
            before = min(max(float(words[1]), before), now + LONGEST_S)
    return max(now - CREDIT_S, before + cost_s / SHARE)
