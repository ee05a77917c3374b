"""EASY backfilling on a network, on machines that are switched off and on, or under a limit of power or energy."""

from __future__ import annotations

from numba import types

from ..compile import BlockType, register
from ..jit import inner
from .network.tables import NetworkedPowered
from .power.easy_power import call as go_on


class NetworkedPoweredType(BlockType):
    """Numba's type of NetworkedPowered."""


register(NetworkedPowered, NetworkedPoweredType)


@inner
def call(world, instants):
    """Run the replay, see the imported `call`."""
    return go_on(world, instants)


SIGNATURE = (NetworkedPoweredType(), types.int64)
