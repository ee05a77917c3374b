"""A store that this user may not write can be read; one that may not be read is an error, or skipped with one line."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.job import DEFAULT_PROFILE

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root, so no other user can open the store")

#: As an ordinary user: prints what the store knows, and each line that was skipped.
READ = """
import os, sys
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.errors import ConfigError
ProfileStore(sys.argv[1] + '-').get('bt.C')
os.setgroups([]); os.setgid(65534); os.setuid(65534)
lines = []
store = ProfileStore(sys.argv[1], skip=lines.append if sys.argv[2] == "skip" else None)
try:
    print(store.own_names(), store.get("bt.C") is not None, store.own_names(), len(lines))
except ConfigError as error:
    print("error:", error)
if sys.argv[2] == "put":
    from dataclasses import replace
    from pilotfish.simulate.model.job import DEFAULT_PROFILE
    try:
        store.put(replace(DEFAULT_PROFILE, name="b"))
    except ConfigError as error:
        print("error:", error)
"""


def read(path: Path, how: str = "") -> list[str]:
    done = subprocess.run([sys.executable, "-c", READ, path, how], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everyone may enter (pytest closes its own to others), with a store in it."""
    with tempfile.TemporaryDirectory() as name:
        store = ProfileStore(Path(name) / "profiles.sqlite")
        store.put(replace(DEFAULT_PROFILE, name="a"))
        store._file.close()
        Path(name).chmod(0o755)
        store.path.chmod(0o644)
        yield Path(name)


@pytest.mark.real
@pytest.mark.parametrize("how", ["", "skip"])
def test_a_read_only_store_is_read(folder: Path, how: str) -> None:
    assert read(folder / "profiles.sqlite", how) == ["['a'] True ['a'] 0"]


@pytest.mark.real
def test_a_read_only_store_is_read_while_its_owner_has_it_open(folder: Path) -> None:
    owner = sqlite3.connect(folder / "profiles.sqlite")
    owner.execute("SELECT * FROM profile").fetchall()
    for file in folder.iterdir():
        file.chmod(0o644)
    assert read(folder / "profiles.sqlite") == ["['a'] True ['a'] 0"]
    owner.close()


@pytest.mark.real
def test_a_read_only_store_refuses_to_be_written(folder: Path) -> None:
    first, second = read(folder / "profiles.sqlite", "put")
    assert first.startswith("['a']")
    assert second.startswith(f"error: {folder / 'profiles.sqlite'}: the profile store cannot be used: ")


@pytest.mark.real
@pytest.mark.parametrize("what", ["file", "directory"])
def test_an_unreadable_store_is_skipped_where_that_is_wanted(folder: Path, what: str) -> None:
    (folder if what == "directory" else folder / "profiles.sqlite").chmod(0o700 if what == "directory" else 0o600)
    assert read(folder / "profiles.sqlite", "skip") == ["[] True [] 1"]
    (said,) = read(folder / "profiles.sqlite")
    assert said.startswith(f"error: {folder / 'profiles.sqlite'}: the profile store cannot be used: ")


def test_a_damaged_store_is_never_skipped(folder: Path) -> None:
    (folder / "profiles.sqlite").write_text("no database, and longer than the header of one" * 9)
    lines: list[str] = []
    with pytest.raises(ConfigError, match="not a sound profile store"):
        ProfileStore(folder / "profiles.sqlite", skip=lines.append).own_names()
    assert lines == []
