"""State tables of a replay on machines that can be switched off, or with limited power or energy (needs NumPy only).

Terms: a machine is *idle*, *off* (after having been idle; usable after a boot) or *kept* (off, and usable only by a job
that cannot start without it); switching takes time. Rows after the jobs are such switches.
Units: seconds, watts, joules.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...block import Block
from ...mapping.layout import FLOAT, extended, row_dtype
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

#: A job, or a switch of machines: when it got them, the first piece that had to boot, and the next row in its list.
ROW = extended(tables.JOB, ["taken"], ["booted", "next"])

#: A row of `ends`, with `used`: machines that jobs of this and later rows use; `later`: machine-seconds after this row.
END = extended(tables.END, ["later"], ["used"])
#: First and last row of a list of rows, -1 if it is empty.
LIST = row_dtype("", "first last")

COUNT = extended(
    tables.COUNT,
    ints=[
        "rows",  # rows in use
        "active",  # jobs that have machines
        "idle",
        "off",
        "kept",
        "keeping",  # machines on their way to being kept off
        "lowest_off",  # first words of `off` and `kept` that may be non-empty
        "lowest_kept",
        "allocated",  # machines that jobs have
        "computing",  # of these, machines whose jobs have started
        "booting",  # machines being switched on
        "ending",  # machines being switched off
        "shuts",  # 1: idle machines are switched off
        "tired",  # machines that have been idle for long enough
        "highest_tired",  # last word that may have some
        "limit",
        "allowed",  # machines that a power cap allows jobs to have
        "stage",  # the next monitoring stage of a budget
        "ahead",  # first row of `ends` in the balance, -1: the balance is out of date
        "even",  # first row from which on the balance no longer falls
        "head_size",  # machines of the job with the reservation
        "left",  # 1: what the head leaves of the balance is up to date
        "stands",  # 1: the reservation rests on this balance, and no machine was switched since
        "keeper",  # policy that keeps machines off
        "usable",  # machines that are not kept off (proportional)
        "period",  # number of the next decision
        "kind",  # kind of the last decision
        "due",  # machines that it still has to switch
        "switched",  # machines that it has switched
        "doubles",  # 1: twice as many as last time, 0: one more
        "later",  # 1: machines that cannot be switched at once are switched later
        "free_before",  # free machines when the liquid load horizon was last evaluated
        "free_then",  # free machines when it is reached
        "behind",  # rows of `ends` that end after that
        "flows",  # 1: rows were added or removed since
        "passes",  # 1: jobs are also started at periods
        "loaded",  # waiting jobs with work: whose size x walltime is not 0
    ],
)


CLOCK = extended(
    tables.CLOCK,
    floats=[
        "idle_for",  # idle seconds after which machines are switched off
        "on_s",
        "off_s",
        "watts_idle",
        "watts_computing",
        "watts_off",
        "watts_on",
        "watts_ending",
        "begin",  # window in which power or energy is limited
        "end",
        "rate",  # joules that accrue per second
        "base",  # estimated watts of all machines when idle
        "extra",  # estimated additional watts of a computing machine
        "tie",  # joules that count as 0
        "stage_s",
        "credit",  # joules available
        "credited",  # time of CREDIT
        "energy",  # joules consumed in the window
        "measured",  # time of ENERGY
        "held",  # joules set aside for the head
        "head_wall",  # walltime of the job with the reservation
        "wrong",  # sums of `ends` until this time are out of date
        "laid",  # time at which the balance was computed
        "ground",  # balance at LAID after the energy of all running jobs
        "lasts",  # latest end of a running job in the balance
        "even",  # time from which on the balance no longer falls
        "others",  # watts kept for the head, from SINCE until UNTIL
        "since",
        "until",
        "low_before",  # time of the least balance before the head starts, and what is left then
        "left_before",
        "low",  # the same from its start on
        "left",
        "last",  # time at which the last exact check failed, and what is left then
        "left_last",
        "looked",  # end of the examined part of the balance, in the window
        "first",  # first instant
        "period_s",
        "bound",  # bound of the mean liquid load horizon
        "load",  # sum of size x walltime of all waiting jobs
        "load_before",  # the same when the horizon was last evaluated, and the time of that
        "looked_at",
        "reached",  # end of the rows passed by the last evaluation; -infinite: no job waited
        "undone",  # load left then
        "horizon",  # liquid load horizon after the last instant
        "summed",  # its integral since the last decision
        "seen",  # time of the last instant or decision
        "mean",  # mean before the last decision
    ],
)


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
        "became_idle": (LIST, 0),  # rows whose machines became idle and may still be idle
        "boots": (LIST, 0),  # jobs whose machines boot
        "count": (COUNT, 0),
        "clock": (CLOCK, 0),
        "areas": (FLOAT, 1),  # least size x walltime below each cell of the tree of waiting jobs
    }
