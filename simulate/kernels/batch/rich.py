"""What only some replays have: jobs that wait for others, and decisions that take time.

Rule: what kind of world it is decides whether that is asked at all, when a kernel is compiled. Under EASY's rules a
plain world has neither, and so its jobs cost nothing more.
"""

from __future__ import annotations

from numba.extending import overload

from ..jit import inner
from .network.tables import Networked
from .tables import DECIDED, TAKES, Replay, RichReplay

_OPTIONS = {"error_model": "numpy"}


def some_wait(world):
    """Whether any job waits for others."""


def thinks(world):
    """Whether decisions take time."""


def decided(world):
    """How many jobs are to start when the decision is carried out."""


@inner
def _never(world):
    return False


@inner
def _has_unmet(world):
    return len(world.unmet) > 0


@inner
def _takes_time(world):
    return world.clock[TAKES] > 0.0


@inner
def _none(world):
    return 0


@inner
def _count(world):
    return world.count[DECIDED]


@overload(some_wait, jit_options=_OPTIONS)
def _some_wait(world):
    return (_never if world == Replay.numba_type else _has_unmet).py_func


@overload(thinks, jit_options=_OPTIONS)
def _thinks(world):
    return (_takes_time if _may_think(world) else _never).py_func


@overload(decided, jit_options=_OPTIONS)
def _decided(world):
    return (_count if _may_think(world) else _none).py_func


def _may_think(world):
    return world in (RichReplay.numba_type, Networked.numba_type)
