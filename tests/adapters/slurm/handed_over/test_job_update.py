"""Our changes of jobs: no comment is written, and the record of pins alone says which are ours."""

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
from pilotfish.adapters.slurm.handed_over.first_begins import FirstBegins
from pilotfish.adapters.slurm.handed_over.job_update import (
    ALLOWED,
    BEGUN_WITH_NODES,
    GONE_S,
    LET_GO,
    OurChanges,
    came_too_late,
    command,
    pin_fields,
    pin_for,
    with_our_pins,
)
from pilotfish.adapters.slurm.handed_over.ownership import is_held
from pilotfish.adapters.slurm.handed_over.pin_record import PinRecord
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.simulate.errors import InvariantError
from pilotfish.simulate.model.snapshot import JobState

NOW = 1_000_000.0
JOB = SlurmJob(
    7, JobState.PENDING, "BeginTime", uid=5, partition="shared", submit=NOW - 10, begin=NOW + 50, priority=1,
    comment="pilotfish:hold=60",
)  # fmt: skip
#: Any bytes that a comment may have, as they are read.
TEXTS = st.binary(max_size=300).map(lambda raw: os.fsdecode(raw.replace(b"\0", b"")))


def ours(folder: Path | None = None, clock: Callable[[], float] = lambda: 0.0) -> OurChanges:
    return OurChanges(PinRecord(folder), FirstBegins(folder), clock)


def changed(job: SlurmJob, fields: dict[str, str]) -> SlurmJob:
    """Return a job as Slurm shows it after an update."""
    nodes = job.wanted
    if "ReqNodeList" in fields:
        nodes = (fields["ReqNodeList"],) if fields["ReqNodeList"] else ()
    return replace(job, wanted=nodes, pinned=None, comment=fields.get("Comment", job.comment))


def pinned(changes: OurChanges, job: SlurmJob = JOB, now: float = NOW) -> SlurmJob:
    pin = pin_for(job, ("n1",), now)
    changes.record.add(job.id, pin)
    return changed(job, pin_fields(pin))


@given(TEXTS)
def test_a_pin_and_its_end_write_no_comment(text: str) -> None:
    changes = ours()
    placed = pinned(changes, replace(JOB, comment=text))
    undone = changes.unpin(changes.recognise(placed, lambda: NOW))
    assert (placed.comment, placed.wanted, undone) == (text, ("n1",), {"ReqNodeList": ""})


def test_a_pin_is_known_by_its_record_whatever_the_comment_says(tmp_path: Path) -> None:
    first = ours(tmp_path)
    first.retain({})
    job = pinned(first)
    for comment in ("", "mine", "pilotfish:pin=9:AAAAAAAAAAAAAAAA", job.comment[:-1], job.comment):
        recognised = ours(tmp_path).recognise(replace(job, comment=comment), lambda: NOW + 60)
        assert recognised.pinned == NOW
        assert ours(tmp_path).unpin(recognised)["ReqNodeList"] == ""
    moved_job = replace(job, wanted=("n2",))
    assert first.recognise(moved_job, lambda: NOW).pinned is None, "the user has asked for another node since"
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


@given(TEXTS)
def test_no_text_of_a_user_makes_a_pin(text: str) -> None:
    changes = ours()
    job = replace(JOB, comment=text, wanted=("n1",))
    recognised = changes.recognise(job, lambda: NOW)
    assert (recognised.pinned, recognised.let_go) == (None, False) and changes.unpin(recognised) == {}


def test_a_job_on_nodes_of_its_users_choice_keeps_them() -> None:
    changes = ours()
    job = replace(JOB, wanted=("n1",))
    assert pin_fields(pin_for(job, ("n1",), NOW)) == {"StartTime": "now"}
    changes.record.add(7, pin_for(job, ("n1",), NOW))
    assert changes.unpin(changes.recognise(job, lambda: NOW)) == {}


def test_a_begin_time_that_was_moved_within_the_tolerance_is_the_users_too() -> None:
    now = [0.0]
    changes = ours(clock=lambda: now[0])
    hand_over = replace(JOB, comment="pilotfish:hold=600", submit=NOW, begin=NOW + 600)
    assert not changes.recognise(hand_over, lambda: NOW).moved
    moved = changes.recognise(replace(hand_over, begin=NOW + 598), lambda: NOW)
    assert moved.moved and not is_held(moved, NOW)
    assert not changes.recognise(replace(hand_over, begin=NOW + 600), lambda: NOW).moved  # moved back
    now[0] += GONE_S
    changes.retain(())
    assert not changes.recognise(replace(hand_over, begin=NOW + 598), lambda: NOW).moved


