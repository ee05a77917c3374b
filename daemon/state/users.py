"""Users of this machine by uid, with their names in the user database."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import NamedTuple

#: Seconds for which the user database is not asked again for a name.
NAME_S = 60.0


class Peer(NamedTuple):
    """The process and user at the other end of a connection, as the kernel reports them."""

    uid: int
    gid: int
    pid: int

    def __str__(self) -> str:
        return user_name(self.uid)


def login_of(uid: int) -> str | None:
    """Return a user's name in the user database, None without one; asked for at most once in NAME_S."""
    return _login_of(uid, time.monotonic() // NAME_S)


@lru_cache(maxsize=4096)
def _login_of(uid: int, _period: float) -> str | None:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def user_name(uid: int) -> str:
    """Return a user's name and uid, `ada (uid 1000)`; only the uid if it has no name."""
    login = login_of(uid)
    return f"uid {uid}" if login is None else f"{login} (uid {uid})"
