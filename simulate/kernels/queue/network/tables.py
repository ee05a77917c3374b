"""Tables of a replay on a network (NumPy alone).

Words: a job goes through the *phases* of its program, so many *rounds*; a phase's *work* is its time alone in the
network, its *speed* the share of that which it has beside others, its *demand* on a link the bytes/s that it would
send over it alone. A *place* is where routes begin and end: the hosts of a cluster behind one switch, a host by itself,
or a storage. A host's *port* joins it to its place, and is nobody else's. A link's *level* is what a job may send over
it at most; a link is *tight* where that is less than somebody wants.
Units: seconds, bytes, bytes/s, flop/s.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...block import Block
from ...layout import FLOAT, INT
from .. import tables
from ..powered.tables import Powered

#: Kinds of phases: `amount` seconds pass; each host computes `amount` flops and sends `bytes` to each other one; they
#: do so by `amounts` from `at` on, a number for each and then a matrix, row by row; each reads `amount` bytes from the
#: storage at place `at`, and writes `bytes`; storage `at` sends `bytes` to storage `to`.
WAIT, EVEN, MATRIX, STORE, STAGE = range(5)
PHASE = np.dtype([("amount", FLOAT), ("bytes", FLOAT), ("kind", INT), ("at", INT), ("to", INT)], align=True)
#: Phases `first` to before `last`, `rounds` times.
PROGRAM = np.dtype([("first", INT), ("last", INT), ("rounds", INT)], align=True)
#: `duplex`: 1 where ports send and receive at once; no port: infinite.
PLACE = np.dtype([("port", FLOAT), ("duplex", INT), ("hosts", INT)], align=True)
#: `alone`: 1 where each job may use all of it, whoever else does; `bytes`: of the phase that is laid out; `first`: of
#: its users; `seen`: in which solution it was looked at last.
LINK = np.dtype(
    [(name, FLOAT) for name in ("bandwidth", "level", "bytes")]
    + [(name, INT) for name in ("alone", "first", "tight", "changed", "seen")],
    align=True,
)
#: A job's demand on a link; `after`, `before`: the link's other users; `next`: the job's other links.
USE = np.dtype(
    [(name, FLOAT) for name in ("demand", "wants")]
    + [(name, INT) for name in ("job", "link", "after", "before", "next")],
    align=True,
)
#: How a job goes on: `left` of its work at `since`; `end`: of the phase, at this speed; `until`: of its walltime;
#: `state`: see below; `place`: in the heap; `over`: 1 when its program is done.
COURSE = np.dtype(
    [(name, FLOAT) for name in ("left", "speed", "since", "end", "until")]
    + [
        (name, INT)
        for name in ("program", "phase", "rounds", "state", "place", "first", "over", "killed", "met")
    ],
    align=True,
)  # fmt: skip
NONE = -1
#: A job waits for machines that boot, for its first bytes to get there, or goes on with its phase.
BOOTS, LATENT, GOES_ON = range(3)

# Cells of `cells`; LAID: places of the job that is laid out; TOUCHED: links of that; DIRTY: links whose users changed;
# MET: jobs whose speed is found anew; SOLUTION: its number; LATENCY of the phase, in `lags`.
PLACES, LAID, TOUCHED, DIRTY, SOUGHT, MET, SOLUTION, FREE_USE, NET_CELLS = range(9)
# TIME: until when phases have been followed.
LATENCY, TIME, LAGS = range(3)

_NETWORK = {
    "courses": (COURSE, 1),
    "programs": (PROGRAM, 1),
    "phases": (PHASE, 1),
    "amounts": (FLOAT, 1),
    "speeds": (FLOAT, 1),  # of a host, flop/s
    "place_of": (INT, 1),  # of a host
    "places": (PLACE, 1),
    "links": (LINK, 1),
    "route0": (INT, 1),  # [places x places + 1]: where each route begins in `routes`
    "routes": (INT, 1),  # links that are shared, without ports
    "latency": (FLOAT, 1),  # [places x places], whole, with ports
    "uses": (USE, 1),
    "laid": (INT, 1),  # scratch: places of a job
    "hosts": (INT, 1),  # scratch: hosts of a job
    "sent": (FLOAT, 1),  # scratch: bytes that each host of a job sends, and receives
    "touched": (INT, 1),
    "dirty": (INT, 1),
    "sought": (INT, 1),
    "met": (INT, 1),
    "cells": (INT, 1),
    "lags": (FLOAT, 1),
}


class Networked(Block):
    """A replay by EASY's rules on a network."""

    layout: ClassVar = {**tables.Replay.layout, **_NETWORK}


class NetworkedPowered(Block):
    """A replay by EASY's rules on a network, on machines that are switched or limited."""

    layout: ClassVar = {**Powered.layout, **_NETWORK}


class NetworkedReserving(Block):
    """A replay by conservative backfilling on a network."""

    layout: ClassVar = {**tables.Reserving.layout, **_NETWORK}
