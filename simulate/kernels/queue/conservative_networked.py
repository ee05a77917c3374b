"""Conservative backfilling on a network."""

from __future__ import annotations

from numba.core import types

from ...jit import inner
from ...native import BlockType, register
from ..conservative import call as go_on
from .tables import NetworkedReserving


class NetworkedReservingType(BlockType):
    """Numba's type of NetworkedReserving."""


register(NetworkedReserving, NetworkedReservingType)


@inner
def call(world, instants):
    """See `batch.conservative`."""
    return go_on(world, instants)


SIGNATURE = (NetworkedReservingType(), types.int64)
