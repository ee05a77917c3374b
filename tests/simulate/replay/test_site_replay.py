"""A site's jobs under a queue policy of pilotfish: sizes, times, dependencies, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.replay.site_replay import refuse_policy, replay_site_under, workload_of_site
from pilotfish.simulate.slurm.site import JobRecord
from pilotfish.simulate.slurm.site_outcome import replayed_outcome
from tests.simulate.slurm.small_sites import NODES, PARTITION, T0, job, site

CPUS = sum(node.cpus for node in NODES)


def test_jobs_ask_for_cpus_and_wait_as_they_did() -> None:
    jobs = [
        job(id="1", tasks=5, min_cpus=5), job(id="2", dependency="afterany:1+2", limit_min=10, run_s=900.0),
        job(id="3", begin=T0 + 50.0), job(id="4", runs=(JobRecord("CANCELLED", end=T0 + 9.0),)),
        job(id="5", is_exclusive=True, min_nodes=2),
    ]  # fmt: skip
    workload = workload_of_site(site(jobs))
    by_id = {jobs[row].id: place for place, row in enumerate(workload.rows.tolist())}
    assert by_id.keys() == {"1", "2", "3", "5"} and workload.machine.processors == CPUS
    assert [int(workload.jobs.size[by_id[name]]) for name in "1235"] == [5, 1, 1, 8]
    assert workload.jobs.submit_time[by_id["3"]] == 50.0 and workload.jobs.walltime[by_id["2"]] == 600.0
    pairs = workload.jobs.dependencies
    assert pairs is not None and (pairs.before.tolist(), pairs.after.tolist()) == ([by_id["1"]], [by_id["2"]])
    assert pairs.delays.tolist() == [120.0] and pairs.at_any_end.tolist() == [True]


def test_nodes_count_where_all_jobs_get_whole_ones() -> None:
    closed = replace(PARTITION, is_exclusive=True)
    jobs = [job(id=str(number), min_nodes=4, max_nodes=4, tasks=4, min_cpus=4) for number in range(2)]
    place = site(jobs, partition=closed)
    assert workload_of_site(place).machine.processors == len(NODES)
    first, second = replay_site_under(place, parse("easy")).starts
    assert first.nodes == tuple(node.name for node in NODES[:4]) and second.start == first.start + 600.0 == T0 + 600.0


def test_the_policy_orders_the_queue_and_cpus_are_on_their_nodes() -> None:
    jobs = [job(id=str(number), tasks=CPUS, min_cpus=CPUS, limit_min=60 - number, run_s=60.0) for number in range(3)]
    jobs.append(job(id="9", tasks=5, min_cpus=5))
    starts = replay_site_under(site(jobs), parse("strict:order=sjf")).starts
    assert [jobs[one.job].id for one in starts] == ["2", "1", "0", "9"]
    assert starts[-1].nodes == (NODES[0].name, NODES[1].name) and starts[0].nodes == tuple(node.name for node in NODES)


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans(), st.integers(0, 9000)), min_size=2, max_size=30))
@settings(max_examples=20, deadline=None)
def test_no_more_cpus_are_in_use_than_there_are(drawn: list[tuple[int, bool, int]]) -> None:
    """A job of whole nodes has as many CPUs, on more nodes than those where some were free before it."""
    jobs = [
        job(id=str(number), submit=T0 + submit, tasks=tasks, min_cpus=tasks, is_exclusive=is_exclusive, run_s=2000.0)
        for number, (tasks, is_exclusive, submit) in enumerate(drawn)
    ]
    place = site(jobs)
    outcome = replayed_outcome(place, replay_site_under(place, parse("easy")))
    assert (outcome.used_cpu_s <= CPUS * outcome.hours + 1e-6).all()


@pytest.mark.parametrize("spec", ["mom", "easy:share=1.1", "easy+powercap:cap=50%"])
def test_a_policy_that_needs_more_than_a_site_says_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError, match="needs the power or the memory bandwidth of nodes"):
        refuse_policy(parse(spec))
