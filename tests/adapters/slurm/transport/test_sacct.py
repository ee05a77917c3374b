"""Parsing of sacct: the last record counts, and no text of a user passes for a field."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError, ParseError
from pilotfish.adapters.slurm.accounting_lookup import ended_jobs
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.submission import LONGEST_NAME, name_for
from pilotfish.adapters.slurm.transport import sacct
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.simulate.model.snapshot import JobState, JobView

MARK = "@00ff@"
#: Output of Slurm 22.05, in the order of sacct.FIELDS.
PRINTED = {
    "JobIDRaw": "2", "DBIndex": "1", "State": "FAILED", "ExitCode": "3:0", "UID": "5", "Account": "research",
    "QOS": "normal", "Partition": "main", "NNodes": "1", "Submit": "2026-11-21T06:53:34",
    "Start": "2026-11-21T06:53:34", "End": "2026-11-21T06:53:36", "NodeList": "n1", "JobName": "Flow-1/Align%20x",
    "Comment": "pilotfish:key=Flow-1/Align%20x",
}  # fmt: skip
SUBMIT = 1795244014.0


def printed(**changed: str) -> str:
    """Return one record."""
    return "".join(f"{value}{MARK}" for value in (PRINTED | changed).values()) + "\n"


def parse(text: str, mark: str) -> list[SlurmJob]:
    return sacct.jobs(sacct.table().parse(text, mark))


class Recorded:
    """A Slurm whose accounting is a text; `asked` are the commands."""

    def __init__(self, text: str = "", problem: AdapterError | None = None) -> None:
        self.text, self.problem, self.asked = text, problem, list[Sequence[str]]()
        self.transport = CommandTransport(self)

    def __call__(self, argv: Sequence[str]) -> str:
        self.asked.append(argv)
        if self.problem:
            raise self.problem
        (mark,) = [word.partition("=")[2] for word in argv if word.startswith("--delimiter=")]
        return self.text.replace(MARK, mark)

    def ended_jobs(self, **since: float) -> dict[str, JobView] | None:
        return ended_jobs(self.transport, {key.replace("__", "/"): time for key, time in since.items()}, 5, {})


def test_the_recorded_row_has_every_field() -> None:
    assert tuple(PRINTED) == sacct.FIELDS


def test_a_job_that_failed() -> None:
    (job,) = parse(printed(), MARK)
    assert (job.id, job.state, job.exit_code, job.signal, job.uid) == (2, JobState.FAILED, 3, None, 5)
    assert (job.submit, job.start, job.end, job.placed) == (SUBMIT, SUBMIT, SUBMIT + 2, ("n1",))
    assert (job.name, job.reason) == ("Flow-1/Align%20x", "")


@pytest.mark.parametrize(
    ("changed", "field", "value"),
    [
        ({"State": "CANCELLED by 1000", "ExitCode": "0:0"}, "state", JobState.CANCELLED),
        ({"State": "CANCELLED by 1000"}, "reason", ""),
        ({"State": "CANCELLED", "Start": "None", "NodeList": "None assigned"}, "start", None),
        ({"State": "CANCELLED", "Start": "None", "NodeList": "None assigned"}, "placed", ()),
        ({"State": "TIMEOUT", "ExitCode": "0:0"}, "state", JobState.TIMEOUT),
        ({"State": "FAILED", "ExitCode": "0:9"}, "signal", 9),
        ({"State": "OUT_OF_MEMORY", "ExitCode": "0:125"}, "reason", "OUT_OF_MEMORY"),
        ({"State": "NODE_FAIL", "ExitCode": "1:0"}, "state", JobState.FAILED),
        ({"State": "RUNNING", "End": "Unknown"}, "end", None),
        ({"State": "REQUEUED"}, "state", JobState.PENDING),
        ({"State": "RESIZING"}, "state", JobState.RUNNING),
        ({"State": "BRAND_NEW"}, "state", JobState.UNKNOWN),
        ({"NodeList": "n[1-2]", "NNodes": "2"}, "placed", ("n1", "n2")),
    ],
)
def test_one_field(changed: dict[str, str], field: str, value: object) -> None:
    (job,) = parse(printed(**changed), MARK)
    assert getattr(job, field) == value


@pytest.mark.parametrize(
    "records",
    [
        # requeued: each run has a record, printed in any order
        [{"State": "NODE_FAIL", "DBIndex": "1"}, {"Submit": "2026-11-21T07:00:00", "DBIndex": "9"}],
        [{"Submit": "2026-11-21T07:00:00", "DBIndex": "9"}, {"State": "PREEMPTED", "DBIndex": "1"}],
        # within one second
        [{"State": "REQUEUED", "DBIndex": "4"}, {"DBIndex": "5"}],
        [{"DBIndex": "5"}, {"State": "REQUEUED", "DBIndex": "4"}],
        # ids started again: the same number, another job
        [{"State": "COMPLETED", "Submit": "2025-01-01T00:00:00", "DBIndex": "3"}, {"DBIndex": "7"}],
    ],
)
def test_of_several_records_the_last_counts(records: list[dict[str, str]]) -> None:
    (job,) = parse("".join(printed(**record) for record in records), MARK)
    assert (job.state, job.exit_code) == (JobState.FAILED, 3)


@pytest.mark.parametrize(
    "changed",
    [{"JobIDRaw": "2.batch"}, {"ExitCode": ""}, {"ExitCode": "3"}, {"Submit": "yesterday"}, {"NodeList": "n[1-"},
     {"UID": ""}, {"DBIndex": "x"}],
)  # fmt: skip
def test_an_unreadable_record_is_left_out_and_hides_no_other(changed: dict[str, str]) -> None:
    assert [job.id for job in parse(printed(**changed) + printed(JobIDRaw="3"), MARK)] == [3]
    requeued = {"Submit": "2026-11-22T07:00:00", "DBIndex": "9"}
    assert parse(printed(**requeued) + printed(**changed), MARK)[1:] == [], "an unreadable record may be the last one"


@given(st.text(), st.text())
def test_names_and_comments_cannot_pass_for_fields(name: str, comment: str) -> None:
    if MARK in name + comment:
        return
    records = parse(printed(JobName=name, Comment=comment) + printed(JobIDRaw="3"), MARK)
    assert [(job.id, job.state) for job in records] == [(2, JobState.FAILED), (3, JobState.FAILED)]


@pytest.mark.parametrize("forged", ["x|2|COMPLETED|0:0|5|", "a\n2|1|COMPLETED|0:0", "@00fe@2@00fe@", "", "a\0"])
def test_a_name_with_delimiters_and_newlines(forged: str) -> None:
    (job,) = parse(printed(JobName=forged), MARK)
    assert job.state is JobState.FAILED


@given(st.integers(1, len(printed()) - 2))
def test_a_table_that_was_cut_off_is_an_error(cut: int) -> None:
    with pytest.raises(ParseError):
        parse((printed() + printed(JobIDRaw="3"))[: len(printed()) + cut], MARK)


def test_the_commands() -> None:
    slurm = Recorded()
    slurm.transport.ended(sacct.of_ids([3, 9]))
    slurm.transport.ended(sacct.of_names(["a/b", "a/c"], 5, SUBMIT))
    by_ids, argv = slurm.asked
    assert {"--allusers", "--jobs=3,9", "--allocations", "--duplicates"} <= set(by_ids)
    assert {"--uid=5", "--name=a/b,a/c", "--starttime=2026-11-21T06:53:34"} <= set(argv)
    assert "--starttime=1970-01-01T00:00:00" in sacct.of_names(["a"], 5, -60.0)


@given(st.text(min_size=1, max_size=400))
def test_names_have_no_commas_and_fit(key: str) -> None:
    name = name_for(key)
    assert len(name.encode()) <= max(LONGEST_NAME, 255) and not set(name) & set(", \n'\"") and name == name.strip()


def test_users_jobs_are_found_by_id_and_ours_by_name() -> None:
    slurm = Recorded(printed() + printed(JobIDRaw="7", JobName="x"))
    records = slurm.ended_jobs(slurm__7=SUBMIT, slurm__8=SUBMIT)
    assert records is not None and set(records) == {"slurm/7"} and records["slurm/7"].exit_code == 3
    assert len(slurm.asked) == 1
    name = "Flow-1/Align x"
    records = ended_jobs(slurm.transport, {name: SUBMIT, "slurm/7": 0.0}, 5, {})
    assert records is not None and set(records) == {name, "slurm/7"} and len(slurm.asked) == 3


def test_our_jobs_are_found_without_a_comment() -> None:
    """Accounting has it at the end of a job only, and only with AccountingStoreFlags=job_comment."""
    records = ended_jobs(Recorded(printed(Comment="")).transport, {"Flow-1/Align x": SUBMIT}, 5, {})
    assert records is not None and records["Flow-1/Align x"].exit_code == 3


@pytest.mark.parametrize(
    "changed",
    [{"UID": "6"}, {"JobName": "flow-1/align%20x"}, {"Submit": "2026-11-20T06:53:34"}, {"JobName": "other"}],
)
def test_a_namesake_is_not_ours(changed: dict[str, str]) -> None:
    """Of another account, in other letters, or from before we decided to submit the job."""
    slurm = Recorded(printed(**changed))
    assert ended_jobs(slurm.transport, {"Flow-1/Align x": SUBMIT}, 5, {}) == {}


def test_of_two_under_one_name_the_last_counts() -> None:
    slurm = Recorded(printed(State="COMPLETED", JobIDRaw="9", Submit="2026-11-21T06:54:00") + printed())
    records = ended_jobs(slurm.transport, {"Flow-1/Align x": SUBMIT}, 5, {})
    assert records is not None and records["Flow-1/Align x"].state is JobState.COMPLETED


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "SUSPENDED", "BRAND_NEW"])
def test_a_job_that_has_not_ended_is_unknown(state: str) -> None:
    records = Recorded(printed(State=state, End="Unknown")).ended_jobs(slurm__2=0.0)
    assert records is not None and records["slurm/2"].state is JobState.UNKNOWN
    assert "accounting has it as" in records["slurm/2"].reason


def test_missing_accounting_differs_from_accounting_that_is_down() -> None:
    disabled = AdapterError("x", kind="refused", exit_code=1, stderr_tail="Slurm accounting storage is disabled\n")
    assert Recorded(problem=disabled).ended_jobs(slurm__2=0.0) is None
    assert Recorded(problem=disabled).ended_jobs(a__b=0.0) is None
    away = AdapterError("x", transient=True, kind="unreachable", stderr_tail="Connection refused")
    with pytest.raises(AdapterError) as caught:
        Recorded(problem=away).ended_jobs(slurm__2=0.0)
    assert caught.value.transient
    with pytest.raises(ParseError):
        Recorded(printed()[:-30]).ended_jobs(slurm__2=0.0)


class Foreign(CommandTransport):
    """An accounting that shows jobs that were not requested."""

    def ended(self, which: Sequence[str]) -> list[SlurmJob]:
        return [SlurmJob(99, JobState.COMPLETED, submit=SUBMIT)]


def test_jobs_that_were_not_requested_are_omitted() -> None:
    assert ended_jobs(Foreign(Recorded()), {"slurm/2": 0.0}, 5, {}) == {}
