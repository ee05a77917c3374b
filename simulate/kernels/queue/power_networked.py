"""EASY backfilling on a network, on machines that are switched off and on, or under a limit of power or energy."""

from __future__ import annotations

from numba.core import types

from ...jit import inner
from ...native import BlockType, register
from ..powered.easy import call as go_on
from .tables import NetworkedPowered


class NetworkedPoweredType(BlockType):
    """Numba's type of NetworkedPowered."""


register(NetworkedPowered, NetworkedPoweredType)


@inner
def call(world, instants):
    """See `batch.powered.easy`."""
    return go_on(world, instants)


SIGNATURE = (NetworkedPoweredType(), types.int64)
