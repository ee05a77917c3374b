"""Ignore the Slurm and the users of this machine."""

from __future__ import annotations

import pwd
from types import SimpleNamespace

import pytest


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the Slurm and the users of this machine."""
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setattr(pwd, "getpwnam", lambda name: SimpleNamespace(pw_uid=34))
