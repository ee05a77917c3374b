"""Our changes of jobs: only we can make a mark, the record outlives every comment, and a user's text keeps its bytes."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.job_update import (
    ALLOWED,
    BEGUN_WITH_NODES,
    GONE_S,
    MARK_BYTES,
    MarkField,
    OurChanges,
    came_too_late,
    command,
    pin_for,
)
from pilotfish.adapters.slurm.marks import MARK, Marks, PinRecord, claimed_time, read_key
from pilotfish.adapters.slurm.ownership import Selection, hold_seconds, is_held
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.simulate.errors import ConfigError, InvariantError
from pilotfish.simulate.model.snapshot import JobState

NOW = 1_000_000.0
JOB = SlurmJob(
    7, JobState.PENDING, "BeginTime", uid=5, partition="shared", submit=NOW - 10, begin=NOW + 50, priority=1,
    comment="pilotfish:hold=60",
)  # fmt: skip
KEY = b"k" * 32
FIELDS = {MarkField.ADMIN_COMMENT: "admin_comment", MarkField.COMMENT: "comment"}
#: Any bytes that a comment may have, as they are read.
TEXTS = st.binary(max_size=300).map(lambda raw: os.fsdecode(raw.replace(b"\0", b"")))


def ours(
    folder: Path | None = None,
    field: MarkField = MarkField.COMMENT,
    key: bytes = KEY,
    clock: Callable[[], float] = lambda: 0.0,
) -> OurChanges:
    return OurChanges(Marks(key), PinRecord(folder), Selection(frozenset({"shared"})).takes, field, clock=clock)


def changed(job: SlurmJob, fields: dict[str, str]) -> SlurmJob:
    """Return a job as Slurm shows it after an update."""
    texts = {FIELDS[field]: fields[field] for field in MarkField if field in fields}
    wanted = job.wanted
    if "ReqNodeList" in fields:
        wanted = (fields["ReqNodeList"],) if fields["ReqNodeList"] else ()
    return replace(job, wanted=wanted, pinned=None, **texts)  # type: ignore[arg-type]


def pinned(changes: OurChanges, job: SlurmJob = JOB, now: float = NOW) -> SlurmJob:
    changes.record.add(job.id, pin_for(job, ("n1",), now))
    return changed(job, changes.pin(job, ("n1",), now))


@given(TEXTS, st.sampled_from([*MarkField]))
def test_a_pin_and_its_end_keep_every_byte_of_a_comment(text: str, field: MarkField) -> None:
    changes = ours(field=field)
    job = replace(JOB, **{FIELDS[field]: text})  # type: ignore[arg-type]
    placed = pinned(changes, job)
    said = field.text(placed)
    assert said.startswith(text) and MARK.search(said[len(text) :]) and len(said) - len(text) <= MARK_BYTES
    again = changed(placed, changes.pin(placed, ("n1",), NOW + 1))
    assert field.text(again).startswith(text) and len(field.text(again)) == len(said)
    found = changes.recognise(again, lambda: NOW)
    assert found.pinned is not None
    back = changed(again, changes.unpin(found))
    assert field.text(back) == text and back.wanted == ()


def test_a_pin_is_known_by_its_record_whatever_the_comment_says(tmp_path: Path) -> None:
    first = ours(tmp_path)
    first.retain({})
    job = pinned(first)
    for comment in ("", "mine", "pilotfish:pin=9:AAAAAAAAAAAAAAAA", job.comment[:-1], job.comment):
        seen = ours(tmp_path).recognise(replace(job, comment=comment), lambda: NOW + 60)
        assert seen.pinned == NOW
        assert ours(tmp_path).unpin(seen)["ReqNodeList"] == ""
    other = replace(job, wanted=("n2",))
    assert first.recognise(other, lambda: NOW).pinned is None, "the user has asked for another node since"
    assert first.recognise(replace(job, uid=6), lambda: NOW).pinned is None
    assert first.recognise(replace(job, state=JobState.RUNNING), lambda: NOW).pinned is None


@pytest.mark.parametrize("restarted", [False, True])
def test_what_we_did_is_forgotten_only_when_a_job_has_been_gone_for_a_minute(tmp_path: Path, restarted: bool) -> None:
    """A queue without the job may be a mistake, as of a `squeue` that fails with exit code 0."""
    now = [0.0]
    first = ours(tmp_path, clock=lambda: now[0])
    first.retain({7, 8})
    job = pinned(first)
    pinned(first, replace(JOB, id=9))
    first.recognise(replace(JOB, id=8), lambda: NOW)
    changes = ours(tmp_path, clock=lambda: now[0]) if restarted else first
    for now[0] in (1.0, GONE_S - 1.0):
        changes.retain({9})
        assert changes.recognise(job, lambda: NOW + 60).pinned == NOW and PinRecord(tmp_path).get(7) is not None
    if not restarted:
        assert changes.recognise(replace(JOB, id=8, begin=NOW + 49), lambda: NOW).moved
    changes.retain({7, 9})
    now[0] += GONE_S - 1.0
    changes.retain({9})
    assert PinRecord(tmp_path).get(7) is not None, "it was there in between"
    now[0] += 1.0
    changes.retain({9})
    assert PinRecord(tmp_path).get(7) is None, "the job has left the queue"
    for now[0] in (200.0, 400.0):
        changes.retain(())  # such as the queue of one who may not see others' jobs any more
        assert PinRecord(tmp_path).get(9) is not None


def test_without_a_record_the_mark_says_what_was_pinned(tmp_path: Path) -> None:
    job = pinned(ours())
    changes = ours(tmp_path)
    found = changes.recognise(job, lambda: NOW)
    assert found.pinned == NOW and PinRecord(tmp_path).get(7) is not None
    changes.retain({7})
    assert ours(tmp_path).recognise(replace(job, comment="mine"), lambda: NOW).pinned == NOW
    kept = ours(tmp_path)
    kept.retain({7})
    kept.record.drop(7)
    assert kept.recognise(job, lambda: NOW).pinned is None, "with a record, a mark that is put back says nothing"


@pytest.mark.parametrize(
    "job",
    [
        replace(JOB, id=8), replace(JOB, uid=6), replace(JOB, partition="other", comment=""),
    ],
)  # fmt: skip
def test_a_mark_counts_on_its_own_job_only_and_if_that_is_handed_over(job: SlurmJob, tmp_path: Path) -> None:
    marked = pinned(ours(field=MarkField.ADMIN_COMMENT))
    copied = replace(job, admin_comment=marked.admin_comment, wanted=marked.wanted)
    assert ours(tmp_path).recognise(copied, lambda: NOW) == copied
    assert ours(tmp_path).recognise(replace(marked, wanted=("n2",)), lambda: NOW).pinned is None
    assert ours(tmp_path).recognise(marked, lambda: NOW - 6).pinned is None, "it is of the future"
    assert ours(tmp_path, key=b"x" * 32).recognise(marked, lambda: NOW).pinned is None
    assert ours(tmp_path, key=b"").recognise(marked, lambda: NOW).pinned is None


@given(st.text() | st.from_regex(MARK) | st.integers(0, 10**400).map("pilotfish:pin={}:job=7:uid=5:was=".format))
def test_a_text_of_a_user_is_no_mark_and_stays(text: str) -> None:
    changes = ours()
    changes.record.lost = True
    job = replace(JOB, comment=text, wanted=("n1",))
    found = changes.recognise(job, lambda: NOW)
    assert (found.pinned, found.let_go) == (None, False) and changes.unpin(found) == {}
    assert changes.pin(job, ("n1",), NOW)["Comment"].startswith(text)
    claimed_time(text)


def test_a_job_on_nodes_of_its_users_choice_keeps_them() -> None:
    changes = ours()
    job = replace(JOB, wanted=("n1",))
    fields = changes.pin(job, ("n1",), NOW)
    assert fields.keys() == {"StartTime", "Comment"} and "pilotfish:own=" in fields["Comment"]
    changes.record.add(7, pin_for(job, ("n1",), NOW))
    undone = changes.unpin(changes.recognise(changed(job, fields), lambda: NOW))
    assert undone == {"Comment": JOB.comment}


def test_a_full_comment_takes_no_mark() -> None:
    changes = ours()
    room = 1024 - 1 - MARK_BYTES
    assert not changes.recognise(replace(JOB, comment="x" * room), lambda: NOW).full
    full = replace(JOB, comment="é" * (room // 2) + "xx")
    assert changes.recognise(full, lambda: NOW).full
    longest = replace(JOB, comment="x" * room)
    assert len(os.fsencode(changes.pin(longest, ("n1",), 99_999_999_999)["Comment"])) < 1024
    assert changes.let_go(replace(JOB, comment="x" * 1023), NOW) == {"StartTime": "now"}


def test_a_begin_time_that_was_moved_within_the_tolerance_is_the_users_too() -> None:
    changes = ours()
    hand_over = replace(JOB, comment="pilotfish:hold=600", submit=NOW, begin=NOW + 600)
    assert not changes.recognise(hand_over, lambda: NOW).moved
    moved = changes.recognise(replace(hand_over, begin=NOW + 598), lambda: NOW)
    assert moved.moved and not is_held(moved, NOW)
    assert not changes.recognise(replace(hand_over, begin=NOW + 600), lambda: NOW).moved  # moved back
    changes.retain(())
    assert not changes.recognise(replace(hand_over, begin=NOW + 598), lambda: NOW).moved


def test_a_node_list_that_cannot_be_cleared_came_too_late() -> None:
    error = AdapterError("refused", stderr_tail=f"{BEGUN_WITH_NODES} for job 7")
    assert came_too_late(error, {"ReqNodeList": ""}) and not came_too_late(error, {"ReqNodeList": "n1"})


def test_a_job_that_was_let_go_stays_so() -> None:
    changes = ours()
    fields = changes.let_go(JOB, NOW)
    assert fields.keys() == {"StartTime", "Comment"} and hold_seconds(fields["Comment"]) == 60
    assert ours().recognise(changed(JOB, fields), lambda: NOW).let_go
    assert not ours().recognise(replace(changed(JOB, fields), id=8), lambda: NOW).let_go
    changes.note_let_go(7)
    assert changes.recognise(replace(JOB, comment="pilotfish"), lambda: NOW).let_go


def test_updates_are_one_command_with_allowed_fields() -> None:
    changes = ours(field=MarkField.ADMIN_COMMENT)
    fields = changes.pin(replace(JOB, admin_comment="of the site"), ("n1", "n2"), NOW)
    said = command(7, fields)
    assert said[:5] == ["scontrol", "update", "JobId=7", "ReqNodeList=n[1-2]", "StartTime=now"]
    assert said[5].startswith("AdminComment=of the site pilotfish:pin=1000000:") and len(said) == 6
    assert {*fields, *ours().pin(JOB, ("n1",), NOW)} == ALLOWED
    assert command(7, {"ReqNodeList": ""})[3] == "ReqNodeList="  # an empty list clears it
    with pytest.raises(InvariantError, match="Priority"):
        command(7, {"Priority": "9"})


def test_the_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "slurm"
    assert read_key(folder, make=False) == b"" and not folder.exists() and read_key(None, make=True) == b""
    before = os.umask(0)
    try:
        key = read_key(folder, make=True)
        PinRecord(folder).add(7, pin_for(JOB, ("n1",), NOW))
    finally:
        os.umask(before)
    assert len(key) == 32 and read_key(folder, make=True) == read_key(folder, make=False) == key
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert modes == {"slurm": 0o700, "mark.key": 0o600, "pins": 0o700, "7": 0o600}
    (folder / "mark.key").chmod(0o640)
    with pytest.raises(ConfigError, match="others can read"):
        read_key(folder, make=True)
    (folder / "mark.key").chmod(0o600)
    (folder / "mark.key").write_bytes(b"short")
    with pytest.raises(ConfigError, match="no key"):
        read_key(folder, make=True)


@pytest.mark.parametrize("deleted", ["pins", "", ".."])
@pytest.mark.parametrize("next_step", ["reads the queue", "pins another job"])
def test_a_state_directory_that_is_deleted_under_a_daemon_is_written_again(
    tmp_path: Path, deleted: str, next_step: str
) -> None:
    folder = tmp_path / "state" / "slurm"
    key = read_key(folder, make=True)
    record = PinRecord(folder, key=key)
    record.found_again()
    pin, other = pin_for(JOB, ("n1",), NOW), pin_for(JOB, ("n2",), NOW)
    record.refresh()
    record.add(7, pin)
    shutil.rmtree((folder / deleted).resolve())
    record.refresh() if next_step == "reads the queue" else record.add(8, other)
    after = PinRecord(folder, read_only=True)
    assert not after.lost and after.get(7) == record.get(7) == pin and read_key(folder, make=False) == key
    assert after.get(8) == (other if next_step == "pins another job" else None)
    PinRecord(folder).drop(7)  # as the reaper does
    record.refresh()
    assert record.get(7) is None


def test_a_dry_run_changes_no_file(tmp_path: Path) -> None:
    record = PinRecord(tmp_path, read_only=True)
    record.add(7, pin_for(JOB, ("n1",), NOW))
    record.retain(())
    record.found_again()
    record.refresh()
    assert [*tmp_path.iterdir()] == []


def test_a_pin_that_cannot_be_recorded_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pins").write_text("a file")
    with pytest.raises(AdapterError, match="not set"):
        PinRecord(tmp_path).add(7, pin_for(JOB, ("n1",), NOW))


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.RUNNING])
def test_after_a_start_marks_show_the_pins_that_the_record_lacks(state: JobState, tmp_path: Path) -> None:
    """Such as after a power failure; also of a job that runs, because it may be requeued when its node fails."""
    first = ours(tmp_path)
    job = pinned(first)
    pinned(first, replace(JOB, id=8))
    (tmp_path / "pins" / "7").unlink()
    again = ours(tmp_path)
    again.recognise(replace(job, state=state), lambda: NOW)
    again.retain({7, 8})
    assert again.recognise(replace(job, restarts=1), lambda: NOW + 60).pinned == NOW
    assert PinRecord(tmp_path).get(7) is not None


def test_a_damaged_record_of_a_pin_leaves_the_others_and_the_mark(tmp_path: Path) -> None:
    changes = ours(tmp_path)
    job = pinned(changes)
    pinned(changes, replace(JOB, id=8))
    (tmp_path / "pins" / "7").write_text("{")
    (tmp_path / "pins" / "note").write_text("not ours")
    again = ours(tmp_path)
    assert again.record.damaged == {7} and again.record.get(8) is not None
    assert again.recognise(job, lambda: NOW).pinned == NOW
    assert ours(tmp_path).record.damaged == frozenset(), "it was recorded again"
