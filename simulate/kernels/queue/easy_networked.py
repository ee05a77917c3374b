"""EASY backfilling and strict order on a network."""

from __future__ import annotations

from numba.core import types

from ...jit import inner
from ...native import BlockType, register
from ..easy import call as go_on
from .tables import Networked


class NetworkedType(BlockType):
    """Numba's type of Networked."""


register(Networked, NetworkedType)


@inner
def call(world, instants):
    """See `batch.easy`."""
    return go_on(world, instants)


SIGNATURE = (NetworkedType(), types.int64)
