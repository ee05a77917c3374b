"""Parsing of usage in sacct: steps belong to the job before them, and the last record counts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError, ParseError
from pilotfish.adapters.slurm.accounting_lookup import ended_usage
from pilotfish.adapters.slurm.transport import sacct
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.simulate.model.accounting_record import AccountingRecord

MARK = "@00ff@"
#: Output of Slurm 22.05, in the order of FIELDS: a job, its batch script, and a step of two tasks.
JOB = {
    "JobIDRaw": "3", "DBIndex": "2", "State": "COMPLETED", "UID": "5", "JobName": "wrap",
    "Submit": "2026-11-22T05:15:08", "Start": "2026-11-22T05:15:08", "End": "2026-11-22T05:15:12", "ElapsedRaw": "4",
    "TotalCPU": "00:01.121", "AllocCPUS": "2", "NNodes": "1", "NTasks": "", "MaxRSS": "", "AveRSS": "",
    "ConsumedEnergyRaw": "0", "NodeList": "n1",
}  # fmt: skip
BATCH = JOB | {"JobIDRaw": "3.batch", "UID": "", "JobName": "batch", "TotalCPU": "00:00.011", "NTasks": "1"}
STEP = JOB | {
    "JobIDRaw": "3.0", "UID": "", "JobName": "python3", "TotalCPU": "00:01.109", "NTasks": "2", "MaxRSS": "68657152",
    "AveRSS": "34328576",
}  # fmt: skip
SUBMIT = 1795324508.0


def printed(*rows: dict[str, str]) -> str:
    """Return rows as printed."""
    return "".join("".join(f"{value}{MARK}" for value in row.values()) + "\n" for row in rows)


def parse(text: str, mark: str) -> list[sacct.UsageEntry]:
    return sacct.usage(sacct.usage_table().parse(text, mark))


class Recorded:
    """A Slurm whose accounting is a text; `asked` are the commands."""

    def __init__(self, text: str = "", problem: AdapterError | None = None) -> None:
        self.text, self.problem, self.asked = text, problem, list[Sequence[str]]()

    def __call__(self, argv: Sequence[str]) -> str:
        self.asked.append(argv)
        if self.problem:
            raise self.problem
        (mark,) = [word.partition("=")[2] for word in argv if word.startswith("--delimiter=")]
        return self.text.replace(MARK, mark)

    def usage(self, *keys: str) -> dict[str, AccountingRecord] | None:
        return ended_usage(CommandTransport(self), dict.fromkeys(keys, SUBMIT), 5)


def test_the_recorded_row_has_every_field() -> None:
    assert tuple(JOB) == sacct.USAGE_FIELDS


def test_a_job_with_its_steps_is_one_entry() -> None:
    (entry,) = parse(printed(JOB, BATCH, STEP), MARK)
    assert (entry.id, entry.uid, entry.name, entry.submit) == (3, 5, "wrap", SUBMIT)
    assert entry.record == AccountingRecord(
        "wrap", True, "2026-11-22T05:15:08Z", 4.0, 1, 2, 1.121, 68657152.0, None, ("n1",)
    )


@pytest.mark.parametrize(
    ("changed", "field", "value"),
    [
        ({"TotalCPU": "00:00:00"}, "cpu_s", None),  # jobacct_gather/none
        ({"TotalCPU": "1-02:03:04"}, "cpu_s", 93784.0),
        ({"ConsumedEnergyRaw": "1200"}, "joules", 1200.0),
        ({"ConsumedEnergyRaw": ""}, "joules", None),
        ({"ConsumedEnergyRaw": "18446744073709551614"}, "joules", None),
        ({"State": "FAILED"}, "completed", False),
        ({"State": "CANCELLED by 5", "Start": "None", "NodeList": "None assigned"}, "placed", ()),
        ({"NodeList": "n[1-2]", "NNodes": "2"}, "placed", ("n1", "n2")),
        ({"NNodes": "2", "AllocCPUS": "8"}, "cores", 4),
    ],
)
def test_one_field(changed: dict[str, str], field: str, value: object) -> None:
    (entry,) = parse(printed(JOB | changed), MARK)
    assert getattr(entry.record, field) == value


@pytest.mark.parametrize(
    ("changed", "memory"),
    [
        ({"MaxRSS": "", "AveRSS": "", "NTasks": "4"}, None),
        ({"MaxRSS": "100", "AveRSS": "90", "NTasks": "4"}, 360.0),
        ({"MaxRSS": "100", "AveRSS": "90", "NTasks": "4", "NNodes": "2"}, 180.0),
        ({"MaxRSS": "1K", "AveRSS": "90", "NTasks": "4"}, 1024.0),
    ],
)
def test_memory_is_of_a_node(changed: dict[str, str], memory: float | None) -> None:
    (entry,) = parse(printed(JOB, STEP | changed), MARK)
    assert entry.record.memory_bytes == memory


def test_of_several_records_the_last_counts_with_its_own_steps() -> None:
    first = JOB | {"State": "REQUEUED", "End": "Unknown"}
    second = JOB | {"Submit": "2026-11-22T06:00:00", "DBIndex": "9", "TotalCPU": "00:07.000"}
    for text in (printed(first, STEP | {"MaxRSS": "9G"}, second), printed(second, first, STEP | {"MaxRSS": "9G"})):
        (entry,) = parse(text, MARK)
        assert (entry.record.cpu_s, entry.record.memory_bytes) == (7.0, None)


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "SUSPENDED", "BRAND_NEW", "REQUEUED"])
def test_what_has_not_ended_is_left_out(state: str) -> None:
    assert parse(printed(JOB | {"State": state, "End": "Unknown"}, STEP), MARK) == []
    assert parse(printed(JOB, JOB | {"DBIndex": "7", "State": state, "End": "Unknown"}), MARK) == []


@pytest.mark.parametrize(
    "changed",
    [{"JobIDRaw": "x"}, {"UID": ""}, {"Submit": "yesterday"}, {"TotalCPU": "long"}, {"ElapsedRaw": "-1"},
     {"DBIndex": ""}, {"MaxRSS": "2Q"}, {"NodeList": "n[1-"}, {"ConsumedEnergyRaw": "much"}, {"AllocCPUS": "two"}],
)  # fmt: skip
def test_an_unreadable_record_is_left_out_and_hides_no_other(changed: dict[str, str]) -> None:
    assert [entry.id for entry in parse(printed(JOB | changed, JOB | {"JobIDRaw": "77"}), MARK)] == [77]


@given(st.integers(1, len(printed(STEP)) - 2))
def test_a_table_that_was_cut_off_is_an_error(cut: int) -> None:
    text = printed(JOB) + printed(STEP)[:cut]
    with pytest.raises(ParseError):
        parse(text, MARK)


@given(st.text())
def test_names_cannot_pass_for_fields(name: str) -> None:
    if MARK in name:
        return
    entries = parse(printed(JOB | {"JobName": name}, JOB | {"JobIDRaw": "4"}), MARK)
    assert [(entry.id, entry.record.cpu_s) for entry in entries] == [(3, 1.121), (4, 1.121)]


def test_users_jobs_are_asked_for_by_id_and_ours_by_name_each_at_once() -> None:
    slurm = Recorded(printed(JOB | {"JobName": "Flow-1/a"}))
    assert set(slurm.usage("slurm/3", "slurm/4", "Flow-1/a", "Flow-1/b") or {}) == {"slurm/3", "Flow-1/a"}
    ids, names = slurm.asked
    assert {"--jobs=3,4", "--allusers", "--noconvert", "--duplicates"} <= set(ids) and "--allocations" not in ids
    assert {"--name=Flow-1/a,Flow-1/b", "--uid=5"} <= set(names)


def test_missing_accounting_differs_from_accounting_that_is_down() -> None:
    disabled = AdapterError("x", kind="refused", exit_code=1, stderr_tail="Slurm accounting storage is disabled\n")
    assert Recorded(problem=disabled).usage("slurm/3") is None
    away = AdapterError("x", transient=True, kind="unreachable", stderr_tail="Connection refused")
    with pytest.raises(AdapterError):
        Recorded(problem=away).usage("slurm/3")


def test_a_request_that_may_wait_has_a_limit_of_its_own() -> None:
    usual, spared = Recorded(), Recorded(printed(JOB))
    transport = CommandTransport(usual, run_usage=spared)
    assert len(transport.usage(["--jobs=3"])) == 1 and transport.ended(["--jobs=3"]) == []
    assert (len(spared.asked), len(usual.asked)) == (1, 1)
