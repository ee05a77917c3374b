"""The reaper: it takes back our overdue pins, row by row, by the record, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.handed_over import pin_record
from pilotfish.adapters.slurm.handed_over.overdue import FIELDS, LONGEST_LIST, Reaper
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.handed_over.pin_record import Pin, PinRecord
from pilotfish.adapters.slurm.transport import runner
from pilotfish.cli.__main__ import main

NOW = 1_795_245_609


def at(age: int) -> str:
    """Return a time so many seconds ago, as Slurm prints it."""
    return datetime.fromtimestamp(NOW - age, UTC).strftime("%Y-%m-%dT%H:%M:%S")


PLAIN = {
    "JobID": "7", "UserID": "5", "ReqNodes": "n1", "Comment": "pilotfish",
    "Partition": "main", "QOS": "normal", "Account": "research", "Feature": "(null)",
    "SubmitTime": at(4800), "EligibleTime": at(4800), "RestartCnt": "0",
}  # fmt: skip


class Slurm:
    """Commands of a Slurm with these waiting jobs; `updates` are the changes that it was asked for."""

    def __init__(self, *rows: dict[str, str]) -> None:
        self.rows = [PLAIN | row for row in rows]
        self.updates: list[list[str]] = []
        self.refusal = ""

    def __call__(self, argv: Sequence[str]) -> str:
        if argv[0] == "sdiag":
            return f"***\nsdiag output at Sat Nov 21 07:20:09 2026 ({NOW})\n***\n"
        if argv[0] == "squeue":
            mark = argv[-1].split(":0", 1)[1].split(",")[0]
            return "".join("".join(row[field] + mark for field in FIELDS) + "\n" for row in self.rows)
        assert argv[:2] == ["scontrol", "update"]
        if self.refusal:
            raise AdapterError(self.refusal, kind="refused", stderr_tail=self.refusal)
        self.updates.append([*argv[2:]])
        return ""


def reaped(slurm: Slurm, folder: Path, *, dry: bool = False, **fields: frozenset[str]) -> tuple[int, list[str]]:
    lines: list[str] = []
    failed = Reaper(slurm, SlurmSelection(**fields), folder, 3600.0, lambda: NOW).reap(
        30.0, lambda reaped: lines.append(reaped.line), dry=dry
    )
    return failed, lines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pins").mkdir()
    return tmp_path


def record(folder: Path, job: int = 7, age: int = 60, **changed: object) -> None:
    fields = {"uid": 5, "nodes": ("n1",), "time": NOW - age} | changed
    PinRecord(folder).add(job, Pin(**fields))


#: What users write; whatever it is, it changes nothing for others.
BAD_ROWS = tuple({"JobID": "9", "UserID": "6"} | row for row in (
    {"JobID": "x"}, {"UserID": ""}, {"ReqNodes": "cpu1,gpu1,cpu1"}, {"ReqNodes": "n[0-199999]"}, {"ReqNodes": "n[1-"},
    {"EligibleTime": "10240-08-12T09:21:02"}, {"SubmitTime": "soon"}, {"RestartCnt": "9" * 5000},
    {"Comment": f"pilotfish:pin={'9' * 400}:job=7:uid=1005:was="}, {"Comment": "\udcff\ud800\x1b"}, {"JobID": "9" * 5000},
))  # fmt: skip


@pytest.mark.parametrize("comment", ["", "mine", "(null)", "pilotfish:pin=9:job=7:uid=5:was=n[0-199999]"])
def test_an_overdue_pin_on_record_is_taken_back_whatever_the_comment_says(comment: str, folder: Path) -> None:
    record(folder)
    slurm = Slurm({"Comment": comment}, *BAD_ROWS)
    assert reaped(slurm, folder, dry=True) == (0, ["release slurm/7"]) and slurm.updates == []
    assert reaped(slurm, folder) == (0, ["release slurm/7"])
    assert slurm.updates == [["JobId=7", "ReqNodeList="]]
    slurm.updates.clear()
    assert reaped(slurm, folder) == (0, []) and slurm.updates == [], "the user wants this node since"


@pytest.mark.parametrize(
    ("row", "changed"),
    [
        ({}, {"age": 20}), ({"ReqNodes": "n2"}, {}), ({"ReqNodes": "(null)"}, {}), ({"ReqNodes": "n[1-2]"}, {}),
        ({"UserID": "6"}, {}), ({"JobID": "8"}, {}),
    ],
)  # fmt: skip
def test_a_young_pin_and_a_users_own_list_stay(row: dict[str, str], changed: dict[str, int], folder: Path) -> None:
    record(folder, **changed)
    slurm = Slurm(row)
    assert reaped(slurm, folder) == (0, []) and slurm.updates == []


def test_without_a_record_no_pin_is_ours(folder: Path) -> None:
    (folder / "pins").rmdir()
    slurm = Slurm({}, *BAD_ROWS)
    assert reaped(slurm, folder) == (0, []) and slurm.updates == []


HELD = {"Comment": "pilotfish:hold=9000", "ReqNodes": "(null)", "SubmitTime": at(4800),
        "EligibleTime": at(-4200)}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "let_go"),
    [
        ({}, True), ({"SubmitTime": at(3600), "EligibleTime": at(-5400)}, False), ({"RestartCnt": "1"}, False),
        ({"Comment": "mine"}, False), ({"EligibleTime": at(-4260)}, False),
        ({"Comment": "pilotfish:hold=4815", "EligibleTime": at(-15)}, False),
        ({"Comment": "pilotfish:hold=4825", "EligibleTime": at(-25)}, True),
    ],
)  # fmt: skip
def test_a_job_that_was_held_too_long_is_let_go(changed: dict[str, str], let_go: bool, folder: Path) -> None:
    slurm = Slurm(HELD | changed)
    assert reaped(slurm, folder)[1] == ["release slurm/7"] * let_go
    assert [update[1] for update in slurm.updates] == ["StartTime=now"] * let_go


def test_pins_come_before_the_holds_of_others(folder: Path) -> None:
    """Holds end by themselves, and there may be more of them than a run of the reaper has time for."""
    record(folder, 99)
    slurm = Slurm(*({**HELD, "JobID": str(job)} for job in range(9)), {"JobID": "99"})
    assert reaped(slurm, folder)[1] == [f"release slurm/{job}" for job in (99, *range(9))]


def test_a_pin_that_the_daemon_sets_meanwhile_stays_on_record(folder: Path) -> None:
    record(folder)

    class Busy(Slurm):
        def __call__(self, argv: Sequence[str]) -> str:
            printed = super().__call__(argv)
            if argv[0] == "scontrol":
                record(folder, age=0)
            return printed

    assert reaped(Busy({}), folder) == (0, ["release slurm/7"])
    pin = PinRecord(folder).get(7)
    assert pin is not None and pin.time == NOW


def test_the_record_is_read_twice_however_many_pins_are_taken_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, opened = range(100, 130), list[str]()
    for job in jobs:
        record(folder, job)
    open_file = pin_record.open_file
    monkeypatch.setattr(pin_record, "open_file", lambda path, *flags: opened.append(path) or open_file(path, *flags))
    assert reaped(Slurm(*({"JobID": str(job)} for job in jobs)), folder)[1] == [f"release slurm/{job}" for job in jobs]
    assert [*(folder / "pins").iterdir()] == [] and len(opened) <= 2 * len(jobs) + 1


def test_a_refusal_is_counted_and_one_that_came_too_late_is_none(folder: Path) -> None:
    record(folder)
    record(folder, 8)
    slurm = Slurm({}, {"JobID": "8"})
    slurm.refusal = "Invalid user id"
    assert reaped(slurm, folder)[0] == 2
    slurm.refusal = "Job is no longer pending execution"
    assert reaped(slurm, folder) == (0, ["release slurm/7", "release slurm/8"])


@given(st.dictionaries(st.sampled_from(FIELDS), st.binary(max_size=60).map(os.fsdecode)))
def test_no_row_changes_what_is_done_about_another(row: dict[str, str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record(folder)
        foreign_row = {"JobID": "9", "UserID": "6"} | {key: text for key, text in row.items() if key != "JobID"}
        slurm = Slurm(foreign_row, {})
        assert reaped(slurm, folder) == (0, ["release slurm/7"])
        assert slurm.updates == [["JobId=7", "ReqNodeList="]]


@pytest.mark.parametrize("dry", [True, False])
def test_in_shadow_it_takes_back_what_a_live_daemon_has_left_and_ends_no_hold(
    dry: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "schema: pilotfish/daemon/v1\ncluster: gone.yaml\nstate_dir: state\nadapter: {name: slurm}\n"
    (tmp_path / "pilotfish.yaml").write_text(text + f"mode: {'shadow' if dry else 'live'}\n")
    record(tmp_path / "state" / "slurm")
    slurm = Slurm({}, HELD | {"JobID": "8"})
    monkeypatch.setattr(
        "pilotfish.adapters.slurm.transport.runner.CommandRunner.__call__", lambda self, argv: slurm(argv)
    )
    argv = ["reap", "--config", str(tmp_path / "pilotfish.yaml")]
    assert main([*argv, "--dry-run"]) == 0 and slurm.updates == []
    output = capsys.readouterr()
    assert output.out.splitlines() == ["release slurm/7", "release slurm/8"][: 2 - dry] and output.err == ""
    del slurm.rows[1]
    assert main(argv) == 0 and slurm.updates == [["JobId=7", "ReqNodeList="]]


@pytest.mark.parametrize("more", [0, 1])
def test_a_node_list_that_is_too_long_is_not_expanded(folder: Path, more: int) -> None:
    """It counts as none of ours, although it names the very nodes of a pin."""
    names = [f"{'n' * 250}{number:04d}" for number in range(257)]
    names.append("m" * (LONGEST_LIST + more - len(",".join(names)) - 1))
    record(folder, nodes=tuple(names))
    slurm = Slurm({"ReqNodes": ",".join(names)})
    assert len(slurm.rows[0]["ReqNodes"]) == LONGEST_LIST + more
    assert reaped(slurm, folder)[1] == ["release slurm/7"] * (1 - more)


VALID = """schema: pilotfish/daemon/v1
cluster: none.yaml
adapter: {name: slurm}
state_dir: mine
cycle_seconds: 1
mode: live
"""
#: What is wrong with a configuration: what is replaced in VALID, by what, and what is said about it.
INVALID = (
    ("", "", ""),
    ("cycle_seconds: 1", "cycle_second: 1", "cycle_second: unknown key"),
    ("cycle_seconds: 1", "cycle_seconds: soon", "cycle_seconds: found 'soon'"),
    ("cycle_seconds: 1", "policy: [", "c.yaml"),
    ("cycle_seconds: 1", "\tx: 1", "c.yaml"),
    ("daemon/v1", "daemon/v9", "schema: found"),
    ("cluster: none.yaml", "", "cluster: missing"),
    ("{name: slurm}", "{name: slurm, options: {timeout_s: 99, max_defer_s: x}}", "timeout_s: found 99"),
    ("{name: slurm}", "{name: slurm, options: {partitons: [a]}}", "partitons: unknown option"),
    ("{name: slurm}", "{name: slurm, option: 1}", "adapter.option: unknown key"),
    ("{name: slurm}", "[slurm]", "adapter: found"),
    ("adapter: {name: slurm}", "adaptor: {name: slurm}", "adaptor: unknown key"),
    ("state_dir: mine", "state_dir: 7", "state_dir: found 7"),
    ("state_dir: mine", "state_dri: mine", "state_dri: unknown key"),
)


@pytest.mark.parametrize(("old", "new", "says"), INVALID)
def test_an_invalid_configuration_does_not_stop_the_reaper(
    old: str, new: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pin on record is released, whatever is wrong with the file."""
    slurm, config, state = Slurm({}), tmp_path / "c.yaml", tmp_path / "mine"
    monkeypatch.setattr(runner, "CommandRunner", lambda timeout_s: slurm)
    monkeypatch.setenv("STATE_DIRECTORY", str(state))  # as its unit
    monkeypatch.delenv("PILOTFISH_STATE", raising=False)
    for mode in ("shadow", "yes", "'shadow'", "maybe", "live"):
        slurm.updates.clear()
        record(state / "slurm")
        config.write_text(VALID.replace(old, new).replace("mode: live", f"mode: {mode}"))
        config.chmod(0o600)
        code = main(["reap", "--config", str(config)])
        output = capsys.readouterr()
        assert output.out == "release slurm/7\n", (mode, output.err)
        assert (code == 0) is (not says and mode in ("shadow", "'shadow'", "live"))
        assert (says in output.err or mode not in ("shadow", "'shadow'", "live")) and "Traceback" not in output.err
        assert slurm.updates == [["JobId=7", "ReqNodeList="]]
    config.chmod(0o666)
    assert main(["reap", "--config", str(config)]) == 1
    assert "cannot be read: not trusted" in capsys.readouterr().err and len(slurm.updates) == 1
