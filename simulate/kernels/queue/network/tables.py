"""State tables of a replay on a network (needs NumPy only).

Terms: a job runs the *phases* of its program for a number of *rounds*; a phase's *work* is its duration alone in the
network, its *speed* the share of full speed that it has next to other jobs, its *demand* on a link the bytes/s that it
would send over it alone. A *place* is an end of routes: the hosts of a cluster behind one switch, a single host, or a
storage. A host's *port* connects it to its place. A host runs one job at a time; or it is a node that jobs share, with
one or more processes (*ranks*) of each, and then its port is links that they share. A link's *level* is the most that a
job may send over it; a link is *tight* if that is less than a job demands.
Units: seconds, bytes, bytes/s, flop/s.
"""

from __future__ import annotations

from typing import ClassVar

from ...block import Block
from ...mapping.layout import FLOAT, INT, World, row_dtype
from .. import tables
from ..power.tables import Powered

#: Kinds of phases. WAIT: `amount` seconds pass. EVEN: each host computes `amount` flops and sends `bytes` to each other
#: host. MATRIX: the same with individual numbers in `amounts` from `at` on: flops of each host, at most `amount`, then
#: the matrix of bytes by rows. STORE: each host reads `amount` bytes from the storage at place `at` and writes `bytes`.
#: STAGE: storage `at` sends `bytes` to storage `to`. PLACED: as MATRIX, for `amount` ranks, whose ends come first in
#: `amounts`: a host, or ~p for the storage at place p. With EVEN and MATRIX, each host moves `moved` bytes of its
#: memory. On nodes that jobs share, all this holds for each rank.
WAIT, EVEN, MATRIX, STORE, STAGE, PLACED = range(6)
#: `times`: repetitions that the amounts are of.
PHASE = row_dtype("amount bytes moved", "kind at to times")
#: Phases [first, last), repeated `rounds` times.
PROGRAM = row_dtype("", "first last rounds")
#: `way`: bytes/s that a host sends, and that it receives; `both`: bytes/s that it sends and receives together; `loops`:
#: 1 if the port carries what a host sends itself, too. Of the job being laid out, `ranks`: its processes here;
#: `squares`: the sum of the squares of those on each host.
PLACE = row_dtype("way both", "ranks squares loops")
#: `bytes`: bytes of the phase being laid out; `first`: its first user; `seen`: number of the last solution that
#: examined it; `rest`: what the increments leave.
LINK = row_dtype("bandwidth level bytes rest", "first tight changed seen")
#: A job's demand on a link; `after`, `before`: the link's other users; `next`: the job's other links.
USE = row_dtype("demand", "job link after before next")
#: Progress of a job: `left`: work left at `since`; `end`: end of the phase at this speed; `until`: end of the walltime;
#: `state`: see below; `place`: position in the heap; `over`: 1 when its program is done. Its energy above that of idle
#: hosts: `joules` up to `since`; `lift`: watts while the phase goes on, at any speed; `rise`: further watts at full
#: speed; `lag`: latency of the phase that is not counted yet. Under increments: `raised`: its speed so far; `step`: its
#: last increment; `open`: 1 while it gets more. On nodes that jobs share: `pace`: work done in a second in which the
#: ranks compute at the speed that they have alone, infinite if they do not compute; `ranks`: the processes of the job.
COURSE = row_dtype(
    "left speed since end until joules lift rise lag raised step pace",
    "program phase rounds state place first over killed met open ranks",
)
#: What a host does in a phase: `flops`; bytes `sent` to others, `received`, and sent to itself through its port
#: (`own`); `open`: 1 until its time was found.
LOAD = row_dtype("flops sent received own", "open")
#: How links are shared, see `fair_share`; `increments`: 1 or 0.
RULE = row_dtype("", "increments")
NONE = -1
#: States of a job: its machines boot, its phase is in the latency, or its phase progresses.
BOOTS, LATENT, GOES_ON = range(3)

#: Power of a job above that of its idle hosts from `begin` to `until`. A log without rows is not kept.
POWER = row_dtype("begin until watts", "")
#: Of the job being laid out, `laid`: its places, `many`: its hosts, `ranks`: its processes; `touched`: links of the
#: phase being laid out; `dirty`: links whose users changed; `sought`: links being solved; `met`: jobs whose speeds are
#: being updated; `solution`: its number; `logged`: rows of the power log in use.
SOLVER = row_dtype("", "laid many ranks touched dirty sought met solution free_use logged")
#: Of the phase being laid out, `latency`: its latency; `flow`: seconds of its slowest flow alone; `computing`: seconds
#: of its slowest host alone; `joules`, `lift`: see COURSE. `time`: of the last phase change; `answer`: see `steps`.
LAGS = row_dtype("latency flow computing time answer joules lift", "")
#: Questions of `steps`.
BEGIN, NEXT_END, END_FIRST, KILL = range(4)

_NETWORK = {
    "courses": (COURSE, 1),
    "programs": (PROGRAM, 1),
    "program_phases": (PHASE, 1),
    "amounts": (FLOAT, 1),
    "speeds": (FLOAT, 1),  # flop/s of a core of each host
    "cores": (FLOAT, 1),  # cores of each host
    "joules_per_flop": (FLOAT, 1),  # of each host, above its power at a load of almost 0
    "lift": (FLOAT, 1),  # watts of each host at a load of almost 0, above those when idle
    "place_of": (INT, 1),  # place of each host
    "places": (PLACE, 1),
    "links": (LINK, 1),
    # Of the route between each two places, row by row, and then of that from a host of each place to itself:
    "route0": (INT, 1),  # begin in `routes`; one more for the end
    "routes": (INT, 1),  # links, without ports
    "latency": (FLOAT, 1),  # total latency, with ports
    "pace": (FLOAT, 1),  # seconds that each byte of a flow takes at least
    "uses": (USE, 1),
    "laid": (INT, 1),  # scratch: places of a job
    # [hosts, 3]: links of what a host sends, receives, and both, or NONE; empty: not shared
    "ports": (INT, 2),
    "hosts": (INT, 1),  # scratch: hosts of a job
    "ranks": (INT, 1),  # scratch: processes of a job on each of its hosts
    "loads": (LOAD, 1),  # scratch: what each host of a job does in a phase
    "touched": (INT, 1),
    "dirty": (INT, 1),
    "sought": (INT, 1),
    "met": (INT, 1),
    "wanted": (FLOAT, 1),  # scratch: bytes/s that each job on a link wants
    "power_log": (POWER, 1),
    "solver": (SOLVER, 0),
    "lags": (LAGS, 0),
    "rule": (RULE, 0),
}


class Networked(Block):
    """State of a replay under EASY or strict order on a network."""

    layout: ClassVar = {**tables.Replay.layout, **_NETWORK}


class NetworkProgress(Block):
    """State of the jobs on a network, without that of a policy."""

    layout: ClassVar = {
        **{name: tables.Replay.layout[name] for name in ("jobs", "pieces", "heap_time", "heap_job", "count", "clock")},
        **_NETWORK,
    }


class NetworkedPowered(Block):
    """State of a replay under EASY or strict order with energy-saving parts on a network."""

    layout: ClassVar = {**Powered.layout, **_NETWORK}


class NetworkedReserving(Block):
    """State of a replay under conservative backfilling on a network."""

    layout: ClassVar = {**tables.Reserving.layout, **_NETWORK}


class NetworkedNodes(World):
    """State of a replay on nodes that jobs share, and of the network between them; see `mapping.program_phases`."""

    layout: ClassVar = {**World.layout, **_NETWORK, "flop_s": (FLOAT, 1)}  # flop/s of a core of each node type
