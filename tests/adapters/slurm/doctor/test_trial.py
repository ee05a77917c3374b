"""The doctor's test of the account's rights, on a job of its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.findings import OK, PROBLEM, WARNING, Level
from pilotfish.adapters.slurm.doctor import trial
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.simulate.model.snapshot import JobState
from tests.adapters.slurm.transport.test_squeue import PRINTED
from tests.support.slurm_answers import NOW, Recorded


class Queue(Recorded):
    """Slurm with the job 9; `ignored` are the fields whose changes it accepts and does not make."""

    def __init__(self, answers: dict[str, str | AdapterError], ignored: tuple[str, ...] = ()) -> None:
        super().__init__(**({"sbatch": "9\n", "scontrol_update": "", "scancel": "", "sinfo": "n1\nn1\nn2\n"} | answers))
        self.row = PRINTED | {"JobID": "9", "JobArrayID": "9", "State": "PENDING", "NodeList": "", "ReqNodes": "(null)"}
        self.row |= {"EligibleTime": "2026-12-21T07:20:09", "Comment": trial.COMMENT}
        self.ignored = ignored

    def __call__(self, argv: Sequence[str]) -> str:
        answer = super().__call__(argv)
        form = next((word[9:] for word in argv if word.startswith("--Format=")), "")
        if argv[:2] == ["scontrol", "update"]:
            fields = dict(word.split("=", 1) for word in argv[3:])
            changes = {"ReqNodes": fields.get("ReqNodeList")}
            changes["EligibleTime"] = "2026-12-22T07:20:09" if "StartTime" in fields else None
            self.row |= {name: text for name, text in changes.items() if text is not None and name not in self.ignored}
        return (
            "".join(self.row[cell.split(":0")[0]] + cell.split(":0")[1] for cell in form.split(",") if form) or answer
        )


CLEAR = "scontrol_update_JobId=9_ReqNodeList="
DENIED = AdapterError("scontrol: Access/permission denied for job 9", kind="refused")


@pytest.mark.parametrize(
    ("answers", "levels"),
    [
        ({}, [OK, OK]),
        ({"scontrol_update_JobId=9_Nice": DENIED}, [OK, PROBLEM]),
        ({"scontrol_update": DENIED}, [PROBLEM, PROBLEM]),
        ({"sinfo": DENIED}, [WARNING]),
        ({f"{CLEAR}n1": "", CLEAR: DENIED}, [PROBLEM, OK]),
        ({"scancel": DENIED}, [OK, OK, WARNING]),
    ],
)
def test_a_trial_job_is_changed_and_always_cancelled(answers: dict[str, AdapterError], levels: list[Level]) -> None:
    run = Queue(answers)
    assert [finding.level for finding in trial.findings(run, ["--partition=x"])] == levels
    assert any(f"StartTime=uts{NOW + 31 * 86400:.0f}" in line for line in run.asked) is ("sinfo" not in answers)
    assert run.asked[-1] == "scancel 9" and " --partition=x " in run.asked[0] and "--begin=now+30days" in run.asked[0]
    assert SlurmSelection().takes(SlurmJob(9, JobState.PENDING, comment=trial.COMMENT)) is False


@pytest.mark.parametrize(("field", "name"), [("ReqNodes", "ReqNodeList"), ("EligibleTime", "StartTime")])
def test_a_change_that_is_accepted_and_not_made_is_a_problem(field: str, name: str) -> None:
    run = Queue({}, (field,))
    first = next(trial.findings(run))
    assert first.level is PROBLEM and f"did not make them ({name})" in first.says and run.asked[-1] == "scancel 9"


def test_a_trial_job_that_is_refused_is_a_finding() -> None:
    (only,) = trial.findings(Recorded(sbatch=AdapterError("sbatch: Invalid account")))
    assert only.level is WARNING and "Invalid account" in only.says
