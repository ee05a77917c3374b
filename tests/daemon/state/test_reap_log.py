"""The reaper's own record: what it did is known afterwards, whoever reads it, and a damaged line harms no other."""

from __future__ import annotations

import os

import pytest

from pilotfish.adapters.base import Reaped
from pilotfish.daemon.state import reap_log
from pilotfish.daemon.state.audit import AuditQuestion
from pilotfish.daemon.state.reap_log import EARLIER, FILE, note_reaped, read_reaped

PIN = Reaped("release slurm/7", "slurm/7", 1000, "its pin did not become a start", {"nodes": "n1", "pinned_since": 5.0})


def test_what_was_done_is_a_line_of_the_audit(tmp_path) -> None:
    note_reaped(tmp_path, PIN, 100.0)
    note_reaped(tmp_path, Reaped("release slurm/8: no", "slurm/8", 1001, error="no"), 200.0)
    first, second = read_reaped(tmp_path, AuditQuestion())
    assert (first["target"], first["by"], first["outcome"], first["time"]) == ("slurm/7", "reaper", "done", 100.0)
    assert first["before"] == {"nodes": "n1", "pinned_since": 5.0} and first["why"] == PIN.why
    assert second["outcome"] == "refused: no"
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert [line["target"] for line in read_reaped(tmp_path, AuditQuestion(owner=1001))] == ["slurm/8"]
    assert [line["target"] for line in read_reaped(tmp_path, AuditQuestion(("slurm/7",)))] == ["slurm/7"]
    assert [line["target"] for line in read_reaped(tmp_path, AuditQuestion(since=150.0))] == ["slurm/8"]


@pytest.mark.parametrize("damage", [b'{"time": 1', b"\xff\xfe", b"[]", b'{"time": "x", "owner": 1}', b'{"time": 9}'])
def test_a_line_that_cannot_be_read_is_left_out(tmp_path, damage: bytes) -> None:
    note_reaped(tmp_path, PIN, 100.0)
    with open(tmp_path / FILE, "ab") as file:
        file.write(damage + b"\n")
    note_reaped(tmp_path, PIN, 200.0)
    assert [line["time"] for line in read_reaped(tmp_path, AuditQuestion())] == [100.0, 200.0]


def test_the_record_is_bounded(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reap_log, "LARGEST", 2000)
    for number in range(100):
        note_reaped(tmp_path, PIN, float(number))
    assert sum((tmp_path / name).stat().st_size for name in (FILE, EARLIER)) < 5000
    assert read_reaped(tmp_path, AuditQuestion())[-1]["time"] == 99.0


def test_a_link_in_its_place_is_not_followed(tmp_path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    os.symlink(target, tmp_path / FILE)
    with pytest.raises(OSError, match="link"):
        note_reaped(tmp_path, PIN, 1.0)
    assert target.read_text() == "" and read_reaped(tmp_path, AuditQuestion()) == []
