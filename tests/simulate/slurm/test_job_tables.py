"""Tables of jobs that a replay of the record is made of."""

from __future__ import annotations

from dataclasses import replace

from pilotfish.simulate.kernels.slurm.tables import CANCEL
from pilotfish.simulate.slurm.site import JobRecord
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block

from .small_sites import PARTITION, T0, job, site


def test_a_run_in_a_partition_that_is_gone_counts_in_the_one_of_the_job() -> None:
    run = JobRecord("COMPLETED", T0, T0 + 5.0, T0 + 9.0, "gone", ("n1",), 1)
    place = site([job(partitions=("other",), runs=(run,))])
    place = replace(place, partitions=(PARTITION, replace(PARTITION, name="other")))
    block = site_block(completed(place), Phases(0.0, 0.0, 0.0, 0, 0.0), repeats=True)
    assert block.history["part"].tolist() == [1]
    assert block.job_parts[block.jobs["part0"]].tolist() == [1]


def test_a_job_that_missed_its_deadline_leaves_the_queue_of_a_replay_of_the_record() -> None:
    run = JobRecord("DEADLINE", T0, end=T0 + 600.0)
    place = completed(site([job(deadline=T0 + 700.0, runs=(run,))]))
    for repeats in (True, False):  # other replays drop it by the rule
        block = site_block(place, Phases(0.0, 0.0, 0.0, 0, 0.0), repeats=repeats)
        assert block.agenda["time"][block.agenda["kind"] == CANCEL].tolist() == [T0 + 600] * repeats
