"""EASY backfilling and strict order with jobs that wait for others, or decisions that take time."""

from __future__ import annotations

from numba.core import types

from ..jit import inner
from ..native import BlockType, register
from .easy import call as go_on
from .tables import RichReplay


class RichReplayType(BlockType):
    """Numba's type of RichReplay."""


register(RichReplay, RichReplayType)


@inner
def call(world, instants):
    """See `batch.easy`."""
    return go_on(world, instants)


SIGNATURE = (RichReplayType(), types.int64)
