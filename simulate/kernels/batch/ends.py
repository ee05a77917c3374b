"""When jobs that run end: after a time that is known when they start, or as a network lets them.

Rule: what kind of world it is decides which, when a kernel is compiled; policies need not know.
"""

from __future__ import annotations

import math

from numba.extending import overload

from ..jit import inner
from .heap import pop, push
from .network import courses
from .network.tables import Networked, NetworkedPowered, NetworkedReserving
from .tables import RUNNING

_OPTIONS = {"error_model": "numpy"}


def begin(world, job, finish):
    """A job starts, which by its run time ends at `finish`. O(log n)."""


def next_end(world, before):
    """When the next job ends, if not after `before`; else a later time, or infinity. O(1)."""


def end_first(world):
    """Take out the job that ends first. O(log n)."""


def ended_well(world, job):
    """Whether a job that has ended did so by itself, as far as that is found out in the replay."""


@inner
def _first_in_heap(world, before):
    return world.heap_time[0] if world.count[RUNNING] > 0 else math.inf


@inner
def _as_known_before(world, job):
    return True


def _chosen(world, networked, fixed):
    """One of two compiled functions, for that kind of world."""
    kinds = (Networked.numba_type, NetworkedReserving.numba_type, NetworkedPowered.numba_type)
    return (networked if world in kinds else fixed).py_func


@overload(begin, jit_options=_OPTIONS)
def _begin(world, job, finish):
    return _chosen(world, courses.begin, push)


@overload(next_end, jit_options=_OPTIONS)
def _next_end(world, before):
    return _chosen(world, courses.next_end, _first_in_heap)


@overload(end_first, jit_options=_OPTIONS)
def _end_first(world):
    return _chosen(world, courses.end_first, pop)


@overload(ended_well, jit_options=_OPTIONS)
def _ended_well(world, job):
    return _chosen(world, courses.ended_well, _as_known_before)
