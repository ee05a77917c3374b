"""Names of users by uid."""

from __future__ import annotations

import pwd
from types import SimpleNamespace

from pilotfish.daemon.state import users
from pilotfish.daemon.state.users import user_name


def test_a_user_without_a_name_is_a_number():
    assert user_name(0) == "root (uid 0)" and user_name(4_000_001) == f"uid {4_000_001}"


def test_the_user_database_is_asked_for_a_name_once_a_minute(monkeypatch):
    asked = []
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: asked.append(uid) or SimpleNamespace(pw_name="ada"))
    users._login_of.cache_clear()
    assert {user_name(4_000_000) for _ in range(1000)} == {"ada (uid 4000000)"} and len(asked) <= 2
    users._login_of.cache_clear()
