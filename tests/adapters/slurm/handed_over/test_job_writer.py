"""A placement beside a Slurm that starts jobs, users who move begin times, and answers that are late or lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.handed_over.job_update import OurChanges
from pilotfish.adapters.slurm.handed_over.job_writer import MOVED, JobWriter
from pilotfish.adapters.slurm.handed_over.ownership import (
    ENOUGH_S,
    HOLD_BACK_S,
    Ownership,
    SlurmSelection,
    hold_end,
    ownership_of,
)
from pilotfish.adapters.slurm.handed_over.pin_record import Pin, PinRecord
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.simulate.model.snapshot import JobState

TIMEOUT_S, MAX_DEFER_S, LATER_S = 15.0, 600.0, 3600.0
BEGUN = AdapterError("scontrol: too late", kind="refused", stderr_tail="Job is no longer pending execution for job 7")
LOST = AdapterError("scontrol did not answer within 15 s", transient=True, kind="timeout")
FREE = SlurmJob(7, JobState.PENDING, "Resources", uid=5, submit=0.0, begin=0.0, priority=1, comment="pilotfish")
#: What happens at a request: seconds until Slurm carries it out, and whether the user moves the begin time before.
MOMENTS = st.tuples(st.floats(0.0, ENOUGH_S - 0.5), st.integers(0, 9))


class Slurm(CommandTransport):
    """One job, which begins as soon as it may and `room` says so; nodes of a job that has begun are changed."""

    def __init__(self, job: SlurmJob, moments: list[tuple[float, int]]) -> None:
        super().__init__(lambda argv: "")
        self.job, self.moments, self.at, self.room = job, moments, 1.0, 0.0
        self.under_way: list[tuple[float, dict[str, str], float]] = []
        self.read_at, self.moved_at, self.resized, self.overruled = 0.0, -1.0, False, False
        self.latest, self.written, self.doubts = 0.0, list[dict[str, str]](), list[int]()

    def pass_time(self, seconds: float) -> None:
        """Let time pass: the job begins when it may, and what is under way is carried out."""
        until = self.at + seconds
        while True:
            begins = max(self.job.begin or 0.0, self.room, self.at)
            due, fields, read_at = min(self.under_way, key=lambda each: each[0], default=(until + 1.0, {}, 0.0))
            if self.job.state is JobState.PENDING and begins <= min(due, until):
                self.at, self.job = begins, replace(self.job, state=JobState.RUNNING, placed=("n1", "n2"))
            elif due <= until:
                self.at = max(self.at, due)
                self.under_way.remove((due, fields, read_at))
                self._carry_out(fields, read_at)
            else:
                self.at = until
                return

    def _carry_out(self, fields: Mapping[str, str], read_at: float) -> bool:
        """Do what was asked by one who last read the job at `read_at`; return False if it has begun."""
        if self.job.state is not JobState.PENDING:
            self.resized |= "ReqNodeList" in fields
            return False
        start = fields.get("StartTime", "")
        if start:
            self.overruled |= 0.0 <= self.moved_at < read_at
            self.moved_at = -1.0
            begin = self.at if start == "now" else float(start.removeprefix("uts"))
            self.latest = max(self.latest, begin)
            self.job = replace(self.job, begin=begin)
        if "ReqNodeList" in fields:
            self.job = replace(self.job, wanted=tuple(filter(None, fields["ReqNodeList"].split(","))))
        self.job = replace(self.job, comment=fields.get("Comment", self.job.comment))
        return True

    def _next(self) -> float:
        delay, moves = self.moments.pop() if self.moments else (0.0, 9)
        if moves == 0 and self.job.state is JobState.PENDING:
            self.job, self.moved_at = replace(self.job, begin=self.at + LATER_S), self.at
        return delay

    def jobs(self, ids: Collection[int] = ()) -> list[SlurmJob]:
        delay = self._next()
        self.read_at = self.at
        job = self.job
        self.pass_time(min(delay, TIMEOUT_S))
        if delay > TIMEOUT_S:
            raise LOST
        return [job]

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        self.written.append(dict(fields))
        delay = self._next()
        if delay > TIMEOUT_S:
            self.under_way.append((self.at + delay, dict(fields), self.read_at))
            self.pass_time(TIMEOUT_S)
            raise LOST
        read_at = self.read_at
        self.pass_time(delay)
        if not self._carry_out(fields, read_at):
            raise BEGUN

    def time(self) -> float:
        return self.at


def writer_for(slurm: Slurm, folder: Path | None = None) -> JobWriter:
    changes = OurChanges(PinRecord(folder))
    return JobWriter(slurm, changes, slurm.time, slurm.time, MAX_DEFER_S, slurm.doubts.append)


def attempt(slurm: Slurm, writer: JobWriter) -> None:
    """What the daemon does in a cycle: read, judge, place."""
    try:
        job = writer.read(7)
        if job.pinned is None and ownership_of(job, SlurmSelection(), slurm.at)[0] in (Ownership.FREE, Ownership.HELD):
            writer.place(job, ("n1",))
    except AdapterError:
        pass


@given(
    st.sampled_from([0.0, 3.0, 8.0, 25.0, 300.0]),
    st.lists(MOMENTS, max_size=30),
    st.lists(st.floats(0.0, 60.0), min_size=1, max_size=6),
    st.floats(0.0, 200.0),
)
def test_no_job_that_has_begun_is_resized_and_no_users_begin_time_is_overruled(
    hold: float, moments: list[tuple[float, int]], pauses: list[float], room: float
) -> None:
    """With answers as late as a command's time limit allows, and requests that are carried out after it."""
    comment = f"pilotfish:hold={hold:.0f}" if hold else "pilotfish"
    slurm = Slurm(replace(FREE, begin=hold, comment=comment), moments)
    slurm.room = room
    writer = writer_for(slurm)
    for pause in pauses:
        attempt(slurm, writer)
        slurm.pass_time(pause)
    assert not slurm.resized and not slurm.overruled and slurm.latest <= MAX_DEFER_S
    slurm.pass_time(max(room, HOLD_BACK_S, hold if slurm.moved_at < 0 else LATER_S))
    assert slurm.job.state is JobState.RUNNING, "it fails open"


