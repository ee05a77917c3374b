"""The members of the groups of the canary, as the journal has them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """A job that was eligible; times are epoch seconds of the resource manager's clock.

    Args:
        key: of the job.
        unit: the job with which its group was drawn: itself, or the first of its chain.
        side: canary or control.
        share: of the canary when the group was drawn, [0, 1].
        compared: 1 if its group was drawn at random and it is compared, else 0.
        why: it is in this group.
        owner: uid of its user; None: not known.
        queue: its partition or queue.
        cores: that it asked for.
        walltime: its time limit, seconds; None: none.
        submit_time: when it was submitted.
        start_time: when it began; None: it has not.
        finish_time: when it ended, or was given up; None: it has not.
        state: in which it ended, or pending.
        held_s: how long after its submission its group was drawn, if it was held until then, seconds; None: it was not.
    """

    key: str
    unit: str
    side: str
    share: float
    compared: int
    why: str
    owner: int | None
    queue: str
    cores: int
    walltime: float | None
    submit_time: float
    start_time: float | None = None
    finish_time: float | None = None
    state: str = "pending"
    held_s: float | None = None


SCHEMA = """\
-- the groups of the canary, and what became of their jobs; see `Member`
CREATE TABLE members (
    key TEXT PRIMARY KEY, unit TEXT NOT NULL, side TEXT NOT NULL, share REAL NOT NULL, compared INTEGER NOT NULL,
    why TEXT NOT NULL, owner INTEGER, queue TEXT NOT NULL, cores INTEGER NOT NULL, walltime REAL,
    submit_time REAL NOT NULL, start_time REAL, finish_time REAL, state TEXT NOT NULL, held_s REAL) WITHOUT ROWID;
CREATE INDEX members_at ON members (submit_time);
CREATE INDEX open_members ON members (key) WHERE finish_time IS NULL;
"""
