"""Conservative backfilling on a network."""

from __future__ import annotations

from numba import types

from ..compile import BlockType, register
from ..jit import inner
from .conservative import call as go_on
from .network.tables import NetworkedReserving


class NetworkedReservingType(BlockType):
    """Numba's type of NetworkedReserving."""


register(NetworkedReserving, NetworkedReservingType)


@inner
def call(world, instants):
    """Run the replay, see the imported `call`."""
    return go_on(world, instants)


SIGNATURE = (NetworkedReservingType(), types.int64)
