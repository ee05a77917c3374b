"""Tables of a replay on machines that can be switched off, or whose energy or power is limited (NumPy alone).

Words: a machine is *idle*, *off* (for having been idle; it may be used, after a boot) or *kept* (off, and used only by
a job that cannot start without it); changing between them takes time. Rows behind the jobs' are such changes.
Units: seconds, watts, joules.
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import ClassVar

import numpy as np

from ...block import Block
from ...layout import FLOAT, INT
from .. import tables

#: States of rows that are no jobs: machines change to off, to kept, to idle; a number that a power cap leaves unused
#: until its end; the machines that were idle at the beginning.
TO_OFF, TO_KEPT, TO_IDLE, BLOCKED, AT_FIRST = range(4, 9)
#: Limits; who decides how many machines are kept off; kinds of decisions.
NO_LIMIT, CAP, BUDGET, REDUCED = range(4)
NOBODY, PROPORTIONAL, INERTIAL = range(3)
SWITCH_OFF, SWITCH_ON = range(2)
#: Of a budget: what is owed by rounding alone is no debt, so that the order of a sum decides nothing.
TIE = 1e-12
#: A mean horizon has risen where it has by more than this part of it, for the same reason.
ROSE = 1e-9

#: A job, or a change of machines: when it took them, the first piece that had to boot, and the next row in its list.
ROW = np.dtype(
    [(name, tables.JOB.fields[name][0]) for name in tables.JOB.names or ()]
    + [("taken", FLOAT), ("booted", INT), ("next", INT)],
    align=True,
)

#: A row of those that end; machines that jobs use until then, and what they use from then on, in machine-seconds.
END = np.dtype(
    [(name, tables.END.fields[name][0]) for name in tables.END.names or ()] + [("used", INT), ("later", FLOAT)],
    align=True,
)


class Count(IntEnum):
    """Further cells of `count`."""

    TOTAL = tables.CELLS  #: jobs; rows from here on are changes of machines
    ROWS = auto()  #: in use
    ACTIVE = auto()  #: jobs that have machines
    IDLE = auto()
    OFF = auto()
    KEPT = auto()
    KEEPING = auto()  #: machines on their way to being kept off
    ALLOCATED = auto()  #: machines that jobs have
    COMPUTING = auto()  #: of these, those whose jobs have begun
    BOOTING = auto()  #: machines being switched on
    ENDING = auto()  #: machines being switched off
    LOWEST_OFF = auto()
    LOWEST_KEPT = auto()
    FIRST_IDLE = auto()  #: the list of rows whose machines became idle and may still be, -1: none
    LAST_IDLE = auto()
    FIRST_BOOT = auto()  #: the list of jobs that boot
    LAST_BOOT = auto()
    SHUTS = auto()  #: 1: idle machines are switched off
    TIRED = auto()  #: machines that have been idle for long enough
    HIGHEST_TIRED = auto()  #: behind which word there are none
    LIMIT = auto()
    ALLOWED = auto()  #: machines that a power cap allows jobs to have
    STAGE = auto()  #: the next monitoring stage of a budget
    AHEAD = auto()  #: the first of `ends` in the balance to come, -1: none stands
    EVEN = auto()  #: the first from which on it goes down no more
    LEFT = auto()  #: 1: it is known what is left beside the first that waits
    STANDS = auto()  #: 1: the reservation is by this balance, and no machine was switched since
    KEEPER = auto()  #: who decides how many are kept off
    USABLE = auto()  #: machines that are not to be kept off (proportional)
    PERIOD = auto()  #: the next period at which is decided
    KIND = auto()  #: of the last decision
    DUE = auto()  #: machines still to be switched by it
    SWITCHED = auto()  #: machines that were, since it was taken
    DOUBLES = auto()  #: 1: twice as many as last time, 0: one more
    LATER = auto()  #: 1: what cannot be switched at once is switched later
    FREE_BEFORE = auto()  #: machines that were free when the liquid load horizon was last looked at
    FREE_THEN = auto()  #: and that are when it is reached
    BEHIND = auto()  #: rows of `ends` that end after that
    FLOWS = auto()  #: 1: any has come or gone since
    PASSES = auto()  #: 1: jobs are started at periods, too
    CELLS = auto()


class Clock(IntEnum):
    """Further cells of `clock`."""

    IDLE_FOR = tables.CLOCKS  #: after which idle machines are switched off
    ON_S = auto()
    OFF_S = auto()
    WATTS_IDLE = auto()
    WATTS_COMPUTING = auto()
    WATTS_OFF = auto()
    WATTS_ON = auto()
    WATTS_ENDING = auto()
    BEGIN = auto()  #: of the window in which power or energy is limited
    END = auto()
    RATE = auto()  #: joules a second that are made available
    BASE = auto()  #: estimated watts of all machines when idle
    EXTRA = auto()  #: estimated watts that a machine takes more when it computes
    TIE = auto()  #: joules that count as none
    STAGE_S = auto()
    CREDIT = auto()  #: joules available
    CREDITED = auto()  #: when that was so
    ENERGY = auto()  #: joules consumed in the window
    MEASURED = auto()  #: when that was so
    HELD = auto()  #: joules kept for the first that waits
    WRONG = auto()  #: what was summed of `ends` until then is wrong
    LAID = auto()  #: when the balance to come was laid out
    GROUND = auto()  #: the balance then, had all that runs been paid
    LASTS = auto()  #: until when anybody runs in it
    EVEN = auto()  #: from when on it goes down no more
    OTHERS = auto()  #: watts that are kept for the first that waits, from
    SINCE = auto()
    UNTIL = auto()
    LOW_BEFORE = auto()  #: when the balance is least before it begins, and how much is left then
    LEFT_BEFORE = auto()
    LOW = auto()  #: the same from its beginning on
    LEFT = auto()
    LAST = auto()  #: when there was too little for the last that was refused by an exact look, and what is left then
    LEFT_LAST = auto()
    LOOKED = auto()  #: until when, in the window, the balance is looked at
    FIRST = auto()  #: the first instant
    PERIOD_S = auto()
    BOUND = auto()  #: of the mean liquid load horizon
    LOAD = auto()  #: size x walltime of all that wait
    LOAD_BEFORE = auto()  #: the same when the horizon was last looked at, and when that was
    LOOKED_AT = auto()
    REACHED = auto()  #: the end of the rows that it was looked for along; -infinite: nothing waited
    UNDONE = auto()  #: what of the load is left then
    HORIZON = auto()  #: liquid load horizon after the last instant
    SUMMED = auto()  #: its integral since the last decision
    SEEN = auto()  #: when the last instant, or decision, was
    MEAN = auto()  #: mean before the last decision
    CELLS = auto()


class Powered(Block):
    """All that such a replay knows."""

    layout: ClassVar = {
        **{name: kind for name, kind in tables.Replay.layout.items() if name != "decided"},
        "jobs": (ROW, 1),
        "off": (np.dtype("u8"), 1),  # a bit a machine
        "kept": (np.dtype("u8"), 1),
        "tired": (np.dtype("u8"), 1),
        "ends": (END, 1),
        "since": (np.dtype("i4"), 1),  # the row by which an idle machine became so, where it may be so for long
        "areas": (FLOAT, 1),  # of each cell of the tree of those that wait: the least size x walltime below it
    }
