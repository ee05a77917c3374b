"""A state directory that others could write to, or that cannot be one, is refused in one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from local_world import CLUSTER
from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.local import create


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s").chmod(mode)
    with pytest.raises(AdapterError, match="others can write to it"):
        create(CLUSTER, tmp_path / "s")
    assert list((tmp_path / "s").iterdir()) == []


def test_another_users_directory_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "s"
    theirs.mkdir()
    if os.geteuid() == 0:
        os.chown(theirs, 12345, 12345)
    else:
        theirs = Path("/usr")
    with pytest.raises(AdapterError, match="belongs to user"):
        create(CLUSTER, theirs)


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("file", "link", "file/below"):
        with pytest.raises(AdapterError, match="state directory"):
            create(CLUSTER, tmp_path / name)


def test_a_missing_one_is_made_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        create(CLUSTER, tmp_path / "x" / "y" / "state").close()
    finally:
        os.umask(old)
    assert (tmp_path / "x" / "y" / "state").stat().st_mode & 0o777 == 0o700


def test_what_was_being_removed_is_removed(tmp_path: Path) -> None:
    create(CLUSTER, tmp_path / "s").close()
    (tmp_path / "s" / "forgotten" / "1").mkdir()
    (tmp_path / "s" / "forgotten" / "1" / "spec.json").write_text("{}")
    create(CLUSTER, tmp_path / "s").close()
    assert list((tmp_path / "s" / "forgotten").iterdir()) == []
