"""EASY backfilling and strict order on a network."""

from __future__ import annotations

from numba import types

from ..compile import BlockType, register
from ..jit import inner
from .easy import call as go_on
from .network.tables import Networked


class NetworkedType(BlockType):
    """Numba's type of Networked."""


register(Networked, NetworkedType)


@inner
def call(world, instants):
    """Run the replay, see the imported `call`."""
    return go_on(world, instants)


SIGNATURE = (NetworkedType(), types.int64)
