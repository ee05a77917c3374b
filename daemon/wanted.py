"""A job whose entry in the resource manager's books is to be looked up (see `books`), as the journal keeps it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wanted:
    """One of them.

    Args:
        key: under which the resource manager knows it.
        name: under which its run is to be kept.
        since: a time before which it cannot have been started, epoch seconds.
        ended: when it did; `due` is from when on it is to be asked for, epoch seconds.
        tries: how often it was not there.
    """

    key: str
    name: str
    since: float
    ended: float
    due: float
    tries: int = 0
