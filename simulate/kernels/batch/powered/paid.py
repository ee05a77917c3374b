"""Who was refused energy in a pass, and who can be paid, so that nobody is asked about twice.

Rule: who is as large and as long as one that was refused is, too, as the balance only goes down in a pass; who is no
larger and no longer than one that can be paid can be, until a job starts.
"""

from __future__ import annotations

import math

from ...jit import inner
from ..tables import NOW
from .balance import affords_both
from .machines import boot_time


@inner
def know_nothing(world):
    """A pass begins."""
    world.refused[:], world.granted[:] = math.inf, -math.inf


@inner
def cannot_be_paid(world, size, wall):
    """Whether energy is too short for a job, that starts now and leaves the first that waits its own. O(sizes)."""
    kind, now = world.classes[size], world.clock[NOW]
    if wall >= world.refused[kind]:
        return True
    if wall <= world.granted[kind]:
        return False
    if affords_both(world, now, size, now + boot_time(world, size) + wall):
        while kind >= 0 and world.granted[kind] < wall:
            world.granted[kind] = wall
            kind -= 1
        return False
    while kind < len(world.refused) and world.refused[kind] > wall:
        world.refused[kind] = wall
        kind += 1
    return True