def test_a_free_job_is_held_back_before_it_is_bound_and_a_held_one_is_not() -> None:
    slurm = Slurm(FREE, [])
    slurm.room = 10.0
    writer = writer_for(slurm)
    pin = writer.place(writer.read(7), ("n1",))
    assert pin is not None and [sorted(fields) for fields in slurm.written] == [
        ["StartTime"],
        ["ReqNodeList", "StartTime"],
    ]
    assert slurm.written[0]["StartTime"] == f"uts{slurm.at + HOLD_BACK_S:.0f}"
    slurm = Slurm(replace(FREE, begin=300.0, comment="pilotfish:hold=300"), [])
    writer = writer_for(slurm)
    assert writer.place(writer.read(7), ("n1",)) is not None and len(slurm.written) == 1


def test_a_job_that_began_is_not_written_to() -> None:
    slurm = Slurm(FREE, [])
    slurm.room = 5.0
    writer = writer_for(slurm)
    judged = writer.read(7)
    slurm.pass_time(10.0)
    assert writer.place(judged, ("n1",)) is None and not slurm.written
    slurm = Slurm(FREE, [(6.0, 9), (0.0, 9)])  # while the first command was under way
    slurm.room = 5.0
    assert writer_for(slurm).place(judged, ("n1",)) is None
    assert [sorted(fields) for fields in slurm.written] == [["StartTime"]] and not slurm.resized


def test_after_a_lost_answer_nothing_is_written_until_it_is_settled() -> None:
    slurm = Slurm(FREE, [(18.0, 9), (0.0, 9)])
    slurm.room = 500.0
    writer = writer_for(slurm)
    with pytest.raises(AdapterError, match="did not answer"):
        writer.place(FREE, ("n1",))
    job = writer.read(7)
    ownership, why = ownership_of(job, SlurmSelection(), slurm.at)
    assert job.unsettled and ownership is Ownership.WAITING and "does not know yet" in why and len(slurm.written) == 1
    slurm.pass_time(2 * HOLD_BACK_S)
    assert ownership_of(writer.read(7), SlurmSelection(), slurm.at)[0] is Ownership.FREE


class Killed(BaseException):
    """The daemon is killed here."""


@pytest.mark.parametrize(("comment", "begin", "held_until"), [("pilotfish", 0.0, 0.0), ("pilotfish:hold=9", 9.0, 9.0)])
def test_the_next_daemon_goes_on_with_a_job_that_the_one_before_held_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comment: str, begin: float, held_until: float
) -> None:
    slurm = Slurm(replace(FREE, comment=comment, begin=begin), [])
    slurm.room = 500.0
    first = writer_for(slurm, tmp_path)
    judged = first.read(7)

    def die(job: SlurmJob) -> SlurmJob:
        if slurm.written:
            raise Killed
        return judged

    monkeypatch.setattr(first, "read_again", die)
    with pytest.raises(Killed):
        first.place(judged, ("n1",))
    assert [sorted(fields) for fields in slurm.written] == [["StartTime"]]
    slurm.pass_time(3.0)
    following = writer_for(slurm, tmp_path)
    job = following.read(7)
    assert job.paused and ownership_of(job, SlurmSelection(), slurm.at) == (Ownership.HELD, "")
    assert hold_end(job) == held_until
    at_once = replace(slurm.job)
    assert following.place(job, ("n1",)) is not None and len(slurm.written) == 2, "it is bound at once"
    slurm.job, slurm.written = at_once, []
    following = writer_for(slurm, tmp_path)
    following.changes.record.add(7, Pin(5, (), int(at_once.begin)))
    following.end_pause(following.read(7))
    assert slurm.written == [{"StartTime": "now"}] and not following.read(7).paused
    slurm.job = replace(slurm.job, begin=LATER_S)
    assert not following.read(7).paused, "that is a begin time of its user's"


