"""Tables of jobs that a replay of the record is made of."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.kernels.slurm.tables import CANCEL
from pilotfish.simulate.slurm.present import Present
from pilotfish.simulate.slurm.site import JobRecord
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from pilotfish.simulate.slurm.twin import replay_site

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


@pytest.mark.parametrize("time", [math.inf, -math.inf, 1e300])
@pytest.mark.parametrize("name", ["submit", "begin", "released", "deadline", "eligible", "start", "end"])
def test_a_time_without_end_is_refused_with_its_job(name: str, time: float) -> None:
    times = {"eligible": T0, "start": T0 + 5.0, "end": T0 + 9.0}
    run = JobRecord("COMPLETED", **{key: time if key == name else value for key, value in times.items()})
    odd = job(id="8", runs=(run,)) if name in times else replace(job(id="8", runs=(run,)), **{name: time})
    with pytest.raises(ConfigError, match=rf"^job 8: {name} is {re.escape(str(time))} \(allowed: .*\)$"):
        Present(site([job(id="7"), odd]), T0 + 20.0)


def test_a_job_is_submitted_at_some_time() -> None:
    with pytest.raises(ConfigError, match=r"^job 8 \(and 1 more\): submit is nan "):
        replay_site(site([job(id="7"), job(id="8", submit=math.nan), job(id="9", submit=math.nan)]))
