"""State tables of a replay on machines that can be switched off, or with limited power or energy (needs NumPy only).

Terms: a machine is *idle*, *off* (after having been idle; usable after a boot) or *kept* (off, and usable only by a job
that cannot start without it); switching takes time. Rows after the jobs are such switches.
Units: seconds, watts, joules.
"""

from __future__ import annotations

from enum import IntEnum, auto
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from ...block import Block
from ...mapping.layout import FLOAT, INT
from .. import tables

#: States of rows that are not jobs: machines switch to off, to kept, to idle; machines blocked by a power cap; all
#: machines at the beginning.
TO_OFF, TO_KEPT, TO_IDLE, BLOCKED, AT_FIRST = range(4, 9)
#: Limits; policies that keep machines off; kinds of decisions.
NO_LIMIT, CAP, BUDGET, REDUCED = range(4)
NO_KEEPER, PROPORTIONAL, INERTIAL = range(3)
SWITCH_OFF, SWITCH_ON = range(2)
#: Share of a budget: deficits up to this are rounding errors and ignored, so that the order of sums has no effect.
TIE = 1e-12
#: Relative increase above which a mean horizon counts as risen, for the same reason.
ROSE = 1e-9

#: A job, or a switch of machines: when it got them, the first piece that had to boot, and the next row in its list.
ROW = np.dtype(
    [(name, tables.JOB.fields[name][0]) for name in tables.JOB.names or ()]
    + [("taken", FLOAT), ("booted", INT), ("next", INT)],
    align=True,
)

#: A row of `ends`, with `used`: machines that jobs of this and later rows use; `later`: machine-seconds after this row.
END = np.dtype(
    [(name, tables.END.fields[name][0]) for name in tables.END.names or ()] + [("used", INT), ("later", FLOAT)],
    align=True,
)


def _numbers(cells: type[IntEnum]) -> Any:
    """Return the members as integers of a module: numba before 0.67 cannot index with a member of an IntEnum."""
    made = ModuleType(cells.__name__)
    vars(made).update({name: int(value) for name, value in cells.__members__.items()})
    return made


@_numbers
class Count(IntEnum):
    """Further cells of `count`."""

    TOTAL = tables.CELLS  #: jobs; rows from here on are switches of machines
    ROWS = auto()  #: rows in use
    ACTIVE = auto()  #: jobs that have machines
    IDLE = auto()
    OFF = auto()
    KEPT = auto()
    KEEPING = auto()  #: machines on their way to being kept off
    ALLOCATED = auto()  #: machines that jobs have
    COMPUTING = auto()  #: of these, machines whose jobs have started
    BOOTING = auto()  #: machines being switched on
    ENDING = auto()  #: machines being switched off
    LOWEST_OFF = auto()
    LOWEST_KEPT = auto()
    FIRST_IDLE = auto()  #: list of rows whose machines became idle and may still be idle, -1: empty
    LAST_IDLE = auto()
    FIRST_BOOT = auto()  #: list of booting jobs, -1: empty
    LAST_BOOT = auto()
    SHUTS = auto()  #: 1: idle machines are switched off
    TIRED = auto()  #: machines that have been idle for long enough
    HIGHEST_TIRED = auto()  #: last word that may have some
    LIMIT = auto()
    ALLOWED = auto()  #: machines that a power cap allows jobs to have
    STAGE = auto()  #: the next monitoring stage of a budget
    AHEAD = auto()  #: first row of `ends` in the balance, -1: the balance is out of date
    EVEN = auto()  #: first row from which on the balance no longer falls
    LEFT = auto()  #: 1: what the head leaves of the balance is up to date
    STANDS = auto()  #: 1: the reservation rests on this balance, and no machine was switched since
    KEEPER = auto()  #: policy that keeps machines off
    USABLE = auto()  #: machines that are not kept off (proportional)
    PERIOD = auto()  #: number of the next decision
    KIND = auto()  #: kind of the last decision
    DUE = auto()  #: machines that it still has to switch
    SWITCHED = auto()  #: machines that it has switched
    DOUBLES = auto()  #: 1: twice as many as last time, 0: one more
    LATER = auto()  #: 1: machines that cannot be switched at once are switched later
    FREE_BEFORE = auto()  #: free machines when the liquid load horizon was last evaluated
    FREE_THEN = auto()  #: free machines when it is reached
    BEHIND = auto()  #: rows of `ends` that end after that
    FLOWS = auto()  #: 1: rows were added or removed since
    PASSES = auto()  #: 1: jobs are also started at periods
    LOADED = auto()  #: waiting jobs with work: whose size x walltime is not 0
    CELLS = auto()