def test_a_node_list_that_cannot_be_cleared_came_too_late() -> None:
    error = AdapterError("refused", stderr_tail=f"{BEGUN_WITH_NODES} for job 7")
    assert came_too_late(error, {"ReqNodeList": ""}) and not came_too_late(error, {"ReqNodeList": "n1"})


def test_a_job_that_was_let_go_stays_so_for_the_next_daemon_too(tmp_path: Path) -> None:
    changes = ours(tmp_path)
    assert not changes.recognise(JOB, lambda: NOW).let_go
    changes.note_let_go(JOB)
    assert changes.recognise(replace(JOB, begin=NOW), lambda: NOW).let_go and LET_GO == {"StartTime": "now"}
    changes.retain({7})
    assert ours(tmp_path).recognise(replace(JOB, begin=NOW, comment="mine"), lambda: NOW).let_go
    assert not ours(tmp_path).recognise(replace(JOB, submit=NOW - 5), lambda: NOW).let_go, "its id was given to another"


def test_updates_are_one_command_with_allowed_fields() -> None:
    fields = pin_fields(pin_for(JOB, ("n1", "n2"), NOW))
    assert command(7, fields) == ["scontrol", "update", "JobId=7", "ReqNodeList=n[1-2]", "StartTime=now"]
    assert {"ReqNodeList", "StartTime", "TimeMin"} == ALLOWED
    assert command(7, {"ReqNodeList": ""})[3] == "ReqNodeList="  # an empty list clears it
    for foreign in ("Priority", "Comment"):
        with pytest.raises(InvariantError, match=foreign):
            command(7, {foreign: "9"})


def test_the_record_is_its_owners_only(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "slurm"
    before = os.umask(0)
    try:
        PinRecord(folder).add(7, pin_for(JOB, ("n1",), NOW))
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert modes == {"slurm": 0o700, "pins": 0o700, "7": 0o600}


@pytest.mark.parametrize("deleted", ["pins", "", ".."])
@pytest.mark.parametrize("next_step", ["reads the queue", "pins another job"])
def test_a_state_directory_that_is_deleted_under_a_daemon_is_written_again(
    tmp_path: Path, deleted: str, next_step: str
) -> None:
    folder = tmp_path / "state" / "slurm"
    record = PinRecord(folder)
    pin, second_pin = pin_for(JOB, ("n1",), NOW), pin_for(JOB, ("n2",), NOW)
    record.refresh()
    record.add(7, pin)
    shutil.rmtree((folder / deleted).resolve())
    record.refresh() if next_step == "reads the queue" else record.add(8, second_pin)
    after = PinRecord(folder, read_only=True)
    assert after.get(7) == record.get(7) == pin
    assert after.get(8) == (second_pin if next_step == "pins another job" else None)
    PinRecord(folder).drop(7)  # as the reaper does
    record.refresh()
    assert record.get(7) is None


def test_a_dry_run_changes_no_file(tmp_path: Path) -> None:
    record = PinRecord(tmp_path, read_only=True)
    record.add(7, pin_for(JOB, ("n1",), NOW))
    record.retain(())
    record.refresh()
    assert [*tmp_path.iterdir()] == []


def test_a_pin_that_cannot_be_recorded_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pins").write_text("a file")
    with pytest.raises(AdapterError, match="not set"):
        PinRecord(tmp_path).add(7, pin_for(JOB, ("n1",), NOW))


def test_a_record_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    assert with_our_pins([], tmp_path, 0.0) == ([], ""), "there is none yet"
    (tmp_path / "pins").touch()
    assert with_our_pins([], tmp_path, 0.0)[1] == f"{tmp_path / 'pins'}: Not a directory"


def test_a_damaged_record_of_a_pin_leaves_the_others(tmp_path: Path) -> None:
    changes = ours(tmp_path)
    job = pinned(changes)
    pinned(changes, replace(JOB, id=8))
    (tmp_path / "pins" / "7").write_text("{")
    (tmp_path / "pins" / "note").write_text("not ours")
    reopened = ours(tmp_path)
    assert reopened.record.damaged == {7} and reopened.record.get(8) is not None
    assert reopened.recognise(job, lambda: NOW).pinned is None
    pinned(reopened)
    assert ours(tmp_path).record.damaged == frozenset(), "it was recorded again"
