"""EASY backfilling and strict order with jobs that wait for others, or decisions that take time."""

from __future__ import annotations

from numba import types

from ..compile import BlockType, register
from ..jit import inner
from .easy import call as go_on
from .tables import RichReplay


class RichReplayType(BlockType):
    """Numba's type of RichReplay."""


register(RichReplay, RichReplayType)


@inner
def call(world, instants):
    """Run the replay, see the imported `call`."""
    return go_on(world, instants)


SIGNATURE = (RichReplayType(), types.int64)
