"""The doctor's test of the account's rights, on a job of its own."""

from __future__ import annotations

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.findings import NOTE, OK, PROBLEM, WARNING, Level
from pilotfish.adapters.slurm.doctor import trial
from pilotfish.adapters.slurm.ownership import Selection
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.simulate.model.snapshot import JobState
from tests.support.slurm_answers import (
    Recorded,
)

DENIED = AdapterError("scontrol: Access/permission denied for job 9", kind="refused")


@pytest.mark.parametrize(
    ("answers", "levels"),
    [
        ({}, [OK, OK, NOTE]),
        ({"scontrol_update_JobId=9_AdminComment": DENIED}, [OK, OK]),
        ({"scontrol_update_JobId=9_AdminComment": DENIED, "scontrol_update_JobId=9_Nice": DENIED}, [OK, PROBLEM]),
        ({"scontrol_update": DENIED}, [PROBLEM, PROBLEM]),
        ({"sinfo": DENIED}, [WARNING]),
        ({"scancel": DENIED}, [OK, OK, NOTE, WARNING]),
    ],
)
def test_a_trial_job_is_changed_and_always_cancelled(answers: dict[str, AdapterError], levels: list[Level]) -> None:
    run = Recorded(**({"sbatch": "9\n", "scontrol_update": "", "scancel": "", "sinfo": "n1\nn1\nn2\n"} | answers))
    assert [each.level for each in trial.findings(run, ["--partition=x"])] == levels
    assert run.asked[-1] == "scancel 9" and " --partition=x " in run.asked[0] and "--begin=now+30days" in run.asked[0]
    assert Selection().takes(SlurmJob(9, JobState.PENDING, comment=trial.COMMENT)) is False


def test_a_trial_job_that_is_refused_is_a_finding() -> None:
    (only,) = trial.findings(Recorded(sbatch=AdapterError("sbatch: Invalid account")))
    assert only.level is WARNING and "Invalid account" in only.says