def test_a_begin_time_that_was_moved_is_the_users() -> None:
    """Before the first command, and between the two."""
    for moments, write_count in (([(0.0, 0)], 0), ([(0.0, 0), (0.0, 9), (0.0, 9)], 1)):
        slurm = Slurm(FREE, moments)
        slurm.room = 500.0
        writer = writer_for(slurm)
        with pytest.raises(AdapterError, match="begin time was moved") as error:
            writer.place(FREE, ("n1",))
        assert (error.value.kind, len(slurm.written), slurm.job.begin) == (MOVED, write_count, slurm.moved_at + LATER_S)
        assert ownership_of(writer.read(7), SlurmSelection(), slurm.at)[1] == "its user wants it to begin later"


@pytest.mark.parametrize("left", [0.0, ENOUGH_S, HOLD_BACK_S - 1.0])
def test_nothing_is_held_back_beyond_the_longest_time(left: float) -> None:
    slurm = Slurm(FREE, [])
    slurm.room = slurm.at = MAX_DEFER_S - left
    with pytest.raises(AdapterError, match="may not be held back"):
        writer_for(slurm).place(FREE, ("n1",))
    assert not slurm.written


@pytest.mark.parametrize("deadline, written", [(60.0 + HOLD_BACK_S, 0), (62.0 + HOLD_BACK_S, 2)])
def test_no_job_is_held_back_so_long_that_it_misses_its_deadline(deadline: float, written: int) -> None:
    """Slurm 22.05 cancels a job that cannot end in time, by its time limit, as soon as it may begin."""
    slurm = Slurm(replace(FREE, time_limit=60.0, deadline=deadline), [])
    slurm.room = 5.0
    writer = writer_for(slurm)
    with suppress(AdapterError):
        writer.place(slurm.job, ("n1",))
    assert len(slurm.written) == written


@pytest.mark.parametrize("begin", [0.0, 30.0])
def test_what_takes_long_before_a_job_is_bound_leaves_it_to_slurm(begin: float) -> None:
    """Whatever takes long: here the disk that the pin is recorded on."""
    slurm = Slurm(replace(FREE, begin=begin, comment="pilotfish:hold=30"), [])
    slurm.room = 5.0
    writer = writer_for(slurm)
    add = writer.changes.record.add

    def slowly(job: int, pin: Pin) -> None:
        add(job, pin)
        slurm.pass_time(12.0 if pin.nodes else 0.0)

    writer.changes.record.add = slowly
    with pytest.raises(AdapterError, match="bound too late"):
        writer.place(slurm.job, ("n1",))
    slurm.pass_time(60.0)
    assert slurm.job.state is JobState.RUNNING and not any("ReqNodeList" in fields for fields in slurm.written)


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (AdapterError("scontrol: exit code -9", kind="refused", exit_code=-9), True),
        (AdapterError("scontrol: something else", kind="refused", exit_code=1), True),
        (LOST, True),
        (AdapterError("update: the controller is left alone", transient=True, kind="open"), False),
        (AdapterError("scontrol: Invalid user id", kind="refused", stderr_tail="Invalid user id"), False),
    ],
)
def test_a_pin_is_known_unless_it_was_surely_not_set(error: AdapterError, known: bool) -> None:
    """A command that failed, or was killed, may have done its work."""

    class Failing(Slurm):
        def update(self, job: int, fields: Mapping[str, str]) -> None:
            if known:
                super().update(job, fields)
            raise error

    slurm = Failing(replace(FREE, begin=300.0, comment="pilotfish:hold=300"), [])
    slurm.room = 500.0
    writer = writer_for(slurm)
    with pytest.raises(AdapterError):
        writer.place(slurm.job, ("n1",))
    parsed = writer.read(7)
    assert (parsed.pinned is not None, parsed.unsettled) == (known, False)
    assert (slurm.doubts == [7]) is known, "whether it was resized is looked up"
