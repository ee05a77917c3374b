"""Usage, fair shares and priorities are those that a real Slurm 22.05 had, run by run of its recordings."""

from __future__ import annotations

import pytest

from tests.simulate.slurm.recorded_priorities import Followed
from tests.support.slurm_recordings import Run, recorded_case

pytestmark = pytest.mark.usefixtures("plain_python")
#: Least shares of right numbers, of all runs of a case. Usage hangs on the second at which it is booked; some samples
#: were taken a whole run of the decay thread later than they say. An array whose first tasks start at once may or may not
#: have aged meanwhile, by a race of slurmctld's threads.
LEAST = {
    "usage": 0.85, "factor": 0.93, "level": 0.9, "age": 0.93, "shares": 0.97, "size": 0.98, "priority": 0.95,
    "priority of sacct": 0.95,
}  # fmt: skip
LEAST_OF_CASE = {"arrays": {"priority of sacct": 0.92, "age": 0.8, "priority": 0.8}}


@pytest.mark.long
@pytest.mark.parametrize("case", ["plain", "tiers", "arrays", "memory", "preempt", "realtime"])
def test_numbers_are_those_of_the_real_slurm(case: str) -> None:
    folder = recorded_case(case)
    runs = {name: Followed(Run(folder / name)) for name in ("r1", "r2", "r3")}
    for run in runs.values():
        run.follow()
    counts = {name: {kind: f"{run.hits[kind]}/{run.total[kind]}" for kind in run.total} for name, run in runs.items()}
    for kind, least in (LEAST | LEAST_OF_CASE.get(case, {})).items():
        total = sum(run.total[kind] for run in runs.values())
        assert sum(run.hits[kind] for run in runs.values()) >= least * total, (kind, counts)