@_numbers
class Clock(IntEnum):
    """Further cells of `clock`."""

    IDLE_FOR = tables.CLOCKS  #: idle seconds after which machines are switched off
    ON_S = auto()
    OFF_S = auto()
    WATTS_IDLE = auto()
    WATTS_COMPUTING = auto()
    WATTS_OFF = auto()
    WATTS_ON = auto()
    WATTS_ENDING = auto()
    BEGIN = auto()  #: window in which power or energy is limited
    END = auto()
    RATE = auto()  #: joules that accrue per second
    BASE = auto()  #: estimated watts of all machines when idle
    EXTRA = auto()  #: estimated additional watts of a computing machine
    TIE = auto()  #: joules that count as 0
    STAGE_S = auto()
    CREDIT = auto()  #: joules available
    CREDITED = auto()  #: time of CREDIT
    ENERGY = auto()  #: joules consumed in the window
    MEASURED = auto()  #: time of ENERGY
    HELD = auto()  #: joules set aside for the head
    WRONG = auto()  #: sums of `ends` until this time are out of date
    LAID = auto()  #: time at which the balance was computed
    GROUND = auto()  #: balance at LAID after the energy of all running jobs
    LASTS = auto()  #: latest end of a running job in the balance
    EVEN = auto()  #: time from which on the balance no longer falls
    OTHERS = auto()  #: watts kept for the head, from SINCE until UNTIL
    SINCE = auto()
    UNTIL = auto()
    LOW_BEFORE = auto()  #: time of the least balance before the head starts, and what is left then
    LEFT_BEFORE = auto()
    LOW = auto()  #: the same from its start on
    LEFT = auto()
    LAST = auto()  #: time at which the last exact check failed, and what is left then
    LEFT_LAST = auto()
    LOOKED = auto()  #: end of the examined part of the balance, in the window
    FIRST = auto()  #: first instant
    PERIOD_S = auto()
    BOUND = auto()  #: bound of the mean liquid load horizon
    LOAD = auto()  #: sum of size x walltime of all waiting jobs
    LOAD_BEFORE = auto()  #: the same when the horizon was last evaluated, and the time of that
    LOOKED_AT = auto()
    REACHED = auto()  #: end of the rows passed by the last evaluation; -infinite: no job waited
    UNDONE = auto()  #: load left then
    HORIZON = auto()  #: liquid load horizon after the last instant
    SUMMED = auto()  #: its integral since the last decision
    SEEN = auto()  #: time of the last instant or decision
    MEAN = auto()  #: mean before the last decision
    CELLS = auto()


class Powered(Block):
    """State of a replay with energy-saving parts."""

    layout: ClassVar = {
        **{name: kind for name, kind in tables.Replay.layout.items() if name not in ("decided", "expected", "ended")},
        "jobs": (ROW, 1),
        "off": (np.dtype("u8"), 1),  # one bit per machine
        "kept": (np.dtype("u8"), 1),
        "tired": (np.dtype("u8"), 1),
        "ends": (END, 1),
        "since": (np.dtype("i4"), 1),  # row with which each idle machine became idle, if an idle time is set
        "areas": (FLOAT, 1),  # least size x walltime below each cell of the tree of waiting jobs
    }
